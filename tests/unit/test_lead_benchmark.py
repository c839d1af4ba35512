"""The benchmark of the lead on a set of our own making, without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.lead.__main__ import parser
from benchmarks.lead.latency import lead_turn, long_index
from hmars.query.agents import Scope
from hmars.query.lead.windows import windows_of

CASES = [
    ("Brask mill", "Who owned the Brask mill?", "Tomas Vrel", "Tomas Vrel owned the Brask mill."),
    ("Sund lamp", "What did the Sund lamp burn?", "whale oil", "The Sund lamp burned whale oil."),
]


def write_set(folder: Path) -> None:
    """Two questions with two gold paragraphs each, in the layout of HotpotQA."""
    made = folder / "multihop"
    made.mkdir()
    rows = [
        {
            "_id": f"own-{number}",
            "type": "bridge",
            "question": question,
            "answer": answer,
            "supporting_facts": [[title, 0], [f"{title} history", 0]],
            "context": [
                [title, [sentence]],
                [f"{title} history", [f"The {title} has a history of its own."]],
                *[[f"Filler {number} {n}", [f"Bread number {n} was baked."]] for n in range(8)],
            ],
        }
        for number, (title, question, answer, sentence) in enumerate(CASES)
    ]
    text = "\n".join(json.dumps(row) for row in rows) + "\n"
    (made / "hotpotqa_gold_400.jsonl").write_text(text, encoding="utf-8")
    (made / "hotpotqa_dev_fullwiki_500.jsonl").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("at_once", [1, 2])
def test_both_drivers_are_scored_on_every_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at_once: int
) -> None:
    write_set(tmp_path)
    out = tmp_path / "rows.jsonl"
    line = f"multihop --sets hotpotqa --limit 2 --paragraphs 12 --data {tmp_path} --out {out}"
    arguments = parser().parse_args(f"{line} --together 2 --at-once {at_once}".split())
    arguments.run(arguments)
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| hotpotqa")]
    assert [line.split("|")[2].strip() for line in table] == ["lead", "single"]
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 4
    lead = [row for row in rows if row["driver"] == "lead"]
    assert all(row["findings_recall"] >= 0.5 and row["rounds"] >= 2 for row in lead)
    assert all(row["sub_em"] in (0.0, 1.0) for row in rows)
    assert [row["findings_recall"] for row in rows if row["driver"] == "single"] == [None, None]


def test_a_run_that_is_resumed_asks_only_what_it_has_no_row_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_set(tmp_path)
    out = tmp_path / "rows.jsonl"
    line = f"multihop --sets hotpotqa --limit 2 --paragraphs 12 --together 2 --data {tmp_path}"
    arguments = parser().parse_args(f"{line} --plain --out {out}".split())
    arguments.run(arguments)
    whole = out.read_text(encoding="utf-8")
    first = capsys.readouterr().out
    kept = whole.splitlines(keepends=True)[:3]
    failed = json.dumps({"driver": "lead", "case": "x", "error": "server gone"}) + "\n"
    out.write_text("".join(kept) + failed, encoding="utf-8")
    again = parser().parse_args(f"{line} --plain --resume --out {out}".split())
    again.run(again)
    rows = out.read_text(encoding="utf-8").splitlines(keepends=True)
    assert rows[:3] == kept
    assert len(rows) == 5
    assert {json.loads(row)["case"] for row in rows[:3]} >= {json.loads(rows[4])["case"]}

    def scores(table: str) -> list[str]:
        return [row.rpartition(" | ")[0] for row in table.splitlines() if row.startswith("| ")]

    assert scores(capsys.readouterr().out) == scores(first)


def test_the_long_text_of_the_time_measurement_has_the_windows_it_says() -> None:
    index = long_index(10)
    assert len(windows_of(Scope((index,)), 4096)) == 10
    asked = [lead_turn([{"role": "assistant"}] * done).get("tool_calls") for done in range(3)]
    assert [bool(calls) for calls in asked] == [True, True, False]
