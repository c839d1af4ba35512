"""`lead.actions = "auto"`: tools first, a schema where tools turn out not to work. Said, not
hidden: the ledger's notes name the change and why. The next question does not try again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hmars.errors import EndpointError
from hmars.llm.contract import PromptRef
from hmars.query.lead.agents import Decision, Entry, EntryKind, Lead, Observation

TRIALS = 2
"""Turns without a usable call or answer after which tools are given up."""
SETTLE = 'set lead.actions = "schema" to save the trial'


def _ignore(*_: str) -> None:
    return None


class AutoLead:
    """Changes over at most once, and only before anything has been found through tools."""

    def __init__(
        self,
        tooled: Lead,
        make_schemed: Callable[[str], Lead],
        *,
        works: Callable[[], None] = _ignore,
        fails: Callable[[str], None] = _ignore,
    ) -> None:
        """Args:
        make_schemed: takes a note on why the change was made.
        works: told when a tool call was understood.
        fails: told why tool calls were given up.
        """
        self._lead = tooled
        self._make = make_schemed
        self._works = works
        self._fails = fails
        self._settled = False
        self._failed_turns = 0

    @property
    def entries(self) -> Sequence[Entry]:
        return self._lead.entries

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        return self._lead.tools

    @property
    def prompt(self) -> PromptRef | None:
        return self._lead.prompt

    @property
    def tokens(self) -> int:
        return self._lead.tokens

    @property
    def notes(self) -> Sequence[str]:
        return self._lead.notes

    async def decide(self) -> Decision:
        """Raises: as `Lead.decide`."""
        if not self._settled and self._failed_turns >= TRIALS:
            self._change(f"{TRIALS} turns held no tool call")
        try:
            decision = await self._lead.decide()
        except EndpointError as error:
            if self._settled or error.problem != "bad_request":
                raise
            self._change(str(error).rstrip("."))
            decision = await self._lead.decide()
        called = any(call.query for call in decision.calls)
        if called and self.tools:
            self._works()
        if decision.answer or called:
            self._settled = True
        else:
            self._failed_turns += 1
        return decision

    def observe(self, observations: Sequence[Observation]) -> None:
        self._lead.observe(observations)

    def tell(self, text: str, *, kind: EntryKind = "hint") -> None:
        self._lead.tell(text, kind=kind)

    def _change(self, why: str) -> None:
        self._settled = True
        self._fails(why)
        self._lead = self._make(no_tools(why))


def no_tools(why: str) -> str:
    return (
        f"The lead's tool calls do not work here ({why}), so it was asked under a schema: {SETTLE}."
    )
