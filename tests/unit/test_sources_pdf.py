"""PDF files: reading order, running lines, pages without text, passwords."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sources_builders import PdfPage, lines, pdf

from hmars.errors import EmptyInputError, InputError, MissingExtraError
from hmars.indexing.sources import load

pytest.importorskip("pypdfium2")

LEFT = [f"The western keeper writes line {n} here" for n in range(1, 13)]
RIGHT = [f"An eastern keeper answers line {n} there" for n in range(1, 13)]


def save(tmp_path: Path, data: bytes, name: str = "paper.pdf") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def order(text: str, parts: list[str]) -> list[int]:
    return [text.index(part) for part in parts]


def test_each_page_is_a_place_with_its_number(tmp_path: Path) -> None:
    path = save(tmp_path, pdf([PdfPage(lines([f"Page {n} text."])) for n in (1, 2, 3)]))
    source = load(path)
    assert [mark.label for mark in source.marks] == ["p. 1", "p. 2", "p. 3"]
    for number, mark in enumerate(source.marks, start=1):
        assert source.text[mark.start :].startswith(f"Page {number} text.")
    assert source.source == str(path)


def test_two_columns_are_read_left_then_right_whatever_the_order_in_the_file(
    tmp_path: Path,
) -> None:
    left, right = lines(LEFT), lines(RIGHT, x=330)
    columns = PdfPage([*left, *right])
    interleaved = PdfPage([item for pair in zip(left, right, strict=True) for item in pair])
    for page in (columns, interleaved):
        text = load(save(tmp_path, pdf([page]))).text
        assert order(text, [*LEFT, *RIGHT]) == sorted(order(text, [*LEFT, *RIGHT]))


def test_a_title_over_two_columns_comes_first(tmp_path: Path) -> None:
    title = "A report on the lamps of the northern coast and on those who keep them lit at night"
    page = PdfPage([(72, 740, title), *lines(LEFT), *lines(RIGHT, x=330)])
    text = load(save(tmp_path, pdf([page]))).text
    assert text.index(title) < text.index(LEFT[0]) < text.index(LEFT[-1]) < text.index(RIGHT[0])


def test_a_table_of_numbers_is_read_row_by_row(tmp_path: Path) -> None:
    names = ["Net income", "Depreciation", "Trade receivables", "Income taxes", "Deferred revenue"]
    texts = lines(names)
    for column, x in enumerate((330, 420)):
        texts += lines([f"{(n + 1) * 1000 + column}" for n in range(len(names))], x=x)
    text = load(save(tmp_path, pdf([PdfPage(texts)]))).text
    assert "Net income  1000  1001\n" in text
    assert "Deferred revenue  5000  5001" in text


def test_words_divided_at_line_ends_are_joined(tmp_path: Path) -> None:
    page = PdfPage(lines(["The keeper of the light-", "house has a long-", "term post."]))
    other = PdfPage(lines(["A lighthouse needs a long-term plan, and long-term money."]))
    text = load(save(tmp_path, pdf([page, other]))).text
    assert "The keeper of the lighthouse\nhas a long-term\npost." in text


def test_running_headers_and_footers_do_not_interrupt_sentences(tmp_path: Path) -> None:
    pages = [
        PdfPage(
            [
                (72, 760, "Harbour Authority Annual Report"),
                *lines([f"Sentence {n} goes on", f"and on with number {n} until it"]),
                (300, 30, f"Page {n} of 6"),
            ]
        )
        for n in range(1, 7)
    ]
    text = load(save(tmp_path, pdf(pages))).text
    assert text.count("Harbour Authority Annual Report") == 1
    assert text.count("Page ") <= 1
    assert "number 3 until it\nSentence 4 goes on" in text


def test_last_rows_of_tables_are_not_taken_for_footers(tmp_path: Path) -> None:
    pages = [
        PdfPage([*lines(["Crew of the boat"]), *lines(["Invoice", f"Total {n}"], top=60)])
        for n in range(1, 7)
    ]
    text = load(save(tmp_path, pdf(pages))).text
    assert all(f"Total {n}" in text for n in range(1, 7))


def test_pages_without_text_are_named_and_numbers_stay_right(tmp_path: Path) -> None:
    pages = [PdfPage(lines(["Letter."])), PdfPage(image=True), PdfPage(image=True)]
    source = load(save(tmp_path, pdf([*pages, PdfPage(lines(["Annex."]))])))
    assert [mark.label for mark in source.marks] == ["p. 1", "p. 4"]
    assert source.warnings == ("2 of 4 pages (2-3) have no text layer: run OCR first.",)


def test_a_scan_is_an_error_that_counts_its_pages(tmp_path: Path) -> None:
    with pytest.raises(EmptyInputError, match="no text layer: 2 pages; run OCR"):
        load(save(tmp_path, pdf([PdfPage(image=True)] * 2)))


def test_an_encrypted_file_asks_for_its_password_and_opens_with_it(tmp_path: Path) -> None:
    path = save(tmp_path, pdf([PdfPage(lines(["Vault sheet 5."]))], password="k3y-of-keys"))
    with pytest.raises(InputError, match="is encrypted: give its password with --password"):
        load(path)
    assert "Vault sheet 5." in load(path, password="k3y-of-keys").text


def test_a_wrong_password_is_said_without_showing_it(tmp_path: Path) -> None:
    path = save(tmp_path, pdf([PdfPage(lines(["Vault."]))], password="k3y-of-keys"))
    with pytest.raises(InputError, match="password does not open it") as caught:
        load(path, password="wr0ng-word")
    assert "wr0ng-word" not in str(caught.value)


@pytest.mark.parametrize("keep", [5, 60, 300])
def test_a_cut_file_is_damaged_or_read_never_a_crash(tmp_path: Path, keep: int) -> None:
    data = pdf([PdfPage(lines(["Some words."]))])
    with pytest.raises(InputError, match=r"paper\.pdf is a damaged PDF"):
        load(save(tmp_path, data[:keep]))


def test_halves_of_surrogate_pairs_are_repaired_and_named(tmp_path: Path) -> None:
    data = pdf(
        [PdfPage([(72, 700, "tide A level B ok")])],
        to_unicode="\n".join(
            ["<41> <D83D>", "<42> <D83DDE00>"]
            + [f"<{ord(char):02X}> <{ord(char):04X}>" for char in sorted(set("tide level ok"))]
        ),
    )
    source = load(save(tmp_path, data))
    assert source.text.strip() == "tide \ufffd level \U0001f600 ok"
    assert "(1)" in source.warnings[0]
    assert "U+FFFD" in source.warnings[0]


def test_bookmarks_give_the_context_of_pages(tmp_path: Path) -> None:
    pages = [PdfPage(lines([f"Text {n}."])) for n in range(4)]
    data = pdf(pages, outline=[("Boats", 1), ("Lamps", 3)])
    source = load(save(tmp_path, data))
    assert [mark.context for mark in source.marks] == ["", "Boats", "Boats", "Lamps"]


def test_a_page_of_sideways_text_is_read_as_it_is_held(tmp_path: Path) -> None:
    texts = [(100.0 + 14 * n, 72.0, f"Sideways line {n} of the table") for n in range(5)]
    for rotate in (0, 90):
        page = PdfPage(texts, matrix="0 1 -1 0", rotate=rotate)
        text = load(save(tmp_path, pdf([page]))).text
        found = order(text, [f"Sideways line {n}" for n in range(5)])
        assert found == sorted(found)


def test_a_stamp_in_the_margin_does_not_break_lines(tmp_path: Path) -> None:
    stamp = "BT /F1 10 Tf 0 1 -1 0 30 300 Tm (draft of Monday) Tj ET"
    page = PdfPage(lines(["One line of text", "and the next one."]), extra=[stamp])
    text = load(save(tmp_path, pdf([page]))).text
    assert "One line of text\nand the next one." in text
    assert "draft of Monday" in text


def test_six_hundred_pages_are_read_with_their_numbers(tmp_path: Path) -> None:
    pages = [
        PdfPage(lines([f"Entry {n}.", "A lamp was lit.", "A boat came in."])) for n in range(600)
    ]
    source = load(save(tmp_path, pdf(pages)))
    assert len(source.marks) == 600
    assert source.text[source.marks[437].start :].startswith("Entry 437.")
    assert source.marks[437].label == "p. 438"


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(MissingExtraError, match=r"hmars\[documents\]"):
        load(save(tmp_path, pdf([PdfPage(lines(["Text."]))])))
