"""HTML pages, and JATS articles, which use the same words for text and tables."""

from __future__ import annotations

from collections.abc import Sequence

from hmars.indexing.sources.builder import TextBuilder, one_line
from hmars.indexing.sources.files import InputFile
from hmars.indexing.sources.html_blocks import Block, HtmlReader
from hmars.indexing.sources.reading import read_markup
from hmars.model import SourceText

MIN_MAIN_SHARE = 0.4
"""The declared main part is taken alone only if it holds this share of the page's text."""


def load_html(file: InputFile) -> SourceText:
    """Main text, headings, lists and tables of a page; no scripts, nothing fetched."""
    found = read_markup(file.read(), file.path)
    reader = read_html(found.text)
    builder = TextBuilder(file.path, one_line(reader.title))
    for warning in found.warnings:
        builder.warn(warning)
    add_blocks(builder, main_blocks(reader.blocks))
    return builder.build()


def read_html(text: str) -> HtmlReader:
    reader = HtmlReader()
    reader.feed(_tamed(text))
    reader.close()
    return reader


def _tamed(text: str) -> str:
    """Without comments and without tags that never close.

    The parser looks for their ends again from every place, which takes hours on a hostile page.
    """
    parts: list[str] = []
    place = 0
    while (start := text.find("<!--", place)) >= 0:
        end = text.find("-->", start + 4)
        if end < 0:
            break
        parts.append(text[place:start])
        place = end + 3
    rest = text[place:].replace("<!--", "")
    last = rest.rfind(">") + 1
    return "".join([*parts, rest[:last], rest[last:].replace("<", "&lt;")])


def main_blocks(blocks: Sequence[Block]) -> list[Block]:
    """The page without navigation, sidebars, header and footer, where text remains then."""
    total = _size(blocks)
    main = [block for block in blocks if block.main]
    if main and _size(main) >= MIN_MAIN_SHARE * total:
        blocks = main
    inner = [block for block in blocks if not block.frame or block.kind == "heading"]
    return inner if _size(inner) >= MIN_MAIN_SHARE * _size(blocks) else list(blocks)


def add_blocks(builder: TextBuilder, blocks: Sequence[Block], below: int = 0) -> None:
    """Write blocks; headings go `below` levels under those that are there already."""
    for block in blocks:
        if block.kind == "heading":
            builder.heading(block.text, block.level + below)
        elif block.kind == "table":
            builder.table(block.rows)
        elif _is_item(block):
            builder.item(block.text)
        else:
            builder.block(block.text)


def _is_item(block: Block) -> bool:
    sign = block.text.lstrip(" ").partition(" ")[0]
    return block.kind == "text" and (sign == "-" or (sign[:-1].isdigit() and sign[-1] == "."))


def _size(blocks: Sequence[Block]) -> int:
    return sum(len(block.text) for block in blocks)
