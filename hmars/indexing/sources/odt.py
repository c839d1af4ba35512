"""OpenDocument text: headings, paragraphs, lists, tables, notes; deleted revisions left out."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from hmars.errors import InputError
from hmars.indexing.sources.archive import (
    Archive,
    DamagedPartError,
    attribute,
    descendants,
    local,
    open_archive,
)
from hmars.indexing.sources.builder import TextBuilder, one_line
from hmars.indexing.sources.files import InputFile
from hmars.model import SourceText

_SKIPPED = frozenset((
    "tracked-changes", "annotation", "annotation-end", "sequence-decls", "forms", "object",
    "ruby-text", "table-of-content-source", "variable-decls", "user-field-decls",
))  # fmt: skip
_MAX_REPEAT = 200


def load_odt(file: InputFile) -> SourceText:
    with open_archive(file.path, "OpenDocument text") as archive:
        _refuse_encryption(archive, file)
        builder = TextBuilder(file.path, _title(archive))
        for element in archive.children("content.xml", frozenset({"text"})):
            _add(builder, element, 0)
        return builder.build()


def _refuse_encryption(archive: Archive, file: InputFile) -> None:
    if "META-INF/manifest.xml" in archive:
        manifest = archive.tree("META-INF/manifest.xml")
        if any(descendants(manifest, lambda name: name == "encryption-data")):
            raise InputError(f"{file.path} is encrypted: save it without a password and try again.")


def _add(builder: TextBuilder, element: Element, depth: int) -> None:
    name = local(element)
    if name in _SKIPPED:
        return
    if name == "h":
        level = attribute(element, "outline-level") or "1"
        builder.heading(one_line(_text(element)), int(level) if level.isdigit() else 1)
    elif name == "p":
        builder.block(_text(element))
        _add_boxes(builder, element)
    elif name == "list":
        for item in element:
            _add_item(builder, item, depth)
    elif name == "table":
        builder.table(list(_rows(element)))
    else:
        for item in element:
            _add(builder, item, depth)


def _add_item(builder: TextBuilder, item: Element, depth: int) -> None:
    for place, part in enumerate(item):
        if local(part) == "p" and place == 0:
            text = _text(part).strip()
            builder.item(f"{'  ' * min(depth, 8)}- {text}" if text else "")
        else:
            _add(builder, part, depth + 1)


def _add_boxes(builder: TextBuilder, paragraph: Element) -> None:
    for box in descendants(paragraph, lambda name: name == "text-box"):
        for item in box:
            _add(builder, item, 0)


def _text(element: Element) -> str:
    """Text of a paragraph; notes stand in brackets where they belong."""
    parts = [element.text or ""]
    for item in element:
        name = local(item)
        if name == "s":
            count = attribute(item, "c") or "1"
            parts.append(" " * (min(int(count), _MAX_REPEAT) if count.isdigit() else 1))
        elif name == "tab":
            parts.append("\t")
        elif name == "line-break":
            parts.append("\n")
        elif name == "note":
            body = next(descendants(item, lambda inner: inner == "note-body"), None)
            parts.append(f" [{one_line(_text(body))}]" if body is not None else "")
        elif name not in _SKIPPED and name not in ("text-box", "note-citation"):
            parts.append(_text(item))
        parts.append(item.tail or "")
    return "".join(parts)


def _rows(table: Element) -> Iterator[list[str]]:
    for row in descendants(table, lambda name: name == "table-row"):
        cells: list[str] = []
        for cell in row:
            if local(cell) not in ("table-cell", "covered-table-cell"):
                continue
            repeat = attribute(cell, "number-columns-repeated") or "1"
            text = one_line(" ".join(_text(part) for part in cell))
            count = min(int(repeat), _MAX_REPEAT) if repeat.isdigit() else 1
            cells += [text] * count
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield cells


def _title(archive: Archive) -> str:
    try:
        tree = archive.tree("meta.xml")
    except DamagedPartError:
        return ""
    found = next(descendants(tree, lambda name: name == "title"), None)
    return (found.text or "") if found is not None else ""
