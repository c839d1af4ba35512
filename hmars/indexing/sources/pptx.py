"""PowerPoint: slides in the order of the show, with tables and speaker notes."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from hmars.indexing.sources.archive import (
    Archive,
    DamagedPartError,
    attribute,
    child,
    descendants,
    local,
    open_archive,
    relations,
)
from hmars.indexing.sources.builder import TextBuilder, one_line
from hmars.indexing.sources.files import InputFile
from hmars.model import SourceText

_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
"""Placeholders that repeat on every slide: number, date, footer."""


def load_pptx(file: InputFile) -> SourceText:
    """One place a slide (`slide 3`); its title is the context. Pictures and charts are not read."""
    with open_archive(file.path, "PowerPoint presentation") as archive:
        main = "ppt/presentation.xml"
        for kind, target in relations(archive, "").values():
            main = target if kind == "officeDocument" else main
        builder = TextBuilder(file.path)
        for number, name in enumerate(_slides(archive, main), start=1):
            try:
                _add_slide(builder, archive, name, number)
            except DamagedPartError as error:
                builder.warn(f"Slide {number} was left out: {error}.")
        return builder.build()


def _slides(archive: Archive, main: str) -> Iterator[str]:
    linked = relations(archive, main)
    for entry in descendants(archive.tree(main), lambda name: name == "sldId"):
        # The relation is the attribute `r:id`; the plain `id` is another number.
        keys = [value for key, value in entry.attrib.items() if key.endswith("}id")]
        for key in keys:
            if key in linked:
                yield linked[key][1]


def _add_slide(builder: TextBuilder, archive: Archive, name: str, number: int) -> None:
    shapes = list(_shapes(archive.tree(name)))
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
    title = one_line(" ".join(_text(shape) for shape in titles))
    builder.place(f"slide {number}", context=title)
    builder.block(title)
    for shape in shapes:
        if shape in titles or _placeholder(shape) in _FURNITURE:
            continue
        tables = list(descendants(shape, lambda item: item == "tbl"))
        if tables:
            for table in tables:
                builder.table(_rows(table))
        else:
            builder.block(_text(shape))
    for kind, target in relations(archive, name).values():
        if kind == "notesSlide" and target in archive:
            notes = [
                _text(shape)
                for shape in _shapes(archive.tree(target))
                if _placeholder(shape) not in _FURNITURE
            ]
            text = "\n".join(filter(None, notes))
            if text:
                builder.block(f"Notes: {text}")


def _shapes(element: Element) -> Iterator[Element]:
    """Shapes in drawing order, those of groups too; old forms of new shapes are skipped."""
    for item in element:
        name = local(item)
        if name in ("sp", "graphicFrame", "cxnSp"):
            yield item
        elif name != "Fallback":
            yield from _shapes(item)


def _placeholder(shape: Element) -> str:
    found = next(descendants(shape, lambda name: name == "ph"), None)
    return (attribute(found, "type") or "body") if found is not None else ""


def _text(element: Element) -> str:
    lines: list[str] = []
    for paragraph in descendants(element, lambda name: name == "p"):
        parts: list[str] = []
        for item in paragraph.iter():
            if local(item) == "t":
                parts.append(item.text or "")
            elif local(item) in ("br", "tab"):
                parts.append("\n" if local(item) == "br" else "\t")
        properties = child(paragraph, "pPr")
        depth = (properties.get("lvl") or "0") if properties is not None else "0"
        indent = "  " * min(int(depth), 8) if depth.isdigit() else ""
        line = "".join(parts).strip()
        if line:
            lines.append(f"{indent}{line}")
    return "\n".join(lines)


def _rows(table: Element) -> list[list[str]]:
    return [
        [one_line(_text(cell)) for cell in row if local(cell) == "tc"]
        for row in table
        if local(row) == "tr"
    ]
