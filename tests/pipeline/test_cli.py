"""The command line: results on stdout, everything else on stderr, exit codes, the JSON contract."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hmars.cli.main import main
from tests.pipeline.support_server import entries, piers, stage, write_profile
from tests.scripted_server import Reply, ScriptedServer

YARD = "Pier 1 has 8 lamps. Pier 2 has 12 lamps. The crane stands on pier 1.\n"


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
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["hmars", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as exit:
            code = int(exit.code or 0)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    path = tmp_path / "yard.txt"
    path.write_text(YARD, encoding="utf-8")
    return path


def test_indexing_and_asking_without_a_model_quotes_and_says_so(run: Run, yard: Path) -> None:
    indexed = run("index", yard)
    assert indexed.code == 0
    assert "yard" in indexed.out
    asked = run("ask", "How many lamps does pier 2 have?")
    assert asked.code == 0
    assert "Pier 2 has 12 lamps." in asked.out
    assert "no model is configured" in asked.err and "--profile" in asked.err


def test_ask_json_is_the_contract(run: Run, yard: Path) -> None:
    run("index", yard)
    ran = run("ask", "How many lamps does pier 2 have?", "--json")
    answer = ran.json
    assert list(answer)[:7] == [
        "answer",
        "abstained",
        "citations",
        "evidence",
        "ledger",
        "usage",
        "seconds",
    ]
    assert answer["abstained"] is False
    (citation,) = answer["citations"]
    assert set(citation) == {"number", "document", "page", "label", "start", "end", "quote"}
    assert YARD[citation["start"] : citation["end"]] == citation["quote"]
    assert set(answer["evidence"][0]) == {
        "document",
        "page",
        "start",
        "end",
        "tokens",
        "confidence",
    }
    ledger = answer["ledger"]
    assert {
        "regions",
        "selected",
        "abstained",
        "failed",
        "truncated",
        "skipped",
        "failures",
    } <= set(ledger)
    outcomes = ("selected", "abstained", "failed", "truncated", "skipped")
    assert ledger["regions"] == sum(ledger[name] for name in outcomes) == 1
    assert set(answer["seconds"]) == {"broadcast", "select", "answer", "total"}
    assert answer["usage"] == {}


@pytest.mark.parametrize(
    "question",
    [
        "What colour is the crane?",
        "Who is the capital of France?",
        "How many lamps does pier 9 have?",
    ],
)
def test_what_is_not_in_the_text_is_not_answered(run: Run, yard: Path, question: str) -> None:
    run("index", yard)
    answer = run("ask", question, "--json").json
    assert answer["abstained"] is True
    assert answer["citations"] == []


def test_index_json_is_the_contract_one_object_a_line(run: Run, yard: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    ran = run("index", yard, tmp_path / "empty.txt", "--json")
    first, second = map(json.loads, ran.out.splitlines())
    assert {
        "document",
        "title",
        "characters",
        "tokens",
        "pages",
        "regions",
        "groups",
        "cards",
        "usage",
        "seconds",
    } <= set(first)
    assert set(first["cards"]) == {"written", "reused", "degraded"}
    assert first["characters"] == len(YARD)
    assert "empty" in second["error"] and second["file"].endswith("empty.txt")
    assert ran.code == 1


def test_show_pages_json_tiles_the_text(run: Run, yard: Path) -> None:
    run("index", yard)
    pages = run("show", "yard.txt", "--pages", "--json").json
    assert [set(page) for page in pages] == [
        {"index", "start", "end", "tokens", "label", "text"}
    ] * len(pages)
    assert "".join(page["text"] for page in pages) == YARD


def test_show_page_prints_exactly_the_stored_text(run: Run, tmp_path: Path) -> None:
    text = "one\r\n  two\t\n\n"
    path = tmp_path / "odd.txt"
    path.write_bytes(text.encode())
    run("index", path)
    assert run("show", "odd.txt", "--page", "1").out == text


@pytest.mark.parametrize("view", ["--pages", "--regions", "--cards", "--graph", None])
def test_every_view_of_a_document_prints_text_and_json(
    run: Run, yard: Path, view: str | None
) -> None:
    run("index", yard)
    options = [view] if view else []
    assert run("show", "yard.txt", *options).out.strip()
    assert run("show", "yard.txt", *options, "--json").json is not None


def test_list_and_forget(run: Run, yard: Path) -> None:
    assert run("list").out.startswith("Nothing is indexed")
    run("index", yard)
    (listed,) = run("list", "--json").json
    assert listed["title"] == "yard.txt" and listed["complete"] is True
    forgotten = run("forget", listed["document"], "--json")
    assert forgotten.json["document"] == listed["document"]
    assert run("list", "--json").json == []
    assert run("ask", "How many lamps does pier 2 have?", "--json").json["abstained"] is True


def test_another_namespace_sees_nothing(run: Run, yard: Path) -> None:
    run("index", yard, "--namespace", "left")
    (listed,) = run("list", "--namespace", "left", "--json").json
    assert run("list", "--namespace", "right", "--json").json == []
    missing = run("show", listed["document"], "--namespace", "right")
    assert missing.code == 2 and missing.out == ""
    asked = run("ask", "How many lamps does pier 2 have?", "--namespace", "right", "--json")
    assert asked.json["abstained"] is True and asked.json["ledger"]["regions"] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ask", "q?", "--profile", "nosuch"), "no profile named 'nosuch'"),
        (("ask", "q?", "--set", "answer.max_tokens=3"), "answer.max_tokens: there is no such key"),
        (("ask", "  "), "empty"),
        (("ask", "q?", "--document", "nosuch"), "nosuch"),
        (("show", "nosuch"), "nosuch"),
        (("forget", "nosuch"), "nosuch"),
        (("index", "nosuch.txt"), "nosuch.txt"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    run: Run, yard: Path, arguments: tuple[str, ...], says: str
) -> None:
    run("index", yard)
    ran = run(*arguments)
    assert ran.code == 2
    assert says in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_bad_files_are_named_and_the_others_are_indexed(run: Run, yard: Path) -> None:
    folder = yard.parent
    (folder / "empty.txt").write_bytes(b"")
    (folder / "blank.txt").write_text(" \n\u00a0\u200b", encoding="utf-8")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 8)
    ran = run("index", folder)
    assert ran.code == 1
    for name in ("empty.txt", "blank.txt", "binary.txt"):
        assert name in ran.err
    assert "1 file indexed, 3 not" in ran.err
    assert [item["title"] for item in run("list", "--json").json] == ["yard.txt"]


def test_indexing_a_folder_again_changes_nothing_and_names_files_that_are_gone(
    run: Run, yard: Path
) -> None:
    folder = yard.parent / "f"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(f"{name} is about the mill.", encoding="utf-8")
    assert run("index", folder).code == 0
    again = run("index", folder)
    assert again.code == 0 and again.out.count("unchanged") == 2
    (folder / "b.txt").unlink()
    third = run("index", folder)
    assert third.code == 0
    assert "is gone" in third.err and "b.txt" in third.err
    assert len(run("list", "--json").json) == 2


def test_a_file_named_by_another_way_is_the_same_document(run: Run, yard: Path) -> None:
    run("index", yard)
    detour = yard.parent / "f" / ".." / yard.name
    (yard.parent / "f").mkdir()
    assert "unchanged" in run("index", detour).out
    assert len(run("list", "--json").json) == 1


def test_nothing_readable_is_exit_code_3(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    assert run("index", tmp_path / "empty.txt").code == 3


def test_a_foreign_store_is_refused_and_left_as_it_is(run: Run, tmp_path: Path, yard: Path) -> None:
    store = tmp_path / "other.sqlite"
    store.write_bytes(b"this is no database at all, but somebody's notes")
    ran = run("index", yard, "--store", store)
    assert ran.code == 3 and "other.sqlite" in ran.err
    assert store.read_bytes().startswith(b"this is no database")


def test_an_answer_with_failures_is_exit_code_1_and_the_ledger_names_them(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "piers.txt"
    path.write_text(piers(40), encoding="utf-8")
    with ScriptedServer() as server:
        profile = write_profile(tmp_path, server.base_url, endpoint="")
        assert run("index", path, "--profile", profile).code == 0
        for number, reply in (
            (5, Reply(status=500)),
            (11, Reply("no JSON")),
            (23, Reply('{"pages": [', finish_reason="length")),
        ):
            server.on(lambda s, n=number: stage(s) == "select" and entries(s) == [n], reply)
        ran = run("ask", "Who is the keeper?", "--profile", profile, "--json")
    assert ran.code == 1
    ledger = ran.json["ledger"]
    assert sorted(failure["region"] for failure in ledger["failures"]) == [5, 11, 23]
    assert (ledger["failed"], ledger["truncated"]) == (2, 1)
    assert "3 of 40 regions could not be read" in ran.json["answer"]


def test_a_wrong_key_is_one_sentence_without_the_key(
    run: Run, tmp_path: Path, yard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARD_KEY", "FAKE-KEY-71aa")
    with ScriptedServer(api_key="right") as server:
        profile = write_profile(tmp_path, server.base_url, endpoint='api_key_env = "YARD_KEY"')
        ran = run("index", yard, "--profile", profile)
    assert ran.code == 3
    assert "key" in ran.err and "FAKE-KEY-71aa" not in ran.err + ran.out


def test_the_estimate_spends_nothing_and_names_every_role(
    run: Run, tmp_path: Path, yard: Path
) -> None:
    with ScriptedServer() as server:
        profile = write_profile(tmp_path, server.base_url)
        text = run("index", yard, "--profile", profile, "--estimate")
        data = run("index", yard, "--profile", profile, "--estimate", "--json").json
        assert server.requests == []
    assert text.code == 0
    assert set(data["index"]) == {"card", "region"}
    assert set(data["question"]) == {"broadcast", "select", "answer"}
    assert data["index"]["card"]["calls"] == data["regions"]
    for role in ("card", "region", "broadcast", "select", "answer"):
        assert role in text.out
    assert run("list", "--json").json == []


def test_another_tokenizer_than_the_documents_is_refused(
    run: Run, yard: Path, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({"lamps": 0, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()  # type: ignore[assignment]
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    run("index", yard)
    ran = run("ask", "How many lamps?", "--set", f"tokenizer.name={file}")
    assert ran.code == 2
    assert "indexed with the tokenizer words" in ran.err and "index it again" in ran.err


def test_prompts_are_written_and_never_overwritten(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    assert len(run("prompts", folder).out.splitlines()) >= 5
    changed = folder / "select_pages.md"
    changed.write_text("mine", encoding="utf-8")
    assert "kept" in run("prompts", folder).err
    assert changed.read_text(encoding="utf-8") == "mine"


def test_doctor_says_that_an_extractive_profile_has_nothing_to_check(run: Run) -> None:
    assert "nothing to check" in run("doctor", "--profile", "extractive").out


def test_doctor_reports_what_an_endpoint_can_do(run: Run, tmp_path: Path) -> None:
    with ScriptedServer(context_limit=100_000) as server:
        ran = run("doctor", "--profile", write_profile(tmp_path, server.base_url), "--json")
    findings = ran.json
    assert {finding["role"] for finding in findings} >= {"card", "answer"}
    assert all(finding["reachable"] for finding in findings)
    assert findings[0]["structured"] == "json_schema"


def test_the_installed_command_answers_help_and_leaves_stdout_clean(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "hmars.cli.main", "index", str(tmp_path / "none.txt"), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "none.txt" in ran.stderr
