"""Which lead and readers a profile means, how tools give way to a schema, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hmars.errors import ConfigError, EndpointError
from hmars.llm.contract import ChatRequest
from hmars.llm.fake import Says
from hmars.llm.fit import needs
from hmars.prompts import PromptLibrary
from hmars.query.lead import lead_roles, lead_settings
from hmars.query.lead.family import own_prompt
from hmars.query.lead.kept import ActionMemory
from hmars.settings import LeadSettings, Profile, load_profile, profile_names
from tests.lead_world import (
    DEATH_ONE,
    DEATH_TWO,
    FILM_ONE,
    FILM_TWO,
    RIGHT,
    ask_world,
    by_role,
    document,
    lead_turn,
    pages_of,
    profile_of,
)
from tests.support import make_index

INDEX = make_index(
    pages_of(document(64, {5: DEATH_TWO, 20: DEATH_ONE, 40: FILM_TWO, 60: FILM_ONE}))
)


def schemed(request: ChatRequest) -> Says:
    """The world's lead under a schema: results come as the user's words."""
    told = [
        {"role": "tool", "content": message.content}
        for message in request.messages
        if message.role == "user"
    ]
    queries, answer = lead_turn(told)
    return {"thought": "so", "queries": queries, "answer": answer}


async def test_what_one_question_finds_out_about_tool_calls_holds_for_the_next() -> None:
    def lead(request: ChatRequest) -> Says:
        if request.tools:
            raise EndpointError("It takes no tools.", problem="bad_request", role="lead")
        return schemed(request)

    actions = ActionMemory()
    await ask_world(by_role(lead=lead), INDEX, actions=actions)
    result, model = await ask_world(by_role(lead=lead), INDEX, actions=actions)
    assert not any(request.tools for request in model.requests)
    assert result.answer.answer.startswith(RIGHT)
    (note,) = result.answer.ledger.notes
    assert "found by an earlier question: It takes no tools" in note


async def test_a_model_whose_tool_calls_have_worked_is_not_held_to_be_without_them() -> None:
    def silent(request: ChatRequest) -> Says:
        return "I would look for the director." if request.tools else schemed(request)

    actions = ActionMemory()
    await ask_world(by_role(), INDEX, actions=actions)
    await ask_world(by_role(lead=silent), INDEX, actions=actions)
    _, model = await ask_world(by_role(), INDEX, actions=actions)
    assert all(request.tools for request in model.requests if request.role == "lead")


async def test_tools_that_the_profile_demands_are_tried_whatever_was_found() -> None:
    actions = ActionMemory()
    profile = profile_of(lead={"actions": "tools"})
    actions.fails(profile, "lead", "two turns held no call")
    _, model = await ask_world(by_role(), INDEX, profile=profile, actions=actions)
    assert all(request.tools for request in model.requests if request.role == "lead")


async def test_a_lead_under_a_schema_works_the_question_out_in_the_same_rounds() -> None:
    profile = profile_of(lead={"actions": "schema"})
    result, model = await ask_world(by_role(lead=schemed), INDEX, profile=profile)
    assert [len(item.queries) for item in result.answer.rounds] == [2, 2, 0]
    assert result.answer.answer.startswith(RIGHT)
    lead = [request for request in model.requests if request.role == "lead"]
    assert all(request.output is not None and not request.tools for request in lead)
    roles = [message.role for message in lead[-1].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert not result.answer.ledger.notes


async def test_an_endpoint_that_refuses_tools_is_asked_under_a_schema_and_the_ledger_says_so() -> (
    None
):
    def lead(request: ChatRequest) -> Says:
        if request.tools:
            raise EndpointError("It takes no tools.", problem="bad_request", role="lead")
        return schemed(request)

    result, _ = await ask_world(by_role(lead=lead), INDEX)
    assert result.answer.answer.startswith(RIGHT)
    (note,) = result.answer.ledger.notes
    assert "It takes no tools" in note and 'lead.actions = "schema"' in note


async def test_a_model_that_makes_no_calls_is_asked_under_a_schema_after_two_turns() -> None:
    def lead(request: ChatRequest) -> Says:
        return "I would look for the director." if request.tools else schemed(request)

    result, _ = await ask_world(by_role(lead=lead), INDEX)
    assert [item.invalid for item in result.answer.rounds] == [True, True, False, False, False]
    assert result.answer.answer.startswith(RIGHT)
    assert any("2 turns held no tool call" in note for note in result.answer.ledger.notes)


async def test_where_the_profile_says_tools_a_refusal_ends_the_question() -> None:
    def lead(request: ChatRequest) -> Says:
        raise EndpointError("It takes no tools.", problem="bad_request", role="lead")

    with pytest.raises(EndpointError, match="no tools"):
        await ask_world(by_role(lead=lead), INDEX, profile=profile_of(lead={"actions": "tools"}))


async def test_the_lead_never_sees_a_page_and_answers_in_its_own_words_where_that_is_wanted() -> (
    None
):
    profile = profile_of(lead={"answer_from": "lead"})
    result, model = await ask_world(by_role(), INDEX, profile=profile)
    assert result.answer.answer.startswith(f"{RIGHT} [1")
    assert len(result.answer.citations) == 4
    assert not any(request.role == "answer" for request in model.requests)
    for request in model.requests:
        if request.role == "lead":
            assert "workshop number" not in "".join(m.content for m in request.messages)


def test_prompt_files_of_the_profile_stand_in_for_ours(tmp_path: Path) -> None:
    system, user = tmp_path / "system.txt", tmp_path / "user.txt"
    system.write_text("Costs $5 {x}", encoding="utf-8")
    user.write_text("## Question\n{question}\nfor $3", encoding="utf-8")
    settings = LeadSettings(system_prompt_file=system, user_prompt_file=user)
    ours = PromptLibrary().get("lead_ask_tools")
    own = own_prompt(ours, settings)
    assert [message.content for message in own.render(question="Who?")] == [
        "Costs $5 {x}",
        "## Question\nWho?\nfor $3",
    ]
    assert own.ref.id == "lead_ask_tools_own" and own.ref.sha256 != ours.ref.sha256
    user.write_text("no place", encoding="utf-8")
    with pytest.raises(ConfigError, match="where the question goes"):
        own_prompt(ours, settings)
    with pytest.raises(ConfigError, match=r"lead\.system_prompt_file: .* cannot be read"):
        own_prompt(ours, LeadSettings(system_prompt_file=tmp_path / "none.txt"))


def test_thinking_readers_have_thinking_turned_on_unless_the_profile_says_it_otherwise() -> None:
    def body(mode: str, extra: dict[str, Any]) -> dict[str, Any]:
        data = profile_of().model_dump()
        data["roles"]["read"]["extra_body"] = extra
        data["read"]["mode"] = mode
        return Profile.model_validate(data).roles["read"].extra_body

    assert body("direct", {}) == {}
    assert body("thinking", {"top_k": 20}) == {
        "top_k": 20,
        "chat_template_kwargs": {"enable_thinking": True},
    }
    assert body("thinking", {"reasoning_effort": "low"}) == {"reasoning_effort": "low"}
    with pytest.raises(ValidationError, match="turns thinking off"):
        body("thinking", {"chat_template_kwargs": {"enable_thinking": False}})


def test_sizes_that_cannot_work_are_refused_with_what_to_change() -> None:
    with pytest.raises(ValidationError, match="no room for two rounds"):
        LeadSettings(max_context_tokens=8_000)
    served = profile_of()
    role = served.roles["lead"].model_copy(update={"context_tokens": 32_768})
    served = served.model_copy(update={"roles": {**served.roles, "lead": role}})
    assert lead_settings(served, 1).lead.max_context_tokens == 32_768
    role = role.model_copy(update={"context_tokens": 4_096})
    served = served.model_copy(update={"roles": {**served.roles, "lead": role}})
    with pytest.raises(ConfigError, match=r"roles\.lead\.context_tokens \(4096\) has no room"):
        lead_settings(served, 1)


def test_only_what_a_lead_asks_is_priced_and_only_what_readers_see_must_fit() -> None:
    roles = lead_roles(profile_of())
    assert set(roles) == {"lead", "read", "broadcast", "answer"}
    assert "broadcast" not in lead_roles(profile_of(lead={"hints": False}))
    assert "read" in {need.role for need in needs(profile_of(), roles)}
    assert "read" not in {need.role for need in needs(profile_of(read={"mode": "grep"}), roles)}


def test_the_shipped_profile_of_the_lead_is_complete() -> None:
    assert "lead" in profile_names()
    profile = load_profile("lead")
    assert {"lead", "read", "answer", "broadcast"} <= set(profile.roles)
    assert profile.roles["lead"].temperature == 0
    assert profile.read.window_tokens == 4096
    assert lead_settings(profile, 1).lead.max_rounds == 12
