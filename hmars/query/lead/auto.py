"""`lead.actions = "auto"`: tools first, a schema where tools turn out not to work. Said, not
hidden: the ledger's notes name the change and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hmars.errors import EndpointError
from hmars.llm.contract import PromptRef
from hmars.query.lead.agents import Decision, Entry, EntryKind, Lead, Observation

TRIALS = 2
"""Turns without a usable call or answer after which tools are given up."""
SETTLE = 'set lead.actions = "schema" to save the trial'


class AutoLead:
    """Changes over at most once, and only before anything has been found through tools."""

    def __init__(self, tooled: Lead, make_schemed: Callable[[str], Lead]) -> None:
        """`make_schemed` takes a note on why the change was made."""
        self._lead = tooled
        self._make = make_schemed
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
        if decision.answer or any(call.query for call in decision.calls):
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
        self._lead = self._make(
            f"The lead's tool calls do not work here ({why}), so it was asked under a schema: "
            f"{SETTLE}."
        )
