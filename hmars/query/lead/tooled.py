"""A lead that calls a tool (S-PARSER 3.2): native calls, or their text forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hmars.errors import CallFailed
from hmars.llm.contract import PromptRef, ToolCall
from hmars.query.lead.agents import Decision, Entry, EntryKind, Observation, QueryCall
from hmars.query.lead.dialogue import Dialogue
from hmars.query.lead.turns import arguments_of, read_turn

QUERY_TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "query_agents",
        "description": (
            "Puts one query before all agents at once. Each agent holds one part of the text and "
            "answers from it, or stays silent."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "What to look for, naming whom or what it is about.",
                }
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
FORMS = (
    "Your turn held neither a call of query_agents nor an answer. Either call query_agents with a "
    "query, or write the final answer between <answer> and </answer>."
)
UNUSABLE = ("invalid_reply", "length")
"""Failures of a call that are the model's own doing: a turn of the lead, though a useless one."""


class ToolLead:
    """Drives a model through `query_agents`; takes its answer from `<answer>` marks."""

    def __init__(self, dialogue: Dialogue, max_turn_tokens: int) -> None:
        self._dialogue = dialogue
        self._max_turn_tokens = max_turn_tokens
        self._calls: tuple[ToolCall, ...] = ()
        self._made = 0

    @property
    def entries(self) -> Sequence[Entry]:
        return self._dialogue.entries

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        return (QUERY_TOOL,)

    @property
    def prompt(self) -> PromptRef | None:
        return self._dialogue.prompt

    @property
    def tokens(self) -> int:
        return self._dialogue.tokens

    @property
    def notes(self) -> Sequence[str]:
        return ()

    async def decide(self) -> Decision:
        """Raises: as `Lead.decide`."""
        try:
            reply = await self._dialogue.send(tools=self.tools, max_tokens=self._max_turn_tokens)
        except CallFailed as error:
            if error.problem not in UNUSABLE:
                raise
            self._dialogue.say("", invalid=True)
            return self._invalid(f"the turn could not be used: {error}")
        turn = read_turn(reply, first_id=self._made + 1)
        self._made += len(turn.calls)
        self._calls = turn.calls
        calls = tuple(query_of(call) for call in turn.calls)
        useless = not turn.answer and not any(call.query for call in calls)
        self._dialogue.say(turn.text, turn.calls, reasoning=reply.reasoning, invalid=useless)
        if calls:
            return Decision(calls)
        if turn.answer:
            return Decision(answer=turn.answer)
        return self._invalid("neither a query nor an answer")

    def observe(self, observations: Sequence[Observation]) -> None:
        for call, seen in zip(self._calls, observations, strict=True):
            self._dialogue.result(call, seen.text)
        self._calls = ()

    def tell(self, text: str, *, kind: EntryKind = "hint") -> None:
        self._dialogue.tell(text, kind)

    def _invalid(self, problem: str) -> Decision:
        self._calls = ()
        return Decision(problem=problem)


def query_of(call: ToolCall) -> QueryCall:
    """The query of a call, or what is wrong with the call in words for the model."""
    if call.name != "query_agents":
        return QueryCall(error=f"There is no tool named {call.name!r}: use query_agents.")
    arguments = arguments_of(call)
    if arguments is None:
        return QueryCall(error="The arguments must be a JSON object with the key 'query'.")
    query = arguments.get("query")
    if not isinstance(query, str):
        return QueryCall(error="The argument 'query' is missing or is not a string.")
    if not query.strip():
        return QueryCall(error="The argument 'query' is empty.")
    return QueryCall(" ".join(query.split()))
