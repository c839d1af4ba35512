"""A lead whose replies follow a schema, for endpoints whose tool calls do not work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from hmars.errors import CallFailed
from hmars.llm.contract import PromptRef, value_of
from hmars.query.lead.agents import Decision, Entry, EntryKind, Observation, QueryCall
from hmars.query.lead.dialogue import Dialogue
from hmars.query.lead.tooled import UNUSABLE

FORMS = (
    'Your turn held neither a query nor an answer. Put queries into "queries", or the final answer '
    'into "answer".'
)


class LeadAction(BaseModel):
    """What the lead must send: `{thought, queries}` or `{thought, answer}`; queries come first."""

    thought: str = ""
    queries: list[str] = Field(default_factory=list[str])
    answer: str = ""


class SchemaLead:
    """Drives a model through structured replies; results come back as the next message."""

    def __init__(self, dialogue: Dialogue, max_turn_tokens: int, notes: Sequence[str] = ()) -> None:
        self._dialogue = dialogue
        self._max_turn_tokens = max_turn_tokens
        self._queries: tuple[str, ...] = ()
        self.notes: Sequence[str] = notes

    @property
    def entries(self) -> Sequence[Entry]:
        return self._dialogue.entries

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        return ()

    @property
    def prompt(self) -> PromptRef | None:
        return self._dialogue.prompt

    @property
    def tokens(self) -> int:
        return self._dialogue.tokens

    async def decide(self) -> Decision:
        """Raises: as `Lead.decide`."""
        self._queries = ()
        try:
            reply = await self._dialogue.send(output=LeadAction, max_tokens=self._max_turn_tokens)
        except CallFailed as error:
            if error.problem not in UNUSABLE:
                raise
            self._dialogue.say("", invalid=True)
            return Decision(problem=f"the turn could not be used: {error}")
        action = value_of(reply, LeadAction)
        self._queries = tuple(" ".join(query.split()) for query in action.queries if query.strip())
        answer = action.answer.strip()
        useless = not self._queries and not answer
        self._dialogue.say(action.model_dump_json(), reasoning=reply.reasoning, invalid=useless)
        if self._queries:
            return Decision(tuple(QueryCall(query) for query in self._queries))
        if answer:
            return Decision(answer=answer)
        return Decision(problem="neither a query nor an answer")

    def observe(self, observations: Sequence[Observation]) -> None:
        parts = [
            f"Query: {query}\n{seen.text}"
            for query, seen in zip(self._queries, observations, strict=True)
        ]
        self._dialogue.tell("\n\n".join(parts), "observation")
        self._queries = ()

    def tell(self, text: str, *, kind: EntryKind = "hint") -> None:
        self._dialogue.tell(text, kind)
