"""The runner: every system over one interface, records that survive a kill, reports, and checks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import systems
from benchmarks.__main__ import main, sets_of
from benchmarks.bench import Bench, Outcome, Passed
from benchmarks.check import differences, means
from benchmarks.chunks import Chunk
from benchmarks.embeddings import Vectors
from benchmarks.ranking import DenseRanker
from benchmarks.records import Lines, QuestionLog
from benchmarks.report import write_report
from benchmarks.runner import RunSettings, run
from benchmarks.scoring import answer_scores, evidence_scores
from benchmarks.suites.base import BenchDocument, Case, Options
from benchmarks.suites.filters import plain_terms
from benchmarks.systems.hierarchy import HmarsSystem
from benchmarks.systems.sequential import bundled, closest
from hmars.coverage import GoldUnit
from hmars.errors import CallFailed, ConfigError
from hmars.model import CallRecord, Usage
from hmars.settings import Profile, load_profile
from hmars.tokens import WordTokenizer
from tests.scripted_messages import Gate, smallest
from tests.scripted_server import Reply, ScriptedServer, Seen

ROLES = ("card", "region", "broadcast", "select", "answer", "lead", "read", "judge")
MODELS = ("scripted-8b",)
EVERYTHING = tuple(name for name in systems.names() if name != "graphrag")


class HashEmbedder:
    """Words as directions: close texts share words."""

    name = "hash"

    async def embed(self, texts: Sequence[str]) -> tuple[Vectors, list[int]]:
        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for term in plain_terms(text):
                vectors[row, sum(term.encode()) % 64] += 1
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return vectors / lengths, list(range(len(texts)))


def profile_for(base_url: str, context_tokens: int = 32_000) -> Profile:
    return Profile.model_validate(
        {
            "name": "scripted",
            "agents": "model",
            "partition": {"page_tokens": 128, "region_tokens": 512},
            "endpoints": {"local": {"base_url": base_url, "retries": 0}},
            "roles": {
                role: {
                    "endpoint": "local",
                    "model": "scripted-8b",
                    "context_tokens": context_tokens,
                }
                for role in ROLES
            },
        }
    )


def settings_for(
    out: Path, names: Sequence[str], profile: Profile | None = None, **more: Any
) -> RunSettings:
    return RunSettings(
        suite=more.pop("suite", "ruler"),
        systems=tuple(names),
        profile=profile or load_profile("extractive"),
        out=out,
        options=Options(limit=more.pop("limit", 1), lengths=(1,)),
        **more,
    )


def records_of(out: Path) -> list[dict[str, Any]]:
    return list(Lines(out / "records.jsonl").read())


async def test_every_system_answers_over_one_interface_and_counts_its_calls(
    tmp_path: Path,
) -> None:
    with ScriptedServer(models=MODELS) as server:
        server.on("yes or no", Reply("yes", logprobs=[("yes", -0.1), ("no", -2.4)]))
        await run(
            settings_for(tmp_path / "run", EVERYTHING, profile_for(server.base_url)),
            HashEmbedder(),
        )
    records = {record["system"]: record for record in records_of(tmp_path / "run")}
    assert set(records) == set(EVERYTHING)
    failed = {name: record["error"] for name, record in records.items() if record.get("error")}
    assert not failed
    for name, record in records.items():
        if name != "bm25":
            assert record["usage"], name
        assert record["flops"], name
    for name in ("chain-of-agents", "memagent", "rememr1", "mapreduce", "no-context"):
        assert records[name]["evidence"] is None
        assert "recall" not in records[name]["scores"]
    full = records["full-context"]
    assert full["scores"]["recall"] == 1.0
    assert full["evidence_tokens"] >= max(
        record["evidence_tokens"] for record in records.values() if record["evidence"]
    )
    assert records["rerank"]["usage"]["select"]["calls"] >= 1
    assert "card" in records["hmars"]["build_usage"]
    assert "build_usage" not in records["parser"] or "card" not in records["parser"]["build_usage"]
    assert Path(write_report([tmp_path / "run"], tmp_path / "report")[1]).is_file()


async def test_chunks_beyond_the_context_of_the_answer_model_are_cut_and_said(
    tmp_path: Path,
) -> None:
    with ScriptedServer(models=MODELS) as server:
        profile = profile_for(server.base_url, context_tokens=2_600)
        await run(settings_for(tmp_path / "run", ("bm25", "full-context"), profile))
    for record in records_of(tmp_path / "run"):
        room = 2_600 - 1_024 - profile.roles["answer"].max_tokens
        assert record["evidence_tokens"] == room
        (note,) = record["notes"]
        assert note.startswith(f"truncated: {room} of ")


async def test_one_command_runs_several_suites_and_writes_their_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "run --suite cumulative,ruler --systems bm25 --retrieval-only --budgets 200 --limit 1"
    words = [*line.split(), "--lengths", "1", "--report", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["benchmarks", *words])
    assert await asyncio.to_thread(main) == 0
    assert (tmp_path / "cumulative" / "report.md").is_file()
    assert (tmp_path / "ruler" / "index.html").is_file()
    monkeypatch.setattr("sys.argv", ["benchmarks", *words, "--suite", "ruler,nothing"])
    assert await asyncio.to_thread(main) == 2
    assert "There is no suite 'nothing'" in capsys.readouterr().err


async def test_a_run_goes_on_without_asking_again_what_was_answered(tmp_path: Path) -> None:
    with ScriptedServer(models=MODELS) as server:
        asked = settings_for(tmp_path / "run", ("memagent",), profile_for(server.base_url), limit=3)
        await run(asked)
        calls = len(server.requests)
        whole = records_of(tmp_path / "run")
        lines = (tmp_path / "run" / "records.jsonl").read_text().splitlines(keepends=True)
        # As a kill leaves it: one line gone, the one before cut in the middle.
        (tmp_path / "run" / "records.jsonl").write_text("".join(lines[:1]) + lines[1][:40])
        await run(replace(asked, resume=True))
        assert len(server.requests) == calls
    again = records_of(tmp_path / "run")
    assert [record["case"] for record in again] == [record["case"] for record in whole]
    # Replies came from the cache; what they had cost is still told.
    assert [_paid(record) for record in again] == [_paid(record) for record in whole]


def _paid(record: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {
        role: (spent["calls"], spent["prompt_tokens"]) for role, spent in record["usage"].items()
    }


async def test_a_failed_question_is_unscored_and_asked_again_on_resume(tmp_path: Path) -> None:
    with ScriptedServer(models=MODELS) as server:
        server.on(lambda seen: "New memory" in seen.text, Reply(status=500), times=1)
        asked = settings_for(tmp_path / "run", ("memagent",), profile_for(server.base_url))
        await run(asked)
        (failed,) = records_of(tmp_path / "run")
        assert failed["error"]
        assert failed["scores"] == {}
        await run(replace(asked, resume=True))
    last = records_of(tmp_path / "run")[-1]
    assert "error" not in last
    _, page = write_report([tmp_path / "run"], tmp_path / "report")
    assert "failed" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("system", ["hmars", "hmars-no-mid", "rerank"])
async def test_what_a_failed_question_paid_for_is_not_paid_again(
    tmp_path: Path, system: str
) -> None:
    with ScriptedServer(models=MODELS) as server:
        server.on("yes or no", Reply("yes", logprobs=[("yes", -0.1), ("no", -2.4)]))
        server.on("<evidence 1", Reply(status=500), times=1)
        asked = settings_for(tmp_path / "run", (system,), profile_for(server.base_url))
        await run(asked, HashEmbedder())
        assert records_of(tmp_path / "run")[-1]["error"]
        paid = len(server.requests)
        await run(replace(asked, resume=True), HashEmbedder())
        again = server.requests[paid:]
    last = records_of(tmp_path / "run")[-1]
    assert "error" not in last
    assert len(again) == 1
    spent = [*last["usage"].values(), *last["build_usage"].values()]
    assert sum(usage.get("calls", 0) for usage in spent) == paid + 1


async def test_a_system_that_cannot_be_built_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: HmarsSystem, document: BenchDocument) -> dict[str, Usage]:
        raise CallFailed("no graph", problem="invalid_reply", role="card", usage=Usage(calls=2))

    monkeypatch.setattr(HmarsSystem, "build", broken)
    await run(settings_for(tmp_path / "run", ("hmars", "bm25")))
    failed, fine = sorted(records_of(tmp_path / "run"), key=lambda record: "error" not in record)
    assert (failed["system"], failed["error"], failed["scores"]) == ("hmars", "no graph", {})
    assert failed["build_usage"] == {"card": {"calls": 2}}
    assert fine["system"] == "bm25" and "error" not in fine


async def test_a_chunk_without_an_extraction_is_left_out_of_the_graph_and_counted(
    tmp_path: Path,
) -> None:
    pytest.importorskip("lightrag", reason="the extra graphrag is not installed")
    with ScriptedServer(models=MODELS) as server:
        server.on("---Entity Types---", Reply("crane " * 400, finish_reason="length"))
        await run(
            settings_for(tmp_path / "run", ("graphrag",), profile_for(server.base_url)),
            HashEmbedder(),
        )
    (record,) = records_of(tmp_path / "run")
    assert "error" not in record
    assert record["notes"] == ["4 extraction calls gave nothing usable: not in the graph"]


async def test_systems_asked_side_by_side_wait_for_the_model_together(tmp_path: Path) -> None:
    names = ("bm25", "full-context", "no-context")
    gate = Gate()
    with ScriptedServer(models=MODELS) as server:
        server.on(lambda _: True, Reply("ok", gate=gate))
        asked = settings_for(tmp_path / "run", names, profile_for(server.base_url), at_once=3)
        running = asyncio.create_task(run(asked))
        await server.until(lambda: server.in_flight == 3)
        gate.open()
        await running
    assert {record["system"] for record in records_of(tmp_path / "run")} == set(names)
    calls = list(Lines(tmp_path / "run" / "calls.jsonl").read())
    assert {call["system"] for call in calls} == set(names)


async def test_an_index_in_the_making_is_made_once_and_holds_up_no_other_system(
    tmp_path: Path,
) -> None:
    names = ("hmars", "hmars-no-mid", "bm25")
    gate = Gate()
    with ScriptedServer(models=MODELS) as server:

        def card(seen: Seen) -> Reply:
            return Reply(json.dumps(smallest(seen.schema or {})), gate=gate)

        server.on("write its memory card", card)
        asked = settings_for(tmp_path / "run", names, profile_for(server.base_url), at_once=3)
        running = asyncio.create_task(run(asked))
        await server.until(lambda: any("<evidence 1" in seen.text for seen in server.requests))
        assert not records_of(tmp_path / "run")
        gate.open()
        await running
    records = records_of(tmp_path / "run")
    assert {record["system"] for record in records} == set(names)
    assert [record["build_usage"].get("card") is not None for record in records].count(True) == 1


async def test_a_folder_with_a_run_is_never_mixed_with_another(tmp_path: Path) -> None:
    asked = settings_for(tmp_path / "run", ("bm25",), retrieval_only=True, budgets=(100,))
    await run(asked)
    with pytest.raises(ConfigError, match="holds a run"):
        await run(asked)
    with pytest.raises(ConfigError, match="another budgets"):
        await run(replace(asked, resume=True, budgets=(200,)))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert {"commit", "profile", "models", "prompts", "data_sha256", "tokenizer", "date"} <= set(
        manifest
    )


async def test_a_manifest_names_no_folder_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", "--data", "/home/me/data", "--set", "tokenizer.name=/home/me/t.json", "a/b=c"]
    monkeypatch.setattr("sys.argv", ["benchmarks", *words])
    await run(settings_for(tmp_path / "run", ("bm25",), retrieval_only=True, budgets=(100,)))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["command"] == "run --data data --set tokenizer.name=t.json a/b=c"


async def test_documents_that_begin_alike_are_embedded_once(tmp_path: Path) -> None:
    embedded: list[str] = []

    class Counting(HashEmbedder):
        async def embed(self, texts: Sequence[str]) -> tuple[Vectors, list[int]]:
            embedded.extend(texts)
            return await super().embed(texts)

    bench = Bench(load_profile("extractive"), WordTokenizer(), tmp_path, embedder=Counting())
    chunks = [
        Chunk(number, 0, 1, 1, text)
        for number, text in enumerate(["a red boat", "a mill", "a mill", "the mayor slept"])
    ]
    for length in (3, 4):
        ranker = DenseRanker(bench)
        await ranker.index(chunks[:length])
    assert embedded == ["a red boat", "a mill", "the mayor slept"]
    assert (await ranker.rank("mayor"))[0] == chunks[3]


async def test_recall_grows_with_the_budget_and_all_text_has_it_all(tmp_path: Path) -> None:
    names = ("hmars", "hmars-no-mid", "hmars-dispatched", "bm25", "rag-256", "full-context")
    asked = settings_for(
        tmp_path / "run", names, retrieval_only=True, budgets=(200, 5_000), limit=4
    )
    await run(asked, HashEmbedder())
    for record in records_of(tmp_path / "run"):
        scores = record["scores"]
        if "recall@200" in scores:
            assert scores["recall@200"] <= scores["recall@5000"]
            assert scores["tokens@200"] <= 200
            if record["system"] == "full-context":
                assert scores["recall@5000"] == 1.0
    markdown, page = write_report([tmp_path / "run"], tmp_path / "report")
    text = markdown.read_text(encoding="utf-8")
    assert "hmars minus the other, paired" in text
    assert "<svg" in page.read_text(encoding="utf-8")
    assert len(list((tmp_path / "report" / "q").glob("*.html"))) == 4


async def test_a_report_names_systems_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    names = ("hmars", "hmars-no-mid", "bm25", "bm25-1k", "full-context")
    await run(settings_for(tmp_path / "run", names, retrieval_only=True, budgets=(200,)))
    records = tmp_path / "run" / "records.jsonl"
    lines = records.read_text(encoding="utf-8").splitlines(keepends=True)
    records.write_text("".join(reversed(lines)), encoding="utf-8")
    markdown, _ = write_report([tmp_path / "run"], tmp_path / "report")
    text = markdown.read_text(encoding="utf-8")
    assert text.startswith("# ruler: 5 systems\n")
    for table in text.split("\n## ")[1:]:
        firsts = [row.split(" | ")[0].strip("| ") for row in table.splitlines() if row[:1] == "|"]
        assert [name for name in firsts if name in names] in (list(names), list(names[1:]))
    assert "|\n| --- | --- |\n| questions | 1 |\n| hmars |" in text


async def test_the_ablation_asks_only_regions_with_a_hint_of_their_own(tmp_path: Path) -> None:
    bench = Bench(load_profile("extractive"), WordTokenizer(), tmp_path)
    document = next(iter(_ruler())).document
    whole, dispatched = HmarsSystem(bench), HmarsSystem(bench, "dispatched")
    for system in (whole, dispatched):
        await system.build(document)
    everything = await whole.retrieve("What are the special numbers?", 5_000)
    fewer = await dispatched.retrieve("What are the special numbers?", 5_000)
    assert everything.evidence
    assert fewer.evidence_tokens <= everything.evidence_tokens
    for system in (whole, dispatched):
        await system.close()


async def test_looking_at_evidence_gives_what_the_answer_would_get(tmp_path: Path) -> None:
    bench = Bench(load_profile("extractive"), WordTokenizer(), tmp_path)
    bundle = next(iter(_ruler()))
    system = HmarsSystem(bench)
    await system.build(bundle.document)
    question = bundle.cases[0].question
    asked = await system.ask(question)
    looked = await system.retrieve(question, bench.profile.answer.max_prompt_tokens)
    assert looked.evidence == asked.evidence
    await system.close()


def _ruler() -> Sequence[Any]:
    from benchmarks import suites

    return list(suites.load("ruler", Options(limit=1, lengths=(1,))))


def test_sets_may_be_meant_for_one_suite_of_several() -> None:
    text = "locomo, evidence-breadth/cuad, multihop/2wiki"
    assert sets_of(text, "multihop") == ("locomo", "2wiki")
    assert sets_of(text, "evidence-breadth") == ("locomo", "cuad")


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("bm25-1k", ("bm25", systems.Sizes(chunk=1024))),
        ("rag-4k-k5", ("rag", systems.Sizes(chunk=4096, count=5))),
        ("rerank-n100-k12", ("rerank", systems.Sizes(count=12, candidates=100))),
        ("hmars-no-mid", ("hmars-no-mid", systems.Sizes())),
    ],
)
def test_names_carry_sizes(name: str, parsed: tuple[str, systems.Sizes]) -> None:
    assert systems.parse(name) == parsed


def test_a_system_that_cannot_run_says_why(tmp_path: Path) -> None:
    bench = Bench(load_profile("extractive"), WordTokenizer(), tmp_path)
    with pytest.raises(ConfigError, match="no system 'bm26'"):
        systems.parse("bm26")
    with pytest.raises(ConfigError, match="no evidence apart"):
        systems.make_retriever("memagent", bench)
    with pytest.raises(ConfigError, match="needs embeddings"):
        asyncio.run(_build_rag(bench))


async def _build_rag(bench: Bench) -> None:
    await systems.make("rag", bench).build(next(iter(_ruler())).document)


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ('{"justification": "It is the same.", "correct": true}', {"judge": 1.0}),
        ('{"justification": "It is not.", "correct": false}', {"judge": 0.0}),
        ("I would say it is fine.", {"judge": None}),
    ],
)
async def test_a_judge_that_cannot_be_read_leaves_the_question_unscored(
    tmp_path: Path, reply: str, scores: dict[str, float | None]
) -> None:
    def says(seen: Seen) -> str | None:
        return reply if "You judge whether" in seen.text else None

    with ScriptedServer(says, models=MODELS) as server:
        asked = settings_for(
            tmp_path / "run", ("bm25",), profile_for(server.base_url), suite="cumulative"
        )
        await run(asked)
    (record,) = records_of(tmp_path / "run")
    assert {"judge": record["scores"]["judge"]} == scores
    assert record["judge"]
    assert record["judge_usage"]["judge"]["calls"] >= 1


TEXT = "The key is under the mat. The lamp is in the hall."


def case(scoring: Any = "short") -> Case:
    return Case("c", "s", "Where?", ("under the mat",), (GoldUnit(((0, 25),)),), scoring)


def test_all_text_has_recall_one_and_pays_and_no_text_has_none() -> None:
    everything = Outcome("x", (Passed(0, len(TEXT), 12),))
    nothing = Outcome("x", ())
    assert evidence_scores(TEXT, case(), [(0, len(TEXT))])["recall"] == 1.0
    assert evidence_scores(TEXT, case(), [])["recall"] == 0.0
    assert (everything.evidence_tokens, nothing.evidence_tokens) == (12, 0)
    assert evidence_scores(TEXT, case(), None) == {}


def test_answers_are_scored_by_what_their_set_asks_for() -> None:
    right = Outcome("It is under the mat.", None)
    assert answer_scores(case(), right)["sub_em"] == 1.0
    assert answer_scores(case("abstain"), right) == {"abstained": 0.0}
    assert answer_scores(case("abstain"), Outcome("", None, abstained=True)) == {"abstained": 1.0}
    assert answer_scores(case("none"), right) == {}
    assert answer_scores(case(), Outcome("", None)) == {}


async def test_calls_of_a_killed_question_are_added_when_it_is_asked_again(tmp_path: Path) -> None:
    log = QuestionLog(tmp_path / "calls.jsonl").of("s")
    log.begin("q1")
    spent = Usage(calls=1, prompt_tokens=7)
    await log.log_call(
        CallRecord(
            ts="", role="read", model="m", prompt="p@1", usage=spent, seconds=0, outcome="ok"
        )
    )
    again = QuestionLog(tmp_path / "calls.jsonl").of("s")
    assert again.begin("q1") == {"read": spent}
    assert again.begin("q2") == {}


def test_the_memory_called_back_is_the_one_that_shares_rare_words() -> None:
    states = ["the mayor met the miller", "the mayor owns a red boat", "the mayor slept"]
    assert closest("mayor boat", states) == states[1]
    assert closest("zeppelin", states) == "(empty)"
    assert closest("mayor", []) == "(empty)"


def test_notes_are_joined_with_their_neighbours_within_half_the_room() -> None:
    assert bundled(["a", "b", "c", "d"], 4, len) == ["a\nb", "c\nd"]
    assert bundled(["long" * 10], 4, len) == ["long" * 10]


def test_a_check_names_each_number_that_moved() -> None:
    records = [{"system": "a", "scores": {"recall@10": value, "f1": 0.1}} for value in (1.0, 0.0)]
    found = means(records)
    assert found == {"a": {"recall@10": 0.5}}
    assert differences({"a": {"recall@10": 0.502}}, found) == []
    assert differences({"a": {"recall@10": 0.6}, "b": {}}, found) == [
        "a recall@10: expected 0.6, now 0.5"
    ]
