"""What becomes of real documents, and whether page labels say where the evidence stands.

    python -m benchmarks.documents --data DIR [--files]

`DIR/awkward_docs` holds files of many formats, some broken on purpose: the first table counts
outcomes by format. `DIR/financebench` and `DIR/cuad` hold PDF files with annotated evidence: the
second table counts evidence whose page in hmars carries the label of its page in the PDF.
`--files` prints a line for each file too.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hmars.errors import EmptyInputError, HmarsError, InputError, MissingExtraError
from hmars.indexing.partition import partition
from hmars.indexing.sources import find_files, load
from hmars.model import Page, SourceText
from hmars.settings import PartitionSettings
from hmars.tokens import load_tokenizer

OUTCOMES = ("ok", "with warning", "empty", "no text layer", "encrypted", "damaged", "refused",
            "missing extra", "broken tiling")  # fmt: skip
KEY_CHARS = 80
"""Letters and digits of a span that are searched for."""
MIN_KEY_CHARS = 15
_NUMBERS = re.compile(r"p\. (\d+)(?:–(\d+))?")
_ANY = re.compile(r"\w{2,}")


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    detail: str
    seconds: float
    pages: int


@dataclass(frozen=True, slots=True)
class Score:
    matched: int
    total: int
    left_out: int
    """Annotations that do not stand in the PDF exactly once, so that no page is theirs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--files", action="store_true", help="print a line for each file")
    options = parser.parse_args()
    folder: Path = options.data
    if (folder / "awkward_docs").is_dir():
        outcomes(folder / "awkward_docs", options.files)
    for name, measure in (("financebench", financebench), ("cuad", cuad)):
        if (folder / name / "pdf").is_dir():
            score = measure(folder / name)
            share = score.matched / max(score.total, 1)
            print(f"{name}: label right {score.matched}/{score.total} ({share:.1%}), ", end="")
            print(f"{score.left_out} annotations without one page in the PDF")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process: {peak:.0f} MiB")


def pages_of(source: SourceText) -> list[Page]:
    """Pages with the sizes of the default profile."""
    pages = [
        page
        for region in partition(
            source, load_tokenizer("words"), PartitionSettings(), "benchmark"
        ).regions
        for page in region.pages
    ]
    if "".join(page.text for page in pages) != source.text:
        raise AssertionError(f"the pages of {source.source} do not tile its text")
    return pages


# ---------------------------------------------------------------- outcomes


def outcomes(folder: Path, show_files: bool) -> None:
    """Print format x outcome, then every file that is not plainly ok."""
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seconds: Counter[str] = Counter()
    lines: list[str] = []
    for path in find_files([folder]):
        found = _outcome(path)
        kind = path.suffix.lower() or "(none)"
        table[kind][found.name] += 1
        seconds[kind] += found.seconds  # type: ignore[assignment]
        if show_files or found.name not in ("ok", "with warning"):
            name = path.relative_to(folder).as_posix()
            detail = found.detail.replace(str(path), "it")
            lines.append(f"- {name}: {found.name}, {found.seconds:.2f} s. {detail}".rstrip())
    used = [name for name in OUTCOMES if any(row[name] for row in table.values())]
    print(f"| format | {' | '.join(used)} | seconds |")
    print(f"|---|{'---|' * len(used)}---|")
    for kind in sorted(table):
        cells = " | ".join(str(table[kind][name] or "") for name in used)
        print(f"| {kind} | {cells} | {seconds[kind]:.2f} |")
    total = {name: sum(row[name] for row in table.values()) for name in used}
    print(f"| all | {' | '.join(map(str, total.values()))} | {sum(seconds.values()):.2f} |")
    print("\n".join(["", *lines, ""]))


def _outcome(path: Path) -> Outcome:
    begun = time.perf_counter()
    name, detail, pages = "ok", "", 0
    try:
        source = load(path)
        pages = len(pages_of(source))
        if source.warnings:
            name, detail = "with warning", " ".join(source.warnings)
    except AssertionError as error:
        name, detail = "broken tiling", str(error)
    except HmarsError as error:
        name, detail = _failure(error), str(error)
    return Outcome(name, detail, time.perf_counter() - begun, pages)


def _failure(error: HmarsError) -> str:
    text = str(error)
    if isinstance(error, MissingExtraError):
        return "missing extra"
    if "no text layer" in text:
        return "no text layer"
    if isinstance(error, EmptyInputError):
        return "empty"
    if not isinstance(error, InputError):
        raise error
    return next((word for word in ("encrypted", "damaged") if word in text), "refused")


# ---------------------------------------------------------------- labels


def financebench(folder: Path) -> Score:
    """Each evidence text is annotated with its page in the PDF, from 0."""
    matched = total = 0
    pages: dict[str, list[Page]] = {}
    for question in _records(folder / "questions.jsonl"):
        for evidence in question["evidence"]:
            pdf = folder / "pdf" / f"{evidence['doc_name']}.pdf"
            if not pdf.is_file():
                continue
            if pdf.name not in pages:
                pages[pdf.name] = pages_of(load(pdf))
            best = _best_page(pages[pdf.name], evidence["evidence_text"])
            total += 1
            matched += _covers(best.label, int(evidence["evidence_page_num"]) + 1)
    return Score(matched, total, 0)


def cuad(folder: Path) -> Score:
    """Spans are annotated in a text edition: the page is that of the PDF's own raw text."""
    matched = total = left_out = 0
    files: dict[str, tuple[list[str], list[Page]]] = {}
    pdfs = {path.stem: path for path in sorted((folder / "pdf").iterdir())}
    for record in _records(folder / "clauses.jsonl"):
        pdf = pdfs.get(Path(record["contract"]).stem)
        if pdf is None:
            continue
        if pdf.stem not in files:
            files[pdf.stem] = [_key(text) for text in _raw_pages(pdf)], pages_of(load(pdf))
        raw, pages = files[pdf.stem]
        for span in record["spans"]:
            key = _key(span["text"])[:KEY_CHARS]
            holders = [number for number, text in enumerate(raw, start=1) if key in text]
            if len(key) < MIN_KEY_CHARS or len(holders) != 1:
                left_out += 1
                continue
            total += 1
            page = _page_with(pages, key)
            matched += page is not None and _covers(page.label, holders[0])
    return Score(matched, total, left_out)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _raw_pages(pdf: Path) -> list[str]:
    """Text as the PDF stores it, page by page, without any of hmars' reading order."""
    import pypdfium2

    document: Any = pypdfium2.PdfDocument(pdf)
    return [document[index].get_textpage().get_text_range() for index in range(len(document))]


def _best_page(pages: Sequence[Page], evidence: str) -> Page:
    """The page that holds most of the evidence, by its words in threes."""
    wanted = _threes(evidence)
    share: Callable[[Page], int] = lambda page: len(wanted & _threes(page.text))  # noqa: E731
    return max(pages, key=share)


def _threes(text: str) -> set[tuple[str, ...]]:
    words = _ANY.findall(text.casefold())
    return set(zip(words, words[1:], words[2:], strict=False))


def _page_with(pages: Sequence[Page], key: str) -> Page | None:
    """The page where the span begins; a span may run on over the edge."""
    keys = [_key(page.text) for page in pages]
    place = "".join(keys).find(key)
    if place < 0:
        return None
    for page, text in zip(pages, keys, strict=True):
        if place < len(text):
            return page
        place -= len(text)
    return None


def _key(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _covers(label: str, number: int) -> bool:
    found = _NUMBERS.search(label)
    if found is None:
        return False
    return int(found[1]) <= number <= int(found[2] or found[1])


if __name__ == "__main__":
    main()
