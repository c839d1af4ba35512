"""`hmars coverage`: reading questions, finding their evidence, and the whole command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hmars.cli.main import app
from hmars.coverage import GoldUnit
from hmars.coverage.questions import Asked, Locator, Question, read_questions
from hmars.errors import InputError

TEXT = (
    "The harbour closes at nine.\n\nThe ferry to the island costs four crowns and leaves at ten."
    "\n\nDogs travel for free, and the harbour closes at nine in winter too.\n"
)


def asked(**fields: object) -> Asked:
    line = {"document": "d", "question": "When?", "evidence": [{"quote": "x"}], **fields}
    return Asked(3, Question.model_validate(line))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"question": "q", "evidence": [{"quote": "x"}]}', "either document or path"),
        ('{"document": "d", "question": "q", "evidence": []}', "evidence"),
        ('{"document": "d", "question": "q", "evidence": [{}]}', "either start and end"),
        (
            '{"document": "d", "question": "q", "evidence": [{"quote": "x", "turn": 1}]}',
            "either start and end",
        ),
        ('{"document": "d", "question": "q", "evidence": [{"start": 5, "end": 5}]}', "below end"),
        ('{"document": "d", "question": "", "evidence": [{"quote": "x"}]}', "question"),
        ('{"document": "d", "question": "q", "evidence": [{"quote": "x"}], "k": 1}', "k"),
        ("not JSON", "line 2"),
    ],
)
def test_a_line_that_is_no_question_is_named(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=says) as caught:
        read_questions(file)
    assert "line 2" in str(caught.value)


def test_a_file_without_questions_says_so(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no questions"):
        read_questions(tmp_path / "q.jsonl")


def test_every_place_of_a_quotation_counts() -> None:
    locator = Locator(TEXT, "t", {})
    (unit,) = locator.gold(asked(evidence=[{"quote": "harbour closes at nine"}]))
    assert [TEXT[start:end] for start, end in unit.places] == ["harbour closes at nine"] * 2


def test_a_quotation_with_other_white_space_is_found() -> None:
    (unit,) = Locator(TEXT, "t", {}).gold(
        asked(evidence=[{"quote": "closes at  nine.\nThe ferry"}])
    )
    start, end = unit.places[0]
    assert TEXT[start:end] == "closes at nine.\n\nThe ferry"


def test_turns_are_found_by_id_and_by_number() -> None:
    locator = Locator(TEXT, "t", {"a1": (0, 5), "b7": (5, 9)})
    gold = locator.gold(asked(evidence=[{"turn": "b7"}, {"turn": 1}, {"start": 2, "end": 4}]))
    assert gold == (GoldUnit(((5, 9),)), GoldUnit(((0, 5),)), GoldUnit(((2, 4),)))


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ({"quote": "the moon"}, "not in t"),
        ({"start": 0, "end": 9_999}, "has 159 characters"),
        ({"turn": "z"}, "no turn z; t has no turns"),
    ],
)
def test_evidence_that_is_not_there_is_an_error(place: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Locator(TEXT, "t", {}).gold(asked(evidence=[place]))


def test_the_command_measures_files_and_leaves_the_store_alone(tmp_path: Path) -> None:
    (tmp_path / "ferry.txt").write_text(TEXT, encoding="utf-8")
    line = {
        "path": "ferry.txt",
        "question": "What does the ferry cost?",
        "answer": "four crowns",
        "evidence": [{"quote": "costs four crowns"}, {"quote": "Dogs travel for free"}],
    }
    questions = tmp_path / "q.jsonl"
    questions.write_text(json.dumps(line) + "\n", encoding="utf-8")
    out, store = tmp_path / "out", tmp_path / "mine.sqlite"
    result = CliRunner().invoke(
        app,
        [
            "coverage", "--data", str(questions), "--against", "bm25,full",
            "--out", str(out), "--store", str(store), "--profile", "extractive",
        ],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    records = [json.loads(one) for one in (out / "records.jsonl").read_text().splitlines()]
    assert [record["system"] for record in records] == ["hmars", "bm25", "full"]
    full = records[2]
    assert (full["recall"], full["missed"]) == (1.0, [])
    assert full["evidence"] == [[0, len(TEXT)]]
    assert records[0]["recall"] >= 0.5
    assert "hmars minus bm25" in (out / "report.md").read_text(encoding="utf-8")
    listed = CliRunner().invoke(app, ["list", "--store", str(store), "--json"])
    assert "ferry" not in listed.output


def test_the_command_measures_a_document_of_the_store_and_names_what_was_missed(
    tmp_path: Path,
) -> None:
    (tmp_path / "ferry.txt").write_text(TEXT, encoding="utf-8")
    store = ["--store", str(tmp_path / "mine.sqlite"), "--profile", "extractive"]
    run = CliRunner()
    assert run.invoke(app, ["index", str(tmp_path / "ferry.txt"), *store]).exit_code == 0
    line = {
        "document": "ferry.txt",
        "question": "Whom does the zebra visit?",
        "evidence": [{"start": 0, "end": 27}],
    }
    questions = tmp_path / "q.jsonl"
    questions.write_text(json.dumps(line) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    result = run.invoke(
        app,
        ["coverage", "--data", str(questions), "--against", "", "--out", str(out), *store],
    )
    assert result.exit_code == 0, result.output
    (record,) = (json.loads(one) for one in (out / "records.jsonl").read_text().splitlines())
    assert (record["recall"], record["missed"]) == (0.0, [1])
    assert "1 of 1 pieces not wholly passed on" in result.output
