"""What Word keeps outside the text: which styles are headings, and how lists are numbered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from hmars.indexing.sources.archive import Archive, DamagedPartError, attribute, child, local

_HEADING_NAME = re.compile(r"^heading (\d)$", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"%(\d)")
_MAX_NUMBER = 100_000
_NOT_A_HEADING = 9


@dataclass(frozen=True, slots=True)
class Style:
    level: int | None = None
    """1 is the highest heading; None is body text."""
    based_on: str | None = None
    numbering: tuple[str, int] | None = None
    """List id and level that the style brings along."""


@dataclass(frozen=True, slots=True)
class Level:
    format: str = "decimal"
    text: str = ""
    start: int = 1


@dataclass(slots=True)
class Numbering:
    """Counts list paragraphs in the order of the document, as Word does on screen."""

    lists: Mapping[str, str] = field(default_factory=dict[str, str])
    levels: Mapping[tuple[str, int], Level] = field(default_factory=dict[tuple[str, int], Level])
    counts: dict[str, dict[int, int]] = field(default_factory=dict[str, dict[int, int]])

    def next(self, list_id: str, depth: int) -> str:
        """The label of the next paragraph of a list: `4.2`, `(a)`, `-`, or nothing."""
        abstract = self.lists.get(list_id)
        level = self.levels.get((abstract, depth)) if abstract is not None else None
        if abstract is None or level is None or list_id == "0":
            return ""
        if level.format == "bullet":
            return f"{'  ' * depth}-"
        counts = self.counts.setdefault(abstract, {})
        counts[depth] = min(counts.get(depth, level.start - 1) + 1, _MAX_NUMBER)
        for deeper in [place for place in counts if place > depth]:
            del counts[deeper]
        return _PLACEHOLDER.sub(lambda m: self._shown(abstract, int(m[1]) - 1), level.text)

    def _shown(self, abstract: str, depth: int) -> str:
        level = self.levels.get((abstract, depth), Level())
        number = self.counts.get(abstract, {}).get(depth, level.start)
        return format_number(number, level.format)


def read_styles(archive: Archive, part: str) -> dict[str, Style]:
    """Styles by id; a document without readable styles has none."""
    try:
        tree = archive.tree(part)
    except DamagedPartError:
        return {}
    styles: dict[str, Style] = {}
    for element in tree:
        key = attribute(element, "styleId")
        if local(element) == "style" and key:
            styles[key] = _style(element)
    return {key: _inherited(key, styles) for key in styles}


def outline_level(properties: Element | None) -> int | None:
    """A level the paragraph itself declares, as 1 to 9; 10 says that it is body text."""
    found = child(properties, "outlineLvl") if properties is not None else None
    value = attribute(found, "val") if found is not None else None
    return int(value) + 1 if value and value.isdigit() else None


def list_place(properties: Element | None) -> tuple[str | None, int] | None:
    """List id (None: that of the style) and depth of a paragraph."""
    numbers = child(properties, "numPr") if properties is not None else None
    if numbers is None:
        return None
    depth, key = child(numbers, "ilvl"), child(numbers, "numId")
    value = attribute(depth, "val") if depth is not None else None
    return (
        attribute(key, "val") if key is not None else None,
        int(value) if value and value.isdigit() else 0,
    )


def read_numbering(archive: Archive, part: str) -> Numbering:
    """Definitions of lists; a document without them has none."""
    try:
        tree = archive.tree(part)
    except DamagedPartError:
        return Numbering()
    lists: dict[str, str] = {}
    levels: dict[tuple[str, int], Level] = {}
    for element in tree:
        if local(element) == "abstractNum":
            abstract = attribute(element, "abstractNumId") or ""
            for item in element:
                depth = attribute(item, "ilvl")
                if local(item) == "lvl" and depth and depth.isdigit():
                    levels[abstract, int(depth)] = _level(item)
        elif local(element) == "num":
            link = child(element, "abstractNumId")
            if link is not None:
                lists[attribute(element, "numId") or ""] = attribute(link, "val") or ""
    return Numbering(lists, levels)


def format_number(number: int, style: str) -> str:
    """`4`, `d`, `IV`: the formats contracts use; others as digits."""
    if style in ("lowerLetter", "upperLetter") and number > 0:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letter.upper() if style == "upperLetter" else letter
    if style in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        roman = _roman(number)
        return roman.upper() if style == "upperRoman" else roman
    if style == "decimalZero":
        return f"{number:02d}"
    return "" if style == "none" else str(number)


def _roman(number: int) -> str:
    signs = ["m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"]
    values = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
    text = ""
    for value, sign in zip(values, signs, strict=True):
        text += sign * (number // value)
        number %= value
    return text


def _style(element: Element) -> Style:
    name, based = child(element, "name"), child(element, "basedOn")
    title = (attribute(name, "val") or "") if name is not None else ""
    properties = child(element, "pPr")
    match = _HEADING_NAME.match(title)
    level = int(match[1]) if match else outline_level(properties)
    if title.lower() == "title":
        level = 1
    place = list_place(properties)
    numbering = (place[0], place[1]) if place and place[0] else None
    return Style(level, attribute(based, "val") if based is not None else None, numbering)


def _inherited(key: str, styles: Mapping[str, Style]) -> Style:
    """The style with what it takes over from those it is based on."""
    own = styles[key]
    level, numbering, seen = own.level, own.numbering, {key}
    parent = own.based_on
    while parent is not None and parent in styles and parent not in seen:
        seen.add(parent)
        level = styles[parent].level if level is None else level
        numbering = styles[parent].numbering if numbering is None else numbering
        parent = styles[parent].based_on
    body = level is not None and level > _NOT_A_HEADING
    return Style(None if body else level, own.based_on, numbering)


def _level(element: Element) -> Level:
    values = {
        local(item): attribute(item, "val") or ""
        for item in element
        if local(item) in ("numFmt", "lvlText", "start")
    }
    start = values.get("start", "1")
    return Level(
        values.get("numFmt", "decimal"),
        values.get("lvlText", ""),
        int(start) if start.isdigit() else 1,
    )
