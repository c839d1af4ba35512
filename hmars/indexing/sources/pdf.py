"""PDF by page, through pdfium (`pypdfium2`)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any

from hmars.errors import EmptyInputError, InputError, MissingExtraError
from hmars.indexing.sources.builder import TextBuilder, one_line, shorten
from hmars.indexing.sources.files import InputFile
from hmars.indexing.sources.limits import MAX_PDF_PAGES
from hmars.indexing.sources.pdf_glyphs import PageGlyphs, page_glyphs
from hmars.indexing.sources.pdf_pages import page_texts
from hmars.model import SourceText

MAX_BOOKMARKS = 5_000
_NO_PAGE = PageGlyphs((), "", 0.0, False, 0)
_WRONG_PASSWORD = 4
_UNKNOWN_SECURITY = 5
_SENTENCE_ENDS = frozenset(".!?:;…。！？")


def load_pdf(file: InputFile) -> SourceText:
    """Text of a PDF with a mark for each page; its contents entries give the context.

    Raises:
        InputError: encrypted (ask for `--password`), damaged, without a text layer.
        MissingExtraError: pypdfium2 is not installed.
    """
    with _opened(file) as (pdfium, document):
        count = len(document)
        if count > MAX_PDF_PAGES:
            raise InputError(
                f"{file.path} has {count:,} pages, more than {MAX_PDF_PAGES:,}: split it."
            )
        builder = TextBuilder(file.path, _title(document))
        pages, broken = _read_pages(pdfium, document, count)
        contexts = _contexts(document, count, pdfium.PdfiumError)
    texts = [
        "\n\n".join(part for part in (text, page.sideways) if part.strip())
        for text, page in zip(_texts(pages), pages, strict=True)
    ]
    _add_pages(builder, texts, contexts)
    _warn(builder, texts, pages, broken)
    if builder.blank:
        raise EmptyInputError(
            f"{file.path} has no text layer: {count} page{'s' if count > 1 else ''}; run OCR first."
        )
    return builder.build()


@contextmanager
def _opened(file: InputFile) -> Generator[tuple[Any, Any]]:
    try:
        pdfium: Any = import_module("pypdfium2")
    except ImportError:
        raise MissingExtraError(f"Reading the PDF file {file.path}", "documents") from None
    try:
        document = pdfium.PdfDocument(file.path, password=file.password)
    except pdfium.PdfiumError as error:
        raise _refusal(file, getattr(error, "err_code", None)) from None
    with closing(document):
        if not len(document):
            raise _refusal(file, None)
        yield pdfium, document


def _refusal(file: InputFile, code: int | None) -> InputError:
    if code == _WRONG_PASSWORD and file.password is None:
        return InputError(f"{file.path} is encrypted: give its password with --password.")
    if code == _WRONG_PASSWORD:
        return InputError(f"{file.path} is encrypted and the given password does not open it.")
    if code == _UNKNOWN_SECURITY:
        return InputError(f"{file.path} is encrypted in a way that is not supported: decrypt it.")
    return InputError(
        f"{file.path} is a damaged PDF: it cannot be opened; get it again or repair it."
    )


def _read_pages(pdfium: Any, document: Any, count: int) -> tuple[list[PageGlyphs], list[int]]:  # noqa: ANN401
    pages: list[PageGlyphs] = []
    broken: list[int] = []
    for index in range(count):
        try:
            with closing(document[index]) as page, closing(page.get_textpage()) as textpage:
                pages.append(page_glyphs(page, textpage))
        except pdfium.PdfiumError:
            pages.append(_NO_PAGE)
            broken.append(index + 1)
    return pages, broken


def _texts(pages: Sequence[PageGlyphs]) -> Iterator[str]:
    return page_texts([page.segments for page in pages], [page.height for page in pages])


def _add_pages(builder: TextBuilder, texts: Sequence[str], contexts: Sequence[str]) -> None:
    for index, text in enumerate(texts):
        if text.strip():
            builder.place(f"p. {index + 1}", contexts[index])
            # A sentence that runs over the page is not cut by a blank line.
            ended = text.rstrip()[-1] in _SENTENCE_ENDS
            builder.block(text, end="\n\n" if ended else "\n")


def _warn(
    builder: TextBuilder, texts: Sequence[str], pages: Sequence[PageGlyphs], broken: Sequence[int]
) -> None:
    empty = [i + 1 for i, text in enumerate(texts) if not text.strip() and i + 1 not in broken]
    halves = [i + 1 for i, page in enumerate(pages) if page.lone_surrogates]
    cut = [i + 1 for i, page in enumerate(pages) if page.cut]
    for numbers, problem in (
        (empty, "no text layer: run OCR first"),
        (broken, "damage and were left out"),
        (cut, "more text than one page can hold, cut there"),
        (halves, "characters that the PDF does not map to Unicode, shown as U+FFFD"),
    ):
        if numbers:
            some = f"{len(numbers)} of {len(pages)} pages ({number_ranges(numbers)})"
            builder.warn(f"{some} have {problem}.")


def number_ranges(numbers: Iterable[int]) -> str:
    """`2, 5-7`"""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def _title(document: Any) -> str:  # noqa: ANN401
    title: str = document.get_metadata_value("Title")
    return title


def _contexts(document: Any, count: int, failure: type[Exception]) -> list[str]:  # noqa: ANN401
    """For each page the path of contents entries it stands under."""
    starts: dict[int, str] = {}
    path: list[tuple[int, str]] = []
    try:
        for number, bookmark in enumerate(document.get_toc()):
            if number >= MAX_BOOKMARKS:
                break
            level: int = bookmark.level
            path = [entry for entry in path if entry[0] < level]
            path.append((level, shorten(one_line(bookmark.get_title()))))
            target = bookmark.get_dest()
            index: int | None = target.get_index() if target is not None else None
            if index is not None:
                starts.setdefault(index, " > ".join(title for _, title in path if title))
    except failure:
        return [""] * count
    current, contexts = "", list[str]()
    for index in range(count):
        current = starts.get(index, current)
        contexts.append(current)
    return contexts
