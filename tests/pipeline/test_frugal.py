"""Cost over a real socket: pointwise selection, budgets, estimates, usage, a cold prompt cache."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hmars import Memory
from hmars.cli.render import estimate_text
from hmars.cli.usage import usage_text
from hmars.demo_text import language_reference
from hmars.indexing.estimate import RoleEstimate
from hmars.llm.budget import Budget
from hmars.model import CallRecord, Usage
from hmars.settings import PartitionSettings
from tests.pipeline.support_server import ROLES, entries, piers, profile_for, stage
from tests.scripted_server import Reply, ScriptedServer, Seen

Json = dict[str, Any]

COUNT = 12
POINTWISE = '[select]\nmode = "pointwise"'
PRICES = "\n".join(f"[roles.{role}.price]\ninput = 1.0\noutput = 2.0" for role in ROLES)


def score(seen: Seen) -> Reply:
    """Yes to the pier asked about, no to the others, more or less."""
    wanted = int(re.findall(r"keeper of pier (\d+)\?", seen.text)[-1])
    (number,) = entries(seen)
    odds = 6.0 if number == wanted else -3.0 - abs(number - wanted) / 10
    return Reply("no", finish_reason="length", logprobs=[("Yes", odds), (" no", 0.0), ("I", -9.0)])


def answer(seen: Seen) -> str:
    number = entries(seen)[0]
    quote = f"pier {number} is called Orla Venn {number}"
    return json.dumps(
        {
            "answerable": True,
            "answer": f"Orla Venn {number} [1].",
            "citations": [{"evidence": 1, "quote": quote}],
        }
    )


def scoring(seen: Seen) -> bool:
    return "You are shown one page" in seen.text


@pytest.fixture
def server() -> Generator[ScriptedServer]:
    with ScriptedServer(prefix_cache=True) as running:
        running.on(scoring, score)
        running.on(lambda seen: stage(seen) == "answer", answer)
        yield running


@asynccontextmanager
async def memory_at(
    folder: Path, server: ScriptedServer, extra: str = POINTWISE, **more: Any
) -> AsyncGenerator[Memory]:
    profile = profile_for(folder, server.base_url, extra)
    async with Memory.open(folder / "memory.sqlite", profile=profile, **more) as memory:
        yield memory


async def test_pages_are_scored_one_by_one_and_only_the_best_reach_the_answer(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with memory_at(tmp_path, server) as memory:
        report = await memory.add(piers(COUNT), title="Piers")
        result = await memory.ask("Who is the keeper of pier 7?")
        again = await memory.ask("Who is the keeper of pier 7?")
    asked = [seen for seen in server.requests if scoring(seen)]
    assert len(asked) == report.pages
    assert {seen.max_tokens for seen in asked} == {1}
    assert all(seen.body["top_logprobs"] == 20 for seen in asked)
    assert result.answer.startswith("Orla Venn 7 [1].")
    assert (result.ledger.selected, result.ledger.abstained) == (1, COUNT - 1)
    assert result.usage["select"].reasks == 0
    assert again.usage["select"].calls == 0  # scores are kept like any other reply


async def test_a_question_that_no_page_answers_is_an_abstention(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with memory_at(tmp_path, server) as memory:
        await memory.add(piers(COUNT), title="Piers")
        result = await memory.ask("Who is the keeper of pier 99?")
    assert result.abstained
    assert result.ledger.abstained == result.ledger.regions
    assert "answer" not in result.usage


async def test_one_page_that_cannot_be_scored_is_a_failed_region_that_is_named(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.on(lambda seen: scoring(seen) and entries(seen) == [3], Reply(status=500))
    async with memory_at(tmp_path, server) as memory:
        await memory.add(piers(COUNT), title="Piers")
        result = await memory.ask("Who is the keeper of pier 7?")
    assert result.ledger.failed == 1
    assert [failure.region for failure in result.ledger.failures] == [3]
    assert "page 3" in result.ledger.failures[0].reason
    assert result.answer.startswith("Orla Venn 7")


async def test_what_a_budget_of_calls_does_not_reach_is_skipped_and_the_answer_still_comes(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with memory_at(tmp_path, server) as memory:
        report = await memory.add(piers(COUNT), title="Piers")
        before = len(server.requests)
        limit = report.groups + 7 + 1
        result = await memory.ask("Who is the keeper of pier 2?", budget=Budget(max_calls=limit))
    ledger = result.ledger
    assert len(server.requests) - before <= limit
    assert ledger.skipped == COUNT - 7
    assert ledger.selected + ledger.abstained == 7
    assert ledger.ok
    assert "5 skipped" in result.answer
    assert any("--max-calls" in note for note in ledger.notes)
    assert result.usage["answer"].calls == 1


async def test_a_budget_of_money_goes_by_the_prices_of_the_profile(
    tmp_path: Path, server: ScriptedServer
) -> None:
    extra = f"{POINTWISE}\n{PRICES}"
    async with memory_at(tmp_path, server, extra) as memory:
        await memory.add(piers(COUNT), title="Piers")
        result = await memory.ask("Who is the keeper of pier 2?", budget=Budget(max_cost=0.0))
        assert result.ledger.skipped == COUNT
        assert result.abstained
        history = usage_text(await memory.usage_history(), memory.profile)
    assert "card" in history
    assert "cost 0.0" in history


async def test_cards_that_a_budget_does_not_reach_are_written_by_the_next_run(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with memory_at(tmp_path, server) as memory:
        first = await memory.add(piers(COUNT), title="Piers", budget=Budget(max_calls=5))
        second = await memory.add(piers(COUNT), title="Piers")
    assert first.cards.degraded == COUNT - 5
    assert sum("--max-calls 5" in warning for warning in first.warnings) >= COUNT - 5
    assert second.cards.written == COUNT - 5
    assert second.cards.degraded == 0


async def test_an_estimate_is_within_a_tenth_of_what_the_run_then_uses(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """The server counts as the profile does; replies are those of the first document."""
    async with memory_at(tmp_path, server) as memory:
        tokenizer = await memory._load_tokenizer()  # pyright: ignore[reportPrivateUsage]

        def counted(seen: Seen, reply: Reply) -> Reply:
            prompt = sum(tokenizer.count(str(message["content"])) for message in seen.messages)
            written = tokenizer.count(reply.content or "")
            reply.usage = {"prompt_tokens": prompt + 12, "completion_tokens": written}
            return reply

        gist = "The keeper of the pier counts lamps before the ferry leaves in the evening."
        card: Json = {"summary": f"{gist} " * 4, "topics": ["lamps", "ferry"], "entities": []}
        texts: dict[str, Json] = {
            "card": {**card, "page_index": [{"page": 1, "gist": f"{gist} {gist}"}]},
            "region": {"summary": f"{gist} " * 12, "submap": [], "crossrefs": []},
            "broadcast": {"interpretation": f"{gist} {gist}", "hints": []},
        }
        for name, text in ((name, json.dumps(value)) for name, value in texts.items()):
            server.on(
                lambda seen, n=name: stage(seen) == n,
                lambda seen, said=text: counted(seen, Reply(said)),
            )
        server.on(scoring, lambda seen: counted(seen, score(seen)))
        server.on(lambda s: stage(s) == "answer", lambda s: counted(s, Reply(answer(s))))
        await memory.add(piers(4), title="First")
        await memory.ask("Who is the keeper of pier 2?", document="First")
        other = "\n\n".join(piers(48).split("\n\n")[8:])
        foreseen = await memory.estimate(other)
        report = await memory.add(other, title="Second")
        result = await memory.ask("Who is the keeper of pier 17?", document="Second")
    spent = report.usage
    check(foreseen.index, spent)
    reading = {role: foreseen.question[role] for role in ("broadcast", "select")}
    check(reading, {role: result.usage[role] for role in reading})


def check(foreseen: Mapping[str, RoleEstimate], spent: Mapping[str, Usage]) -> None:
    """Calls to the point, tokens of all roles together within a tenth."""
    assert {role: it.calls for role, it in foreseen.items()} == {
        role: it.calls for role, it in spent.items()
    }
    assert all(it.seconds is not None for it in foreseen.values())
    prompt = sum(it.prompt_tokens for it in spent.values())
    written = sum(it.completion_tokens for it in spent.values())
    assert abs(sum(it.prompt_tokens for it in foreseen.values()) - prompt) <= 0.1 * prompt
    assert abs(sum(it.completion_tokens for it in foreseen.values()) - written) <= 0.1 * written


async def test_a_cache_smaller_than_the_text_is_told_once(
    tmp_path: Path, server: ScriptedServer
) -> None:
    def cold(seen: Seen) -> Reply:
        reply = score(seen)
        details = {"cached_tokens": 10}
        reply.usage = {"prompt_tokens": 900, "prompt_tokens_details": details}
        return reply

    server.on(scoring, cold)
    warnings: list[str] = []
    async with memory_at(tmp_path, server, on_warning=warnings.append) as memory:
        await memory.add(piers(COUNT), title="Piers")
        await memory.ask("Who is the keeper of pier 2?")
        assert not any("prompt cache" in text for text in warnings)
        await memory.ask("Tell me: who is the keeper of pier 3?")
        await memory.ask("Now, who is the keeper of pier 4?")
    assert sum("role 'select'" in text and "prompt cache" in text for text in warnings) == 1


async def test_a_cache_that_holds_the_text_is_not_spoken_of(
    tmp_path: Path, server: ScriptedServer
) -> None:
    warnings: list[str] = []
    async with memory_at(tmp_path, server, on_warning=warnings.append) as memory:
        await memory.add(piers(COUNT), title="Piers")
        await memory.ask("Who is the keeper of pier 2?")
        result = await memory.ask("Who is the keeper of pier 3?")
    used: Usage = result.usage["select"]
    assert used.cached_tokens >= 0.75 * used.prompt_tokens  # the pages here are very short
    assert not any("prompt cache" in text for text in warnings)


async def test_an_estimate_without_history_says_so_and_what_the_limits_of_replies_would_be(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with memory_at(tmp_path, server) as memory:
        foreseen = await memory.estimate(piers(4))
        await memory.add(piers(4), title="Piers")
        known = await memory.estimate(piers(4))
    limit = memory.profile.roles["card"].max_tokens
    assert foreseen.index["card"].longest_completion_tokens == 4 * limit
    assert not foreseen.index["card"].learned and known.index["card"].learned
    text = estimate_text(foreseen)
    assert "no earlier calls of these models" in text
    assert f"{sum(it.longest_completion_tokens for it in foreseen.index.values()):,}" in text
    assert "Replies of broadcast, select, answer are taken" in estimate_text(known)


async def test_an_estimate_learns_how_often_a_model_has_to_be_asked_again(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Half of the cards come at the second attempt, in both documents."""

    def sometimes(seen: Seen) -> str | None:
        again = "could not be used" in seen.text
        return None if again or entries(seen)[0] % 2 else "I would rather not."

    server.on(lambda seen: stage(seen) == "card", sometimes)
    async with memory_at(tmp_path, server) as memory:
        text = piers(48).split("\n\n")
        first = await memory.add("\n\n".join(text[:16]), title="First")
        foreseen = await memory.estimate("\n\n".join(text[16:]))
        report = await memory.add("\n\n".join(text[16:]), title="Second")
    assert first.usage["card"].reasks == 8 and report.usage["card"].reasks == 16
    card, spent = foreseen.index["card"], report.usage["card"]
    assert card.calls == spent.calls == 48
    assert card.prompt_tokens == pytest.approx(spent.prompt_tokens, rel=0.2)


async def test_an_estimate_knows_that_cards_which_failed_are_written_without_the_model(
    tmp_path: Path, server: ScriptedServer
) -> None:
    sizes = PartitionSettings(page_tokens=128, region_tokens=512, group_regions=6)
    profile = profile_for(tmp_path, server.base_url).model_copy(update={"partition": sizes})
    text = language_reference().text
    first, second = text[:6_000], text[6_000:36_000]
    server.on(lambda seen: stage(seen) == "card", Reply("no JSON at all"))
    async with Memory.open(tmp_path / "memory.sqlite", profile=profile) as memory:
        tokenizer = await memory._load_tokenizer()  # pyright: ignore[reportPrivateUsage]

        def join(seen: Seen) -> Reply:
            prompt = sum(tokenizer.count(str(message["content"])) for message in seen.messages)
            said = json.dumps({"summary": "Piers.", "submap": [], "crossrefs": []})
            return Reply(said, usage={"prompt_tokens": prompt + 12, "completion_tokens": 20})

        server.on(lambda seen: stage(seen) == "region", join)
        await memory.add(first, title="First")
        foreseen = (await memory.estimate(second)).index["region"]
        report = await memory.add(second, title="Second")
    assert report.cards.degraded == report.regions > 12
    spent = report.usage["region"]
    assert foreseen.calls == spent.calls
    assert foreseen.prompt_tokens == pytest.approx(spent.prompt_tokens, rel=0.2)


async def test_each_finished_call_is_told_to_who_wants_to_know(
    tmp_path: Path, server: ScriptedServer
) -> None:
    told: list[CallRecord] = []
    async with memory_at(tmp_path, server, on_call=told.append) as memory:
        await memory.add(piers(COUNT), title="Piers")
        await memory.ask("Who is the keeper of pier 1?")
        await memory.ask("Who is the keeper of pier 1?")
    assert sum(record.usage.calls for record in told) == len(server.requests)
    assert {"card", "select", "answer"} <= {record.role for record in told}
    assert [record.outcome for record in told if record.role == "answer"] == ["ok", "cached"]
