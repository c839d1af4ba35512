"""A lead without a model: it asks the question, then about the names that came back.

It draws no conclusion: the answer is what it found, quoted in the order it found it. That is one
hop further than a single query goes, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hmars.lexical import Terms, fold, names
from hmars.llm.contract import Message, PromptRef
from hmars.model import Finding
from hmars.query.agents import (
    Answerer,
    Draft,
    EvidenceBlock,
    OnText,
    QueryAgents,
    Quote,
    Scope,
)
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
COVERED = 0.55
"""Share of the question, by rarity, that the quotations must hold together."""
NO_CONCLUSION = "(no conclusion: the evidence is quoted)"


class RuleLead:
    """Round 1: the question. Round 2: each new name in what was found, with the question's words.

    Round 3 ends without a conclusion.
    """

    def __init__(self, question: str) -> None:
        self._question = question
        self._turn = 0
        self._queries: list[str] = []
        self.found: list[Finding] = []
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
            self.found.extend(seen.findings)
            self.entries.append(Entry(Message("user", seen.text), "observation"))

    def tell(self, text: str, *, kind: EntryKind = "hint") -> None:
        self.entries.append(Entry(Message("user", text), kind))

    def _follow_up(self) -> list[str]:
        """Names that the question does not hold, each with what the question asks beside names."""
        asked = fold(self._question)
        named = names(self._question).proper
        rest = self._question
        for name in named:
            rest = re.sub(rf"(?:\b[Tt]he\s+)?{re.escape(name)}", " ", rest)
        rest = " ".join(rest.split())
        fresh = [
            name
            for name in names("\n".join(item.quote for item in self.found)).proper
            if fold(name) not in asked and " " in name
        ]
        return [f"{name} {rest}" for name in fresh[:MOST_FOLLOWED]]


@dataclass(frozen=True)
class ChainAnswerer:
    """Quotes the best finding of each query, where together they speak of what is asked.

    Else the answerer of the single query decides, which abstains unless one place covers it.
    """

    lead: RuleLead
    index: SentenceIndex
    otherwise: Answerer

    async def answer(
        self, question: str, evidence: Sequence[EvidenceBlock], on_text: OnText | None = None
    ) -> Draft:
        best: dict[str, Finding] = {}
        for finding in self.lead.found:
            known = best.get(finding.query)
            if known is None or finding.confidence > known.confidence:
                best[finding.query] = finding
        quotes = [
            Quote(block.number, finding.quote)
            for finding in {(item.document, item.start): item for item in best.values()}.values()
            for block in evidence
            if block.document == finding.document and block.start <= finding.start < block.end
        ]
        covered = self.index.coverage(question, [quote.text for quote in quotes])
        if len(quotes) < 2 or covered < COVERED:
            return await self.otherwise.answer(question, evidence, on_text)
        lines = [f"“{' '.join(quote.text.split())}” [{quote.block}]" for quote in quotes]
        text = "\n\n".join(lines)
        if on_text is not None:
            on_text(text)
        return Draft(text, abstained=False, quotes=tuple(quotes))


def extractive_lead_agents(
    question: str,
    scope: Scope,
    agents: QueryAgents,
    window_tokens: int,
    index: SentenceIndex | None = None,
) -> LeadAgents:
    """The lead, readers and answerer of the profile without models.

    `agents` are those of the single query, `index` that of an earlier question on the same scope.
    There is nobody to verify whom a passage is about.
    """
    index = index or SentenceIndex(windows_of(scope, window_tokens), Terms())
    lead = RuleLead(question)
    answerer = ChainAnswerer(lead, index, agents.answerer)
    return LeadAgents(
        lead=lead,
        reader=SentenceReader(index),
        answerer=lambda draft: answerer,
        window_tokens=window_tokens,
    )
