from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.text_source import clean, decode, headings, text_source

GERMAN = "Über die Straße gehen viele Leute, die schöne Äpfel mögen. " * 5
RUSSIAN = "Каждое утро смотритель маяка записывал погоду в толстую тетрадь. " * 5
JAPANESE = "灯台の番人は毎朝、厚い帳面に天気を書きとめた。港では船が待っている。" * 5


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_dropped_and_obeyed(encoding: str) -> None:
    text = "# Overview\r\n\r\nNine lamps, ä 𠮷.\x00\n"
    assert decode(text.encode(encoding), "lamps.md").text == text


def test_a_heading_after_a_byte_order_mark_is_found_at_offset_zero() -> None:
    plain, marked = (
        ("# Overview\n\nNine lamps.\n").encode(code) for code in ("utf-8", "utf-8-sig")
    )
    assert text_source(plain, "a", "a").marks == text_source(marked, "a", "a").marks
    assert text_source(marked, "a", "a").marks[0].start == 0


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(GERMAN, "cp1252"), (RUSSIAN, "cp1251"), (RUSSIAN, "koi8_r"), (JAPANESE, "cp932"),
     (JAPANESE, "euc_jp"), ("café au lait", "cp1252"), (GERMAN, "utf-16-le")],
)  # fmt: skip
def test_other_encodings_are_detected_and_said(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding), "old.txt")
    assert decoded.text == text
    assert decoded.warnings[0].startswith("old.txt ")


@pytest.mark.parametrize(
    "data", [b"%PDF-1.7 ...", b"\x89PNG\r\n\x1a\n", bytes(range(256)) * 9, b"\x00" * 900]
)
def test_binary_files_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(InputError, match=r"photo\.txt is a binary file"):
        decode(data, "photo.txt")


def test_bytes_that_no_encoding_explains_are_refused() -> None:
    with pytest.raises(InputError, match=r"odd\.txt is not valid utf-16-le at byte 2"):
        decode(b"\xff\xfea\x00b", "odd.txt")


def test_utf8_cut_inside_a_character_stays_utf8_and_says_so() -> None:
    decoded = decode((GERMAN + "ä").encode()[:-1], "cut.txt")
    assert decoded.encoding == "utf-8"
    assert decoded.text == GERMAN + "\ufffd"
    assert "1 damaged places" in decoded.warnings[0]


@given(st.text())
def test_utf8_is_read_back_exactly(text: str) -> None:
    if not text.startswith("\ufeff") and not set(text) & set(map(chr, range(32))):
        assert decode(("plain words " * 9 + text).encode(), "x").text == "plain words " * 9 + text


def test_surrogate_pairs_are_joined_and_lone_ones_counted() -> None:
    text, warnings = clean("a\ud83d\ude00b\ud83dc\ude00")
    assert text == "a😀b\ufffdc\ufffd"
    assert warnings == ("2 unpaired surrogates were replaced by U+FFFD.",)
    assert clean("plain") == ("plain", ())


@given(st.text(st.characters(categories=["Cs", "Lu", "So"])))
def test_clean_text_can_always_be_stored(text: str) -> None:
    assert clean(clean(text)[0]) == (clean(text)[0], ())
    clean(text)[0].encode("utf-8")


@pytest.mark.parametrize("blank", ["", " \n\t", "\u00a0\u200b\ufeff\n", b"", b"\xef\xbb\xbf \n"])
def test_a_blank_file_is_empty_and_named(blank: str | bytes) -> None:
    with pytest.raises(EmptyInputError, match=r"blank\.txt is empty"):
        text_source(blank, "blank.txt", "blank")


def test_markdown_headings_give_paths_and_code_fences_hide_comments() -> None:
    text = (
        "# Manual #\r\n\r\nIntro\r\n\r\n## Setup\r\n\r\n```sh\r\n# not a heading\r\n```\r\n"
        "### Lamps\n#hashtag\nUse\n---\nprose\n\nAppendix\n========\n"
    )
    found = headings(text)
    assert [mark.label for mark in found] == [
        "§ Manual", "§ Manual > Setup", "§ Manual > Setup > Lamps", "§ Appendix",
    ]  # fmt: skip
    assert [mark.level for mark in found] == [1, 2, 3, 1]
    assert text[found[1].start :].startswith("## Setup")
    assert found[2].context == "Manual > Setup > Lamps"


def test_underlines_of_python_documentation_are_ordered_its_way() -> None:
    text = (
        'The "lamp" statement\n********************\n\nProse.\n\nForms\n=====\n\nShort\n-----\n\n'
        "Odd\n~~~\n\nMore prose\n***\n"
    )
    labels = [mark.label for mark in headings(text)]
    top = '§ The "lamp" statement'
    assert labels == [
        top, f"{top} > Forms", f"{top} > Forms > Short", f"{top} > Forms > Short > Odd",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["- item\n---\n", "two\nlines\n---\n", "a | b\n--- | ---\n", "---\ntitle: x\n---\n"]
)
def test_rules_below_other_things_are_no_headings(text: str) -> None:
    assert not headings(text)


def test_korean_text_with_shift_characters_is_no_binary_file() -> None:
    text = "등대의 불은 밤새 켜져 있다."
    decoded = decode(text.encode("iso2022_kr"), "light.txt")
    assert decoded.text == text
    assert decoded.encoding == "iso2022_kr"
