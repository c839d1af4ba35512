"""Tables as text, records, subtitles, markup and code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.sources import load
from hmars.indexing.sources.builder import TextBuilder, table_parts
from hmars.model import SourceText


def read(tmp_path: Path, text: str | bytes, name: str) -> SourceText:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(path)


def labels(source: SourceText) -> list[str]:
    return [mark.label for mark in source.marks]


@given(st.lists(st.text(alphabet="ab |", max_size=40), max_size=60), st.integers(10, 200))
def test_parts_of_a_table_hold_each_row_once_under_the_header(rows: list[str], limit: int) -> None:
    filled = [row for row in rows if row.strip(" |")]
    parts = table_parts(rows, limit)
    assert [row for part in parts for row in part[1:]] == filled[1:]
    assert all(part[0] == filled[0] for part in parts)


@given(st.lists(st.tuples(st.sampled_from(["heading", "block", "place", "item"]), st.text())))
def test_marks_point_at_what_they_name(steps: list[tuple[str, str]]) -> None:
    builder = TextBuilder(Path("a.txt"))
    for kind, text in steps:
        if kind == "heading":
            builder.heading(text, 1)
        elif kind == "place":
            builder.place(f"p. {text}")
        elif kind == "item":
            builder.item(text)
        else:
            builder.block(text)
    if builder.blank:
        return
    source = builder.build()
    source.text.encode("utf-8")
    starts = [mark.start for mark in source.marks]
    assert starts == sorted(starts)
    for mark in source.marks:
        assert mark.start == 0 or source.text[mark.start - 1] == "\n"


# ---------------------------------------------------------------- tables


def test_csv_rows_are_places_and_the_header_is_repeated(tmp_path: Path) -> None:
    rows = "".join(f'"Berth {n}, north";{n}\n' for n in range(2, 302))
    source = read(tmp_path, f"name;fee\n{rows}", "a.csv")
    assert labels(source)[0].startswith("rows 1–")
    assert labels(source)[-1].endswith("–301")
    assert all(part.startswith("name | fee\n") for part in source.text.strip().split("\n\n"))
    assert "Berth 2, north | 2" in source.text


def test_tab_separated_values_and_quoted_line_breaks(tmp_path: Path) -> None:
    source = read(tmp_path, 'a\tb\n1\t"two\nlines"\n', "a.tsv")
    assert source.text == "a | b\n1 | two lines\n"


def test_a_field_too_long_for_a_table_is_kept_as_text_with_a_warning(tmp_path: Path) -> None:
    source = read(tmp_path, "a,b\n1," + "x" * 200_000 + "\n", "a.csv")
    assert "kept as plain text" in source.warnings[0]
    assert source.text.startswith("a,b\n1,xxx")


# ---------------------------------------------------------------- records


def test_json_is_kept_and_its_first_level_is_marked(tmp_path: Path) -> None:
    text = '{"lamps": [1, 2],\n "oil": {"price": 3}}\n'
    source = read(tmp_path, text, "a.json")
    assert source.text == text
    assert labels(source) == ["§ lamps", "§ oil"]
    assert text[source.marks[1].start :].startswith('"oil"')
    assert labels(read(tmp_path, "[1, [2], {}]", "b.json")) == ["item 1", "item 2", "item 3"]


def test_escapes_of_letters_are_written_out_and_needed_ones_stay(tmp_path: Path) -> None:
    source = read(tmp_path, r'{"a": "caf\u00e9 \ud83d\ude00 \u0022 \\u00e9 \n"}', "a.json")
    assert source.text == r'{"a": "café 😀 \u0022 \\u00e9 \n"}'


def test_a_lone_surrogate_in_json_is_replaced_and_said(tmp_path: Path) -> None:
    source = read(tmp_path, r'["x \ud83d y"]', "a.json")
    assert source.text == '["x \ufffd y"]'
    assert "1 halves" in source.warnings[0]


@pytest.mark.parametrize("text", ['{"a": 1', "{'a': 1}", '{"a" 1}', "[1 2]", "[" * 5000, "{} {}"])
def test_what_is_not_json_is_kept_with_a_warning(tmp_path: Path, text: str) -> None:
    source = read(tmp_path, text, "a.json")
    assert source.text == text
    assert "Not valid JSON" in source.warnings[0]


def test_json_lines_count_what_does_not_parse(tmp_path: Path) -> None:
    source = read(tmp_path, b'\xef\xbb\xbf{"a": 1}\nbroken\n{"b": 2}\n', "a.jsonl")
    assert source.text.startswith('{"a": 1}')
    assert source.warnings == ("1 lines are not valid JSON: kept as they are.",)


# ---------------------------------------------------------------- subtitles


def test_subtitles_are_places_in_time_with_speakers(tmp_path: Path) -> None:
    text = (
        "WEBVTT\n\nNOTE a comment\n\n1\n00:01.000 --> 00:03.000 align:start\n"
        "<v Ada>Light the <i>lamp</i>.\n\n01:00:05.000 --> 01:00:07.000\n<v Bo>Done.</v>\nNow.\n"
    )
    source = read(tmp_path, text, "a.vtt")
    assert source.text == "Ada: Light the lamp.\nBo: Done. Now.\n"
    assert labels(source) == ["00:00:01", "01:00:05"]


def test_lines_of_rolling_captions_are_written_once(tmp_path: Path) -> None:
    cue = "{}\n00:00:0{},000 --> 00:00:0{},500\n{}\n\n"
    text = cue.format(1, 1, 1, "one") + cue.format(2, 2, 2, "one\ntwo")
    assert read(tmp_path, text.replace("\n", "\r\n"), "a.srt").text == "one\ntwo\n"


# ---------------------------------------------------------------- markup and code


def test_latex_sections_are_headings_and_comments_are_not(tmp_path: Path) -> None:
    text = (
        "\\title{On \\emph{Lamps}}\n\\section{Oil and {\\bf wicks}}\\label{a}\n"
        "% \\section{Gone}\n\\begin{verbatim}\n\\section{Code}\n\\end{verbatim}\n"
        "\\subsection*[short]{Prices}\n\\input{more}\n"
    )
    source = read(tmp_path, text, "a.tex")
    assert source.text == text
    assert [mark.context for mark in source.marks] == [
        "Oil and wicks",
        "Oil and wicks > Prices",
    ]
    assert source.title == "On Lamps"
    assert "1 \\input" in source.warnings[0]


def test_underlined_lines_of_rst_are_headings(tmp_path: Path) -> None:
    text = (
        "=====\nLamps\n=====\n\nOil\n---\n\nText of a\nparagraph\n\n"
        "::\n\n    not one\n    -------\n\n"
        "Wicks\n-----\n\n=====  ===\nA      B\n=====  ===\n"
    )
    source = read(tmp_path, text, "a.rst")
    assert [mark.context for mark in source.marks] == ["Lamps", "Lamps > Oil", "Lamps > Wicks"]
    assert text[source.marks[2].start :].startswith("Wicks")


def test_markdown_headings_are_found_outside_of_code(tmp_path: Path) -> None:
    text = "# Lamps\n\n```sh\n# not a heading\n```\n\n## Oil\n"
    source = read(tmp_path, text, "a.md")
    assert source.text == text
    assert [mark.start for mark in source.marks] == [0, text.index("## Oil")]


def test_comments_of_code_are_no_headings_and_the_title_is_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    path = Path("src/lamp.py")
    path.write_text("# a comment\nLAMP = 1\n\n\ndef light() -> None: ...\n", encoding="utf-8")
    source = load(path)
    assert source.marks == ()
    assert source.title == "src/lamp.py"
    assert source.source == str(tmp_path / path)
    assert source.text == path.read_text(encoding="utf-8")


def test_rtf_is_read_and_lost_parts_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("striprtf")
    text = r"{\rtf1\ansi\ansicpg1252 Caf\'e9 \b bold\b0\par Next.{\footnote note}\par}"
    source = read(tmp_path, text, "a.rtf")
    assert source.text.startswith("Café bold\nNext.")
    assert source.warnings == ("RTF: 1 x footnote, left out.",)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.py", "a.html", "a.csv", "a.json", "a.tex"])
def test_a_file_of_white_space_is_empty(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmptyInputError, match=name):
        read(tmp_path, " \n\t \u200b\n", name)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.bin is a binary file"):
        read(tmp_path, bytes(range(256)) * 4, "a.bin")
