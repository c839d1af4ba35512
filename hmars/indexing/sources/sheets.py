"""Tables: workbooks (openpyxl) and delimited text. A place is a run of rows."""

from __future__ import annotations

import csv
import datetime as dt
import io
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain, islice
from typing import Any

from hmars.errors import InputError, MissingExtraError
from hmars.indexing.sources.archive import open_archive
from hmars.indexing.sources.builder import TextBuilder, part_size, row_line
from hmars.indexing.sources.files import InputFile
from hmars.indexing.sources.limits import MAX_CELLS
from hmars.indexing.sources.reading import read_text
from hmars.indexing.text_source import text_source
from hmars.model import SourceText

_SNIFF_CHARS = 20_000
_DELIMITERS = ",;\t|"
_HEADER_ROWS = 10
"""The header row is looked for in so many rows."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str
    filled: int


def load_xlsx(file: InputFile) -> SourceText:
    """Each sheet's filled rows under its header row; values as last computed, no macros.

    Raises:
        InputError: damaged, or more than `MAX_CELLS` filled cells.
        MissingExtraError: openpyxl is not installed.
    """
    try:
        openpyxl: Any = import_module("openpyxl")
    except ImportError:
        raise MissingExtraError(f"Reading the workbook {file.path}", "documents") from None
    _measure(file)
    builder = TextBuilder(file.path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of styles it does not know
            book = openpyxl.load_workbook(
                file.path, read_only=True, data_only=True, keep_links=False
            )
            try:
                _add_sheets(builder, book)
            finally:
                book.close()
    except (
        zipfile.BadZipFile,
        OSError,
        KeyError,
        ValueError,
        TypeError,
        SyntaxError,
        EOFError,
    ) as error:
        raise InputError(
            f"{file.path} is a damaged workbook: {error}; open it in its program and save it again."
        ) from None
    return builder.build()


def load_delimited(file: InputFile) -> SourceText:
    """CSV and TSV: one line a row, the header row again at each part."""
    read = read_text(file)
    text = read.text
    sample = text[:_SNIFF_CHARS]
    if file.path.suffix.lower() == ".tsv":
        delimiter = "\t"
    else:
        try:
            delimiter = csv.Sniffer().sniff(sample, _DELIMITERS).delimiter
        except csv.Error:
            delimiter = ","
    builder = TextBuilder(file.path)
    for warning in read.warnings:
        builder.warn(warning)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        _add_rows(builder, "", ((number, row) for number, row in enumerate(rows, start=1)))
    except csv.Error as error:
        found = text_source(text, str(file.path.absolute()), file.path.name)
        warning = f"Not readable as a table ({error}): kept as plain text."
        return replace(found, warnings=(*read.warnings, *found.warnings, warning))
    return builder.build()


def _measure(file: InputFile) -> None:
    """Unpack all parts once within the limits, since openpyxl has none of its own."""
    with open_archive(file.path, "workbook") as archive:
        for name in archive.names:
            if name.endswith((".xml", ".rels")):
                for _ in archive.events(name):
                    pass


def _add_sheets(builder: TextBuilder, book: Any) -> None:  # noqa: ANN401
    cells = 0
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # the stated size may be wrong, or a trap
        rows: list[tuple[int, list[str]]] = []
        for number, row in enumerate(sheet.iter_rows(), start=1):
            values = [_shown(cell) for cell in row]
            filled = sum(bool(value) for value in values)
            cells += filled
            if cells > MAX_CELLS:
                raise InputError(
                    f"{builder.path} has more than {MAX_CELLS:,} filled cells: split it."
                )
            if filled:
                rows.append((number, values))
        _add_rows(builder, sheet.title, rows)


def _add_rows(builder: TextBuilder, sheet: str, rows: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Write rows in parts; each part is a place and begins with the header row."""
    lines = (_Line(number, row_line(row), sum(map(bool, row))) for number, row in rows)
    filled = (line for line in lines if line.filled)
    top = list(islice(filled, _HEADER_ROWS))
    if not top:
        return
    header = _header(top)
    name = f"{sheet} " if sheet else ""
    for part in _parts(chain(top, filled), header):
        start, end = part[0].number, part[-1].number
        span = f"row {start}" if start == end else f"rows {start}–{end}"
        builder.place(f"{name}{span}", context=sheet)
        repeated = [header.text] if start > header.number else []
        title = [f"[{sheet}]"] if sheet else []
        builder.block("\n".join([*title, *repeated, *(line.text for line in part)]))


def _header(top: Sequence[_Line]) -> _Line:
    """The first row that is about as wide as the table: titles above it are narrower."""
    widest = max(line.filled for line in top)
    return next(line for line in top if line.filled >= widest / 2)


def _parts(lines: Iterable[_Line], header: _Line) -> Iterator[list[_Line]]:
    limit, size = part_size(header.text), 0
    part: list[_Line] = []
    for line in lines:
        if part and size + len(line.text) > limit and part[-1].number > header.number:
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line.text) + 1
    yield part


def _shown(cell: Any) -> str:  # noqa: ANN401
    """A value as a reader of the sheet sees it, near enough."""
    value: object = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, dt.datetime):
        midnight = value.time() == dt.time()
        return value.date().isoformat() if midnight else value.isoformat(" ", "minutes")
    if isinstance(value, float | int):
        if "%" in str(cell.number_format or ""):
            return f"{value * 100:.6g}%"
        return f"{value:.15g}" if isinstance(value, float) else str(value)
    return str(value)
