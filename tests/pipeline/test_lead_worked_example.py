"""The worked example of S-PARSER (appendix F) with texts of our own: evidence in reverse order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hmars.memory import Memory
from tests.lead_server import serve
from tests.lead_world import (
    DEATH_ONE,
    DEATH_TWO,
    FILM_ONE,
    FILM_TWO,
    QUESTION,
    RIGHT,
    ask_world,
    by_role,
    document,
    lead_turn,
    pages_of,
    profile_of,
)
from tests.scripted_server import Reply, ScriptedServer, Seen
from tests.support import make_index

REVERSED = {483: DEATH_TWO, 3911: DEATH_ONE, 5527: FILM_TWO, 5631: FILM_ONE}


async def test_two_films_two_directors_and_two_dates_take_three_rounds_over_a_real_socket(
    tmp_path: Path,
) -> None:
    text = document(6_400, REVERSED)
    with ScriptedServer(serve) as server:
        profile = profile_of(server.base_url)
        async with Memory.open(tmp_path / "memory.sqlite", profile=profile) as memory:
            await memory.add(text, title="Lives and works")
            answer = await memory.ask(
                QUESTION, driver="lead", trajectory=tmp_path / "trajectory.jsonl"
            )
        lead = [seen for seen in server.requests if seen.body.get("tools")]
    assert [len(item.queries) for item in answer.rounds] == [2, 2, 0]
    assert [item.invalid for item in answer.rounds] == [False, False, False]
    assert [len(item.findings) for item in answer.rounds] == [2, 2, 0]
    assert {item.verdict for r in answer.rounds for item in r.findings} == {"match"}
    assert answer.answer.startswith(RIGHT)
    assert answer.ledger.ok
    for citation in answer.citations:
        assert text[citation.start : citation.end] == citation.quote
    for item in (finding for r in answer.rounds for finding in r.findings):
        assert text[item.start : item.end] == item.quote
    assert len(lead) == 3
    thinking = [m.get("reasoning_content") for m in lead[2].messages if m["role"] == "assistant"]
    assert thinking == ["Ask 2.", "Ask 2."]
    results = [m for m in lead[2].messages if m["role"] == "tool"]
    called = [c["id"] for m in lead[2].messages for c in m.get("tool_calls", [])]
    assert [m["tool_call_id"] for m in results] == called
    found = json.loads(results[0]["content"])
    assert [set(entry) for entry in found.values()] == [{"page", "evidence", "answer"}]
    line = json.loads((tmp_path / "trajectory.jsonl").read_text(encoding="utf-8"))
    assert line["conclusion"] == RIGHT


PLACES = {
    "all at the start": (0, 1, 2, 3),
    "all at the end": (636, 637, 638, 639),
    "all in the middle": (318, 319, 320, 321),
    "spread in order": (10, 200, 400, 600),
    "spread in reverse": (600, 400, 200, 10),
    "dates first and far apart": (620, 500, 130, 5),
    "films apart, dates together": (0, 639, 320, 321),
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES.keys())
async def test_position_order_and_distance_of_the_evidence_change_nothing(
    places: tuple[int, int, int, int],
) -> None:
    facts = dict(zip(places, (FILM_ONE, FILM_TWO, DEATH_ONE, DEATH_TWO), strict=True))
    index = make_index(pages_of(document(640, facts)))
    profile = profile_of(read={"window_tokens": 400})
    result, _ = await ask_world(by_role(), index, profile=profile)
    answer = result.answer
    assert [len(item.queries) for item in answer.rounds] == [2, 2, 0]
    assert answer.answer.startswith(RIGHT)
    assert len({item.page for r in answer.rounds for item in r.findings}) == len(
        {place // 8 for place in places}
    )
    starts = [span.start for span in answer.evidence]
    assert starts == sorted(starts)
    assert answer.ledger.ok


async def test_a_server_without_tool_calls_is_asked_under_a_schema_over_the_same_socket(
    tmp_path: Path,
) -> None:
    def refusing(seen: Seen) -> Reply | str | None:
        if seen.body.get("tools"):
            error = {"message": '"auto" tool choice requires --enable-auto-tool-choice to be set'}
            return Reply(status=400, error=error)
        if str(seen.messages[0]["content"]).startswith("You answer questions about a long text"):
            told = [{**m, "role": "tool"} for m in seen.messages if m["role"] == "user"]
            queries, answer = lead_turn(told)
            return json.dumps({"thought": "", "queries": queries, "answer": answer})
        return serve(seen)

    text = document(120, {3: DEATH_TWO, 40: DEATH_ONE, 90: FILM_TWO, 110: FILM_ONE})
    with ScriptedServer(refusing) as server:
        profile = profile_of(server.base_url)
        async with Memory.open(tmp_path / "memory.sqlite", profile=profile) as memory:
            await memory.add(text, title="Lives and works")
            answer = await memory.ask(QUESTION, driver="lead")
    assert [len(item.queries) for item in answer.rounds] == [2, 2, 0]
    assert answer.answer.startswith(RIGHT)
    assert answer.ledger.ok
    assert any("--enable-auto-tool-choice" in note for note in answer.ledger.notes)
