"""HTML as a list of blocks: what a reader of the page sees, in order.

The parser of the standard library never fails on broken markup and never fetches anything;
scripts, styles, hidden parts and furigana are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal

MAX_BLOCK_CHARS = 4_000_000
MAX_SPAN = 100
"""Columns one cell may span; more is a mistake in the page."""
LAYOUT_CELL_CHARS = 800
"""A table with a longer cell arranges the page: its cells are read as blocks."""

_DROP = frozenset((
    "script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas",
    "audio", "video", "select", "button", "textarea", "rt", "rp", "annotation",
    "annotation-xml",
))  # fmt: skip
_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param",
    "source", "track", "wbr", "frame",
))  # fmt: skip
_BREAKS = frozenset((
    "p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "form",
    "fieldset", "ul", "ol", "dl", "dt", "dd", "li", "figure", "figcaption", "blockquote",
    "address", "center", "details", "summary", "hr", "tr", "td", "th", "table", "caption",
    "title", "thead", "tbody", "tfoot", "body", "h1", "h2", "h3", "h4", "h5", "h6", "pre",
    "abstract", "sec", "ref", "ref-list", "fig", "ack",
))  # fmt: skip
_ARTICLE_BREAKS = frozenset((
    "article-title", "contrib", "aff", "kwd-group", "kwd", "subj-group", "permissions", "corresp",
    "author-notes", "fn", "pub-date", "award-group", "mixed-citation", "element-citation",
    "table-wrap", "disp-formula", "journal-meta", "counts", "label", "license", "notes",
))  # fmt: skip
"""Blocks of a JATS article besides those it shares with HTML."""
_INLINE = frozenset((
    "italic", "bold", "sup", "sub", "xref", "sc", "underline", "monospace", "ext-link", "uri",
    "named-content", "styled-content", "inline-formula",
))  # fmt: skip
_FRAME = frozenset(["nav", "aside", "header", "footer", "form"])
_MAIN = frozenset({"main", "article"})
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\r\n\f]+")
_HEADING = re.compile(r"^h([1-6])$")


@dataclass(frozen=True, slots=True)
class Block:
    kind: Literal["text", "heading", "table"]
    text: str
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()
    main: bool = False
    """Inside the part the page declares as its main text."""
    frame: bool = False
    """Inside navigation, header, footer, sidebar or form."""


@dataclass(slots=True)
class _Cell:
    blocks: list[Block] = field(default_factory=list[Block])
    span: int = 1


@dataclass(slots=True)
class _Table:
    rows: list[list[_Cell]] = field(default_factory=list[list[_Cell]])


@dataclass(slots=True)
class _List:
    ordered: bool
    number: int = 0


class HtmlReader(HTMLParser):
    """Feed it once with the whole page; then `blocks` and `title` are complete."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.title = ""
        self._buffer: list[str] = []
        self._level = 0
        self._dropped: list[str] = []
        self._in_title = False
        self._main = 0
        self._frame: list[str] = []
        self._tables: list[_Table] = []
        self._lists: list[_List] = []
        self._prefix = ""
        self._pre = 0
        self._sections = 0
        self._scientific = False
        self._in_references = False

    # -------------------------------------------------------- events of the parser

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        tag = tag.rpartition(":")[2] if tag.startswith(("html:", "xhtml:")) else tag
        if tag == "title" and not self.title and self._dropped in ([], ["head"]):
            self._in_title = not self._scientific
        if self._dropped:
            if tag in (self._dropped[-1], "head") and tag not in _VOID:
                self._dropped.append(tag)
            if tag != "body":
                return
            self._dropped.clear()
        values = dict(attrs)
        if tag in _DROP or (tag not in _VOID and _is_hidden(values)):
            if tag not in _VOID:
                self._dropped.append(tag)
            return
        self._open(tag, values)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID or tag in ("td", "th", "p", "div"):
            self.handle_starttag(tag, attrs)
        if tag not in _VOID and tag in ("td", "th", "p", "div"):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        tag = tag.rpartition(":")[2] if tag.startswith(("html:", "xhtml:")) else tag
        if tag == "title":
            self._in_title = False
        if self._dropped:
            if tag == self._dropped[-1]:
                self._dropped.pop()
            return
        self._shut(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        if not self._dropped:
            self._buffer.append(data)

    def close(self) -> None:
        super().close()
        self._flush()
        while self._tables:
            self._end_table()

    # -------------------------------------------------------- structure

    def _open(self, tag: str, values: dict[str, str | None]) -> None:
        heading = _HEADING.match(tag)
        if tag == "br":
            self._buffer.append("\n" if self._pre else "\x0b")
            return
        if self._breaks(tag):
            self._flush()
        if heading:
            self._level = int(heading.group(1))
        elif self._scientific and tag in ("title", "article-title") and not self._in_references:
            self._level = min(self._sections + 1, 6)
        elif tag in ("article", "sec"):
            self._scientific = self._scientific or "article-type" in values
            self._sections += tag == "sec"
        elif tag == "ref-list":
            self._in_references = True
        if tag in _MAIN or values.get("role") == "main":
            self._main += 1
        if tag in _FRAME:
            self._frame.append(tag)
        self._open_list(tag)
        self._open_table(tag, values)
        self._pre += tag == "pre"

    def _breaks(self, tag: str) -> bool:
        return tag in _BREAKS or (self._scientific and tag in _ARTICLE_BREAKS)

    def _open_list(self, tag: str) -> None:
        if tag in ("ul", "ol"):
            self._lists.append(_List(tag == "ol"))
        elif tag == "li":
            depth = max(len(self._lists) - 1, 0)
            sign = "-"
            if self._lists and self._lists[-1].ordered:
                self._lists[-1].number += 1
                sign = f"{self._lists[-1].number}."
            self._prefix = f"{'  ' * min(depth, 8)}{sign} "

    def _open_table(self, tag: str, values: dict[str, str | None]) -> None:
        if tag == "table":
            self._tables.append(_Table())
        elif self._tables and tag == "tr":
            self._tables[-1].rows.append([])
        elif self._tables and tag in ("td", "th"):
            table = self._tables[-1]
            if not table.rows:
                table.rows.append([])
            span = values.get("colspan") or ""
            wide = min(int(span), MAX_SPAN) if span.isascii() and span.isdigit() else 1
            table.rows[-1].append(_Cell(span=max(wide, 1)))

    def _shut(self, tag: str) -> None:
        if self._breaks(tag):
            self._flush()
        if _HEADING.match(tag) or tag in ("title", "article-title"):
            self._level = 0
        elif tag == "table" and self._tables:
            self._end_table()
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._pre = max(self._pre - 1, 0)
        elif tag == "sec":
            self._sections = max(self._sections - 1, 0)
        if self._scientific and tag not in _INLINE:
            self._buffer.append(" ")  # names, years and the like stand in elements of their own
        if tag in _MAIN:
            self._main = max(self._main - 1, 0)
        if tag in self._frame:
            del self._frame[self._frame.index(tag) :]

    def _flush(self) -> None:
        raw = "".join(self._buffer)
        self._buffer.clear()
        if self._pre:
            text = raw.replace("\x0b", "\n").strip("\n")
        else:
            lines = (_SPACE.sub(" ", line).strip(" ") for line in raw.split("\x0b"))
            text = "\n".join(lines).strip("\n ")
        if not text.strip():
            return
        prefix, self._prefix = self._prefix, ""
        if self._level:
            self._emit(self._block("heading", text, level=self._level))
        else:
            self._emit(self._block("text", prefix + text[:MAX_BLOCK_CHARS]))

    def _block(
        self,
        kind: Literal["text", "heading", "table"],
        text: str,
        level: int = 0,
        rows: tuple[tuple[str, ...], ...] = (),
    ) -> Block:
        return Block(kind, text, level, rows, self._main > 0, bool(self._frame))

    def _emit(self, block: Block) -> None:
        table = self._tables[-1] if self._tables else None
        if table is not None and table.rows and table.rows[-1]:
            table.rows[-1][-1].blocks.append(block)
        else:
            self.blocks.append(block)

    def _end_table(self) -> None:
        table = self._tables.pop()
        cells = [cell for row in table.rows for cell in row if cell.blocks]
        nested = any(block.kind == "table" for cell in cells for block in cell.blocks)
        long = any(sum(len(b.text) for b in cell.blocks) > LAYOUT_CELL_CHARS for cell in cells)
        rows = _grid(table)
        if nested or long or max((len(row) for row in rows), default=0) <= 1:
            for cell in cells:
                for block in cell.blocks:
                    self._emit(block)
        elif len(rows) == 1:
            # One row is how old pages set bullets and number paragraphs.
            self._emit(self._block("text", " ".join(filter(None, rows[0]))))
        elif rows:
            text = "\n".join(" | ".join(row) for row in rows)
            self._emit(self._block("table", text, rows=tuple(rows)))


def _is_hidden(values: dict[str, str | None]) -> bool:
    return "hidden" in values or bool(_HIDDEN.search(values.get("style") or ""))


def _grid(table: _Table) -> list[tuple[str, ...]]:
    """Rows of cell texts with spans filled, without columns that are empty everywhere."""
    rows: list[list[str]] = []
    for row in table.rows:
        line: list[str] = []
        for cell in row:
            text = " ".join(_SPACE.sub(" ", block.text) for block in cell.blocks)
            line += [text.strip(), *[""] * (cell.span - 1)]
        if any(line):
            rows.append(line)
    width = max((len(line) for line in rows), default=0)
    full = [line + [""] * (width - len(line)) for line in rows]
    used = [column for column in range(width) if any(line[column] for line in full)]
    return [tuple(line[column] for column in used) for line in full]
