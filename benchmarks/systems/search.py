"""Agentic RAG: a lead that searches in rounds, three passages a search, and answers when it can.

It acts through replies under a schema, so that models without tool calls can play it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from benchmarks.bench import Outcome, Spending, passed_of
from benchmarks.chunks import Chunk
from benchmarks.flat import FlatSystem
from benchmarks.ranking import DenseRanker

ROUNDS = 8
TOP = 3


class Step(BaseModel):
    """What the lead must send."""

    thought: str = ""
    action: Literal["search", "answer"]
    query: str = ""
    answer: str = ""


class AgenticRagSystem(FlatSystem):
    async def index(self) -> None:
        self._ranker = DenseRanker(self.bench)
        await self._ranker.index(self.chunks)

    async def rank(self, question: str, spending: Spending) -> Sequence[Chunk]:
        """What the lead has looked at, in the order in which it found it."""
        return (await self._explore(question, spending))[1]

    async def ask(self, question: str) -> Outcome:
        spending = self.bench.spending()
        answer, found = await self._explore(question, spending)
        notes = () if answer else (f"no answer within {ROUNDS} rounds",)
        return Outcome(
            answer, passed_of(found), spending.usage, spending.seconds, not answer, notes
        )

    async def _explore(self, question: str, spending: Spending) -> tuple[str, list[Chunk]]:
        found: dict[int, Chunk] = {}
        log: list[str] = []
        for _ in range(ROUNDS):
            step = await spending.fill(
                "lead", Step, "search_step", question=question, found="\n".join(log) or "(nothing)"
            )
            if step.action == "answer" and step.answer.strip():
                return step.answer.strip(), list(found.values())
            query = step.query.strip() or question
            log.append(f"Search: {query}")
            for chunk in (await self._ranker.rank(query))[:TOP]:
                text = "(shown above)" if chunk.number in found else chunk.text
                log.append(f"[{chunk.number + 1}] {text}")
                found.setdefault(chunk.number, chunk)
        return "", list(found.values())
