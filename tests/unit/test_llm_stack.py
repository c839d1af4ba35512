"""The whole stack: cache, record, context, and many calls at once with every kind of fault."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from hmars.errors import CallFailed, ConfigError, EndpointError, ModelError
from hmars.fanout import fan_out
from hmars.llm.cache import cache_key
from hmars.llm.contract import ChatReply, ChatRequest, Message, PromptRef, ToolCall
from hmars.llm.fake import FakeClock, FakeModel, ScriptedModel
from hmars.llm.probe import probe
from hmars.llm.stack import ModelStack
from hmars.model import CallRecord, Usage
from hmars.settings import RoleSettings
from tests.llm_support import LAMP, Lamp, ask, profile_for
from tests.scripted_server import Gate, Reply, ScriptedServer, Seen


class Memory:
    """A cache and a log that only remember."""

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        self.documents: dict[str, tuple[str, ...]] = {}
        self.records: list[CallRecord] = []

    async def get_reply(self, key: str) -> str | None:
        return self.replies.get(key)

    async def put_reply(self, key: str, payload: str, documents: tuple[str, ...]) -> None:
        self.replies[key] = payload
        self.documents[key] = documents

    async def log_call(self, record: CallRecord) -> None:
        self.records.append(record)


# ---------------------------------------------------------------- cache


async def test_a_second_run_asks_nothing_and_gets_the_same() -> None:
    memory = Memory()
    request = ask(documents=("d1",), affinity="r1")
    with ScriptedServer(Reply(LAMP, reasoning="Hm.")) as server:
        replies: list[ChatReply] = []
        for _ in range(2):
            async with ModelStack(profile_for(server), cache=memory, log=memory) as stack:
                replies.append(await stack.model("card").complete(request))
    first, second = replies
    assert len(server.requests) == 1
    assert (second.value, second.text, second.reasoning) == (first.value, LAMP, "Hm.")
    assert (first.from_cache, second.from_cache) == (False, True)
    assert second.usage == Usage(paths={"cache_hit": 1})
    assert list(memory.documents.values()) == [("d1",)]
    assert [record.outcome for record in memory.records] == ["ok", "cached"]


async def test_a_bad_reply_is_never_kept_so_that_the_next_run_can_succeed() -> None:
    memory = Memory()
    with ScriptedServer(LAMP) as server:
        server.on(None, '{"name": "broken', times=2)
        async with ModelStack(profile_for(server), cache=memory) as stack:
            with pytest.raises(CallFailed):
                await stack.model("card").complete(ask())
            assert memory.replies == {}
            assert (await stack.model("card").complete(ask())).value is not None
    assert len(memory.replies) == 1


async def test_a_kept_reply_that_is_damaged_is_asked_for_anew_and_counted() -> None:
    memory = Memory()
    with ScriptedServer(LAMP) as server:
        async with ModelStack(profile_for(server), cache=memory) as stack:
            await stack.model("card").complete(ask())
            memory.replies = dict.fromkeys(memory.replies, '{"text": 1')
            reply = await stack.model("card").complete(ask())
    assert reply.usage.paths == {"cache_unusable": 1}
    assert len(server.requests) == 2


async def test_tool_calls_and_log_probabilities_survive_the_cache() -> None:
    memory = Memory()
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    scripted = Reply("x", tool_calls=calls, logprobs=[("x", -0.5)], finish_reason="tool_calls")
    request = ask(output=None, top_logprobs=1)
    with ScriptedServer(scripted) as server:
        async with ModelStack(profile_for(server), cache=memory) as stack:
            replies = [await stack.model("card").complete(request) for _ in range(2)]
    assert replies[1].from_cache
    assert replies[1].tool_calls == (ToolCall("c1", "look", "{}"),)
    assert replies[1].extra["top_logprobs"] == [("x", -0.5)]


async def test_a_kept_reply_is_heard_when_somebody_listens() -> None:
    memory, heard = Memory(), list[str]()
    with ScriptedServer(LAMP) as server:
        async with ModelStack(profile_for(server), cache=memory) as stack:
            await stack.model("card").complete(ask())
            await stack.model("card").complete(ask(on_text=heard.append))
    assert heard == [LAMP]


class Other(BaseModel):
    name: str


ROLE = RoleSettings(endpoint="desk", model="scripted")


@pytest.mark.parametrize(
    "other",
    [
        ask("Another text."),
        ask(output=None),
        ask(output=Other),
        ask(role="select"),
        ask(max_tokens=7),
        ask(top_logprobs=2),
        ask(tools=({"type": "function"},)),
        replace(ask(), prompt=PromptRef("sketch_lamp", 2, "0" * 64)),
        replace(ask(), prompt=PromptRef("sketch_lamp", 1, "1" * 64)),
        replace(ask(), messages=(Message("system", "Describe the lamp."),)),
    ],
)
def test_what_changes_a_good_reply_changes_the_key(other: ChatRequest) -> None:
    assert cache_key(other, ROLE) != cache_key(ask(), ROLE)


@pytest.mark.parametrize(
    "change",
    [{"model": "b"}, {"temperature": 0.7}, {"max_tokens": 9}, {"extra_body": {"top_k": 1}}],
)
def test_what_changes_the_model_changes_the_key(change: dict[str, Any]) -> None:
    assert cache_key(ask(), ROLE.model_copy(update=change)) != cache_key(ask(), ROLE)


def test_where_and_how_a_reply_is_asked_for_does_not_change_the_key() -> None:
    other = ask(affinity="r", documents=("d",), prompt_tokens=3, mode="text", on_text=print)
    assert cache_key(other, ROLE) == cache_key(ask(), ROLE)
    assert cache_key(ask(), ROLE.model_copy(update={"endpoint": "b"})) == cache_key(ask(), ROLE)


def test_the_key_is_the_same_in_every_process_and_version() -> None:
    assert cache_key(ask(), ROLE) == (
        "845ae31ed13342828ce476acbcec9439d7cea7b8d0edb62e15cf260d1e3c9e8e"
    )


# ---------------------------------------------------------------- record


async def test_usage_is_added_up_by_role_also_of_failures() -> None:
    memory = Memory()
    with ScriptedServer(LAMP) as server:
        server.on("bad", "not json")
        async with ModelStack(profile_for(server), log=memory) as stack:
            await stack.model("card").complete(ask("good"))
            with pytest.raises(CallFailed):
                await stack.model("card").complete(ask("bad"))
            usage = stack.usage["card"]
    assert (usage.calls, usage.reasks) == (3, 1)
    assert usage.calls == len(server.requests)
    assert [record.outcome for record in memory.records] == ["ok", "invalid_reply"]
    assert memory.records[1].usage.calls == 2
    assert memory.records[0].prompt == "sketch_lamp@1"
    assert "good" not in memory.records[0].model_dump_json()


async def test_two_questions_at_once_have_their_own_costs() -> None:
    with ScriptedServer(LAMP) as server:
        async with ModelStack(profile_for(server)) as stack:
            one, other = stack.new_recorder(), stack.new_recorder()
            await stack.model("card", one).complete(ask("one"))
            await stack.model("card", other).complete(ask("other"))
            await stack.model("card", other).complete(ask("other again"))
    assert (one.usage["card"].calls, other.usage["card"].calls) == (1, 2)
    assert stack.usage == {}


async def test_a_cancelled_call_is_counted_and_leaves_nothing_under_way() -> None:
    with ScriptedServer(Reply(hang=True)) as server:
        async with ModelStack(profile_for(server)) as stack:
            task = asyncio.create_task(stack.model("card").complete(ask()))
            await server.until(lambda: server.in_flight == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.until(lambda: server.in_flight == 0)
            assert stack.usage["card"].paths == {"cancelled": 1}
    assert len(server.requests) == 1


# ---------------------------------------------------------------- many calls


async def test_hung_trickling_and_dropped_calls_are_tried_again_and_all_complete() -> None:
    with ScriptedServer(LAMP) as server:
        server.on("two", Reply(hang=True), times=1)
        server.on("three", Reply(trickle=True), times=1)
        server.on("four", Reply(drop="mid_body"), times=1)
        profile = profile_for(server, timeout_s=0.3)
        async with ModelStack(profile, clock=FakeClock()) as stack:
            names = ["one", "two", "three", "four", "five"]
            model = stack.model("card")
            replies = await fan_out(names, lambda name: model.complete(ask(name)), workers=4)
        await server.until(lambda: server.in_flight == 0)
    assert all(reply.value for reply in replies)
    assert len(server.requests) == 8
    assert stack.usage["card"].retries == 3


async def test_the_limit_of_an_endpoint_holds_over_roles_and_callers() -> None:
    gate = Gate()
    with ScriptedServer(Reply(LAMP, gate=gate)) as server:
        profile = profile_for(server, in_flight=3)
        settings = profile.roles["card"]
        profile = profile.model_copy(update={"roles": {"card": settings, "select": settings}})
        async with ModelStack(profile) as stack:
            tasks = [
                asyncio.create_task(stack.model(role).complete(ask(str(number), role=role)))
                for number in range(5)
                for role in ("card", "select")
            ]
            await server.until(lambda: server.in_flight == 3)
            gate.open()
            await asyncio.wait(tasks, timeout=5)
    assert server.peak == 3
    assert len(server.requests) == 10


FAULTS = ["fine", "500", "429", "hang", "json", "length", "refusal", "drop"]


async def test_a_third_of_faulty_replies_of_all_kinds_is_accounted_for() -> None:
    """Every call ends in one outcome, no request is repeated beyond its allowance."""

    def speak(seen: Seen) -> Reply:
        number, _, fault = seen.text.partition("\n")[0].partition(" ")
        kinds = {
            "500": Reply(status=500),
            "429": Reply(status=429, headers={"Retry-After": "1"}),
            "hang": Reply(hang=True),
            "json": Reply('{"name": '),
            "length": Reply(LAMP, finish_reason="length"),
            "refusal": Reply(None, refusal=f"No {number}."),
            "drop": Reply(drop="before"),
        }
        return kinds.get(fault, Reply(LAMP))

    calls = 72
    faults = [FAULTS[number // 3 % 8] if number % 3 == 0 else "fine" for number in range(calls)]
    expected = {"json": 2, "length": 2, "refusal": 1, "fine": 1}
    with ScriptedServer(speak) as server:
        profile = profile_for(server, in_flight=16, retries=1, timeout_s=1)
        async with ModelStack(profile, clock=FakeClock()) as stack:
            model = stack.model("card")

            async def one(number: int) -> str:
                try:
                    await model.complete(ask(f"{number} {faults[number]}"))
                except CallFailed as error:
                    assert error.usage is not None
                    return error.problem
                return "fine"

            outcomes = await fan_out(range(calls), one, workers=32)
    wanted = {
        "fine": "fine",
        "500": "server",
        "429": "rate_limit",
        "hang": "timeout",
        "json": "invalid_reply",
        "length": "length",
        "refusal": "refusal",
        "drop": "connection",
    }
    assert outcomes == [wanted[fault] for fault in faults]
    sent = Counter(seen.text.split("\n")[0] for seen in server.requests)
    for number, fault in enumerate(faults):
        # On a busy machine a good reply may come too late, too: never more than the allowance.
        assert expected.get(fault, 2) <= sent[f"{number} {fault}"] <= 2 * expected.get(fault, 1)
    assert stack.usage["card"].calls == len(server.requests)


async def test_the_account_being_empty_stops_the_run_with_one_request() -> None:
    said = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    with ScriptedServer(LAMP) as server:
        server.on("3", Reply(status=429, error=said))
        async with ModelStack(profile_for(server, in_flight=1)) as stack:
            model = stack.model("card")
            with pytest.raises(EndpointError) as failed:
                await fan_out(
                    range(1, 9), lambda number: model.complete(ask(f"no {number}")), workers=1
                )
    assert failed.value.problem == "quota"
    assert len(server.requests) == 3


async def test_a_limit_that_only_sounds_like_an_empty_account_is_waited_for() -> None:
    raw = json.dumps({"error": "INSUFFICIENT QUOTA", "message": "Too many concurrent requests."})
    with ScriptedServer(LAMP) as server:
        server.on(None, Reply(status=429, raw=raw), times=1)
        async with ModelStack(profile_for(server), clock=FakeClock()) as stack:
            reply = await stack.model("card").complete(ask())
    assert (reply.usage.calls, reply.usage.retries) == (2, 1)


def test_two_stacks_in_two_threads_do_not_meet() -> None:
    errors: list[BaseException] = []
    with ScriptedServer(LAMP) as server:

        async def use() -> None:
            async with ModelStack(profile_for(server, in_flight=2)) as stack:
                model = stack.model("card")
                await fan_out(range(20), lambda n: model.complete(ask(str(n))), workers=4)
                assert stack.usage["card"].calls == 20

        def run() -> None:
            try:
                asyncio.run(use())
            except (ModelError, RuntimeError, AssertionError) as error:
                errors.append(error)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert errors == []
    assert len(server.requests) == 40


async def test_closing_leaves_no_task_and_no_connection() -> None:
    before = asyncio.all_tasks()
    with ScriptedServer(LAMP) as server:
        stack = ModelStack(profile_for(server))
        await stack.model("card").complete(ask())
        await stack.close()
        await stack.close()
    assert asyncio.all_tasks() == before


# ---------------------------------------------------------------- what servers tell


async def test_the_context_length_comes_from_the_profile_or_else_from_the_server() -> None:
    with ScriptedServer(context_limit=5_000) as server:
        async with ModelStack(profile_for(server)) as stack:
            assert await stack.context_tokens("card") == 5_000
            assert await stack.context_tokens("card") == 5_000
        assert server.gets.count("/v1/models") == 1
        async with ModelStack(profile_for(server, {"context_tokens": 700})) as stack:
            assert await stack.context_tokens("card") == 700


async def test_a_server_that_does_not_tell_its_context_leaves_it_unknown() -> None:
    with ScriptedServer() as server:
        async with ModelStack(profile_for(server)) as stack:
            assert await stack.context_tokens("card") is None


async def test_a_role_the_profile_does_not_have_is_a_configuration_error() -> None:
    with ScriptedServer() as server:
        async with ModelStack(profile_for(server)) as stack:
            with pytest.raises(ConfigError, match=r"roles\.judge"):
                stack.model("judge")


async def test_the_doctor_tries_what_an_endpoint_can_do() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}

    def speak(seen: Seen) -> Reply | None:
        if seen.body.get("tools"):
            return Reply("", tool_calls=[call], finish_reason="tool_calls")
        if seen.body.get("logprobs"):
            return Reply("yes", logprobs=[("yes", -0.1), ("no", -2.0)])
        return None

    with ScriptedServer(speak, context_limit=50_000, prefix_cache=True) as server:
        (found,) = await probe(profile_for(server))
    assert found.problem is None
    assert (found.reachable, found.model_known, found.context_tokens) == (True, True, 50_000)
    assert found.structured == "json_schema"
    assert found.logprobs
    assert found.tool_calls
    assert found.reports_cached
    assert found.prefix_cache
    assert found.tokens_per_s is not None


async def test_the_doctor_finds_what_an_endpoint_cannot_do() -> None:
    with ScriptedServer(formats=["json_object"]) as server:
        (found,) = await probe(profile_for(server))
    assert found.structured == "json_object"
    assert (found.logprobs, found.tool_calls) == (False, False)
    assert (found.reports_cached, found.prefix_cache) == (False, False)


async def test_the_doctor_reports_a_bad_endpoint_and_goes_on() -> None:
    with ScriptedServer(models=["another"], api_key="hush-hush-9") as server:
        (locked,) = await probe(profile_for(server))
        (unknown,) = await probe(profile_for(server, api_key="hush-hush-9"))
        profile = profile_for(server)
    (gone,) = await probe(profile)
    assert locked.reachable
    assert "refused the key" in str(locked.problem)
    assert (unknown.reachable, unknown.model_known) == (True, False)
    assert "roles.card.model" in str(unknown.problem)
    assert not gone.reachable
    assert "cannot be reached" in str(gone.problem)


# ---------------------------------------------------------------- fakes


async def test_a_fake_model_answers_by_the_request_and_records_it() -> None:
    model = FakeModel(lambda request: {"name": request.messages[0].content, "watts": []})
    reply = await model.complete(ask("Amber"))
    assert reply.value == Lamp(name="Amber", watts=[])
    assert [request.messages[0].content for request in model.requests] == ["Amber"]


async def test_a_scripted_model_refuses_calls_that_are_not_in_its_script() -> None:
    model = ScriptedModel([LAMP, CallFailed("no", problem="server", role="card")])
    assert (await model.complete(ask())).value == Lamp(name="Brindle", watts=[4, 9])
    with pytest.raises(AssertionError):
        model.check_finished()
    with pytest.raises(CallFailed):
        await model.complete(ask())
    model.check_finished()
    with pytest.raises(AssertionError):
        await model.complete(ask())
