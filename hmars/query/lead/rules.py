"""A lead without a model: it asks the question, then about the names that came back.

It draws no conclusion; the answer is quoted from the pages it found. That is one hop further than
a single query goes, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hmars.lexical import Terms, fold, names
from hmars.llm.contract import Message, PromptRef
from hmars.query.agents import QueryAgents, Scope
from hmars.query.lead.agents import (
    Decision,
    Entry,
    EntryKind,
    LeadAgents,
    Observation,
    QueryCall,
)
from hmars.query.lead.sentences import SentenceIndex, SentenceReader
from hmars.query.lead.windows import windows_of

MOST_FOLLOWED = 4
"""Names that are followed up."""
NO_CONCLUSION = "(no conclusion: the evidence is quoted)"


class RuleLead:
    """Round 1: the question. Round 2: each new name in what was found, with the question's words.

    Round 3 ends without a conclusion.
    """

    def __init__(self, question: str) -> None:
        self._question = question
        self._turn = 0
        self._queries: list[str] = []
        self._found: list[str] = []
        self.entries: list[Entry] = [Entry(Message("user", question), "prompt")]

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        return ()

    @property
    def prompt(self) -> PromptRef | None:
        return None

    @property
    def tokens(self) -> int:
        return 0

    @property
    def notes(self) -> Sequence[str]:
        return ()

    async def decide(self) -> Decision:
        self._turn += 1
        queries = [self._question] if self._turn == 1 else []
        if self._turn == 2:
            queries = self._follow_up()
        if not queries:
            self.entries.append(Entry(Message("assistant", NO_CONCLUSION), "lead"))
            return Decision(answer=NO_CONCLUSION)
        self._queries = queries
        self.entries.append(Entry(Message("assistant", "\n".join(queries)), "lead"))
        return Decision(tuple(QueryCall(query) for query in queries))

    def observe(self, observations: Sequence[Observation]) -> None:
        for seen in observations:
            self._found.extend(finding.quote for finding in seen.findings)
            self.entries.append(Entry(Message("user", seen.text), "observation"))

    def tell(self, text: str, *, kind: EntryKind = "hint") -> None:
        self.entries.append(Entry(Message("user", text), kind))

    def _follow_up(self) -> list[str]:
        """Names that the question does not hold, each with what the question asks beside names."""
        asked = fold(self._question)
        named = names(self._question).proper
        rest = self._question
        for name in named:
            rest = rest.replace(name, " ")
        rest = " ".join(rest.split())
        fresh = [
            name
            for name in names("\n".join(self._found)).proper
            if fold(name) not in asked and " " in name
        ]
        return [f"{name} {rest}" for name in fresh[:MOST_FOLLOWED]]


def extractive_lead_agents(
    question: str, scope: Scope, agents: QueryAgents, window_tokens: int
) -> LeadAgents:
    """The lead, readers and answerer of the profile without models.

    `agents` are those of the single query; their answerer quotes from what the lead found. There is
    nobody to verify who a passage is about.
    """
    index = SentenceIndex(windows_of(scope, window_tokens), Terms())
    return LeadAgents(
        lead=RuleLead(question),
        reader=SentenceReader(index),
        answerer=lambda draft: agents.answerer,
        window_tokens=window_tokens,
    )
