"""`hmars append`, `ask --as-of`, `forget --turn/--before`, `export` and `import`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hmars.cli.main import main
from tests.pipeline.support_dialogue import harbour, write_turns


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def hmars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str | Path, given: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["hmars", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        try:
            main()
            code = 0
        except SystemExit as exit:
            code = int(exit.code or 0)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    turns = harbour(6)
    turns[1]["text"] = "The locker number is L-4408."
    turns[4]["text"] = "The locker number is M-1200."
    return write_turns(tmp_path / "chat.jsonl", turns)


def test_appending_says_what_became_of_the_turns(hmars: Run, chat: Path, tmp_path: Path) -> None:
    first = hmars("append", "ana", chat)
    assert first.code == 0
    assert first.out.startswith("ana: 6 turns appended; 6 turns as ana-")
    more = write_turns(tmp_path / "more.jsonl", harbour(8))
    second = hmars("append", "ana", more, "--json").json
    assert list(second)[:4] == ["conversation", "document", "turns", "added"]
    assert (second["turns"], second["added"], second["duplicates"]) == (8, 2, 4)
    assert second["replaced"] == 2 and second["index"]["cards"]["written"] == 1
    again = hmars("append", "ana", "-", given=more.read_bytes())
    assert "0 turns appended (8 known already)" in again.out


def test_a_question_as_of_a_time_and_the_newest_value_without_one(hmars: Run, chat: Path) -> None:
    hmars("append", "ana", chat)
    question = "What is the locker number?"
    now = hmars("ask", question, "-d", "ana").out
    then = hmars("ask", question, "-d", "ana", "--as-of", "2024-01-01T11:00Z").out
    assert now.startswith("“The locker number is M-1200.”")
    assert "L-4408" in then and "M-1200" not in then and "3 later turns left out" in then
    assert hmars("ask", question, "--as-of", "soon").code == 2


def test_turns_are_listed_with_the_ids_to_forget_them_by(hmars: Run, chat: Path) -> None:
    hmars("append", "ana", chat)
    listed = hmars("show", "ana", "--turns", "--json").json
    assert [turn["id"] for turn in listed] == [f"h{number}" for number in range(1, 7)]
    assert listed[1]["text"] == "The locker number is L-4408."
    assert listed[1]["time"] == "2024-01-01T10:00:00+00:00"
    shown = hmars("show", "ana", "--turns").out.splitlines()
    assert shown[1].startswith("h2  [Nova (assistant) | Mon 2024-01-01 10:00+00:00] The locker")
    assert hmars("show", "--turns").code == 2


def test_turns_are_forgotten_by_id_and_by_time(hmars: Run, chat: Path) -> None:
    hmars("append", "ana", chat)
    assert "Forgot 1 turn of ana; 5 turns left." in hmars("forget", "ana", "--turn", "h2").out
    assert "L-4408" not in hmars("ask", "What is the locker number?", "--json").out
    assert "(5 known already, 1 forgotten before)" in hmars("append", "ana", chat).out
    report = hmars("forget", "ana", "--before", "2024-01-01T11:30Z", "--json").json
    assert (report["turns"], report["left"], report["scrubbed"]) == (2, 3, True)
    assert hmars("forget", "ana", "--turn", "h2").code == 2
    assert "nothing is left of ana" in hmars("forget", "ana", "--before", "2030-01-01").out
    assert hmars("list", "--json").json == []


def test_a_document_is_no_conversation(hmars: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("The ferry leaves at nine.", encoding="utf-8")
    hmars("index", path)
    ran = hmars("forget", "notes.txt", "--turn", "h1")
    assert ran.code == 2 and "is a document, not a conversation" in ran.err


def test_a_document_moves_from_store_to_store(hmars: Run, chat: Path, tmp_path: Path) -> None:
    hmars("append", "ana", chat)
    file, other = tmp_path / "ana.jsonl", tmp_path / "other.sqlite"
    assert hmars("export", "ana", file).out.startswith("Wrote ana (ana-")
    assert hmars("import", file, "--store", other, "--json").json["complete"]
    there = hmars("ask", "What is the locker number?", "--store", other)
    assert "M-1200" in there.out
    assert hmars("append", "ana", chat, "--store", other, "--json").json["index"]["unchanged"]
    refused = hmars("export", "ana", file)
    assert refused.code == 2 and "exists" in refused.err
    assert hmars("export", "bob", tmp_path / "bob.jsonl").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["append", "ana", "none.jsonl"], "there is no file"),
        (["append", "ana", "{chat}", "--zone", "Europe/Atlantis"], "no time zone"),
        (["append", "ana", "{chat}", "--format", "fax"], "fax"),
        (["append", "ana", "{chat}", "--date-order", "dym"], "dmy, mdy or ymd"),
        (["append", " ", "{chat}"], "cannot be used"),
        (["import", "{chat}"], "no export"),
        (["forget", "nobody", "--turn", "h1"], "no document"),
    ],
)
def test_wrong_usage_is_said_and_is_exit_code_2(
    hmars: Run, chat: Path, arguments: list[str], message: str
) -> None:
    hmars("append", "other", chat)
    ran = hmars(*(argument.format(chat=chat) for argument in arguments))
    assert ran.code == 2 and message in " ".join(ran.err.replace("│", " ").split())
    assert "Traceback" not in ran.err
