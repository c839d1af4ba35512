"""Word documents: the text as it stands after accepting all changes.

Read from the XML itself, one paragraph or table at a time, because the usual libraries hold the
whole document and leave out footnotes, text boxes and revisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    resolve,
)
from hmars.indexing.sources.builder import TextBuilder, one_line
from hmars.indexing.sources.docx_styles import (
    Numbering,
    Style,
    list_place,
    outline_level,
    read_numbering,
    read_styles,
)
from hmars.indexing.sources.files import InputFile
from hmars.model import SourceText

_SKIPPED = frozenset((
    "del", "moveFrom", "delText", "instrText", "delInstrText", "Fallback", "pPr", "rPr",
    "tblPr", "tcPr", "sectPr", "sdtPr", "sdtEndPr", "fldData", "rt", "commentRangeStart",
    "commentRangeEnd",
))  # fmt: skip
"""Deleted text, field codes, the old form of what stands beside it, furigana, properties."""
_PART_OF_LINE = {
    "tab": "\t",
    "br": "\n",
    "cr": "\n",
    "noBreakHyphen": "-",
    "ptab": "\t",
}
_CONTAINERS = frozenset({"sdt", "sdtContent", "customXml", "ins", "moveTo", "AlternateContent"})
_MAX_GRID = 200


@dataclass(slots=True)
class _Parts:
    """What the paragraphs refer to."""

    styles: Mapping[str, Style]
    numbering: Numbering
    notes: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])


@dataclass(slots=True)
class _Line:
    """A paragraph while it is read: its own text, and what hangs on it."""

    text: list[str] = field(default_factory=list[str])
    boxes: list[Element] = field(default_factory=list[Element])
    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def load_docx(file: InputFile) -> SourceText:
    """Headings, paragraphs, list numbers, tables, text boxes, footnotes, page headers once."""
    with open_archive(file.path, "Word document") as archive:
        main = _main_part(archive)
        linked = relations(archive, main)
        names = dict(linked.values())
        parts = _Parts(
            read_styles(archive, names.get("styles", "word/styles.xml")),
            read_numbering(archive, names.get("numbering", "word/numbering.xml")),
        )
        parts.notes = {
            **_notes(archive, names.get("footnotes"), "footnote", parts),
            **_notes(archive, names.get("endnotes"), "endnote", parts),
        }
        builder = TextBuilder(file.path, _title(archive))
        writer = _Writer(builder, parts)
        for element in archive.children(main, frozenset({"body"})):
            writer.block(element)
        _add_margins(archive, linked, writer)
        if "comments" in names:
            _count_comments(archive, names["comments"], builder)
        return builder.build()


class _Writer:
    def __init__(self, builder: TextBuilder, parts: _Parts) -> None:
        self._builder = builder
        self._parts = parts
        self._note = 0

    def block(self, element: Element) -> None:
        name = local(element)
        if name == "p":
            self._paragraph(element)
        elif name == "tbl":
            self._table(element)
        elif name in _CONTAINERS or name == "Choice":
            for item in element:
                if local(item) not in _SKIPPED:
                    self.block(item)

    def _paragraph(self, element: Element) -> None:
        line = _Line()
        _collect(element, line)
        marks = self._mark_notes(line)
        text = "".join(line.text).strip()
        properties = child(element, "pPr")
        level = self._level(properties)
        label = self._label(properties) if text else ""
        if text and level is not None:
            self._builder.heading(f"{label.strip()} {one_line(text)}".strip(), level)
        elif label:
            self._builder.item(f"{label} {text}")
        else:
            self._builder.block(text)
        for box in line.boxes:
            for item in box:
                self.block(item)
        for mark, note in marks:
            self._builder.block(f"{mark} {note}")

    def _table(self, element: Element) -> None:
        rows = [row for row in _rows(element, self._parts) if any(row)]
        if max((len(row) for row in rows), default=0) > 1:
            self._builder.table(rows)
        else:
            for cell in _cells_of(element):
                for item in cell:
                    self.block(item)
            return
        line = _Line()
        for paragraph in descendants(element, lambda name: name == "p"):
            _collect(paragraph, line)
        for box in line.boxes:
            for item in box:
                self.block(item)
        for mark, note in self._mark_notes(line):
            self._builder.block(f"{mark} {note}")

    def _mark_notes(self, line: _Line) -> list[tuple[str, str]]:
        """Number the notes of a paragraph; references become the same number."""
        found: list[tuple[str, str]] = []
        for key in line.notes:
            if note := self._parts.notes.get(key):
                self._note += 1
                found.append((f"[{self._note}]", note))
        marks = iter(found)
        line.text = [next(marks, ("", ""))[0] if part == _NOTE else part for part in line.text]
        return found

    def _level(self, properties: Element | None) -> int | None:
        own = outline_level(properties)
        if own is not None:
            return own if own <= 9 else None
        style = self._style(properties)
        return style.level if style else None

    def _label(self, properties: Element | None) -> str:
        place, style = list_place(properties), self._style(properties)
        inherited = style.numbering if style else None
        if place is None:
            place = inherited
        elif place[0] is None and inherited:
            place = (inherited[0], place[1])
        return self._parts.numbering.next(place[0], place[1]) if place and place[0] else ""

    def _style(self, properties: Element | None) -> Style | None:
        link = child(properties, "pStyle") if properties is not None else None
        return self._parts.styles.get(attribute(link, "val") or "") if link is not None else None


_NOTE = "\0note"


def _collect(element: Element, line: _Line) -> None:
    """Text of a paragraph in order; boxes and notes are set aside."""
    for item in element:
        name = local(item)
        if name in _SKIPPED or (name == "r" and _hidden(item)):
            continue
        if name == "t":
            line.text.append(item.text or "")
        elif name in _PART_OF_LINE:
            line.text.append(_PART_OF_LINE[name])
        elif name == "txbxContent":
            line.boxes.append(item)
        elif name in ("footnoteReference", "endnoteReference"):
            line.notes.append((name.removesuffix("Reference"), attribute(item, "id") or ""))
            line.text.append(_NOTE)
        elif name == "sym":
            line.text.append("•")
        else:
            _collect(item, line)


def _hidden(run: Element) -> bool:
    properties = child(run, "rPr")
    found = child(properties, "vanish") if properties is not None else None
    return found is not None and attribute(found, "val") not in ("0", "false", "off")


def _cells_of(table: Element) -> Iterator[Element]:
    for row in _each(table, "tr"):
        if not _deleted_row(row):
            yield from _each(row, "tc")


def _rows(table: Element, parts: _Parts) -> Iterator[list[str]]:
    for row in _each(table, "tr"):
        if _deleted_row(row):
            continue
        cells: list[str] = []
        for cell in _each(row, "tc"):
            properties = child(cell, "tcPr")
            span = child(properties, "gridSpan") if properties is not None else None
            value = (attribute(span, "val") or "") if span is not None else ""
            wide = min(int(value), _MAX_GRID) if value.isdigit() else 1
            cells += [_cell_text(cell, parts), *[""] * (wide - 1)]
        yield cells


def _each(element: Element, name: str) -> Iterator[Element]:
    """Children of this name, also inside content controls and revisions."""
    for item in element:
        if local(item) == name:
            yield item
        elif local(item) in _CONTAINERS:
            yield from _each(item, name)


def _deleted_row(row: Element) -> bool:
    properties = child(row, "trPr")
    return properties is not None and child(properties, "del") is not None


def _cell_text(cell: Element, parts: _Parts) -> str:
    lines: list[str] = []
    for item in cell:
        if local(item) == "tbl":
            lines += [" | ".join(row) for row in _rows(item, parts)]
        elif local(item) not in _SKIPPED:
            line = _Line()
            _collect(item, line)
            lines.append("".join(part for part in line.text if part != _NOTE))
    return one_line(" ".join(lines))


def _main_part(archive: Archive) -> str:
    for kind, target in relations(archive, "").values():
        if kind == "officeDocument":
            return target
    return "word/document.xml"


def _notes(
    archive: Archive, part: str | None, kind: str, parts: _Parts
) -> dict[tuple[str, str], str]:
    notes: dict[tuple[str, str], str] = {}
    if part is None or part not in archive:
        return notes
    for note in archive.tree(part):
        if attribute(note, "type") in ("separator", "continuationSeparator"):
            continue
        text = _cell_text(note, parts)
        if text:
            notes[kind, attribute(note, "id") or ""] = text
    return notes


def _add_margins(archive: Archive, linked: Mapping[str, tuple[str, str]], writer: _Writer) -> None:
    """Page headers and footers, each different text once, after the document."""
    seen: set[str] = set()
    for kind, target in linked.values():
        if kind not in ("header", "footer") or target not in archive:
            continue
        tree = archive.tree(target)
        text = "".join(tree.itertext()).strip()
        if text and text not in seen:
            seen.add(text)
            for item in tree:
                writer.block(item)


def _count_comments(archive: Archive, part: str, builder: TextBuilder) -> None:
    if part in archive:
        count = sum(1 for _ in descendants(archive.tree(part), lambda name: name == "comment"))
        if count:
            builder.warn(f"{count} review comment{'s' if count > 1 else ''} left out.")


def _title(archive: Archive) -> str:
    for kind, target in relations(archive, "").values():
        if kind == "core-properties":
            try:
                tree = archive.tree(resolve("", target))
            except DamagedPartError:
                return ""
            return next((item.text or "" for item in tree if local(item) == "title"), "")
    return ""
