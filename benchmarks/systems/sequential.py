"""Readers that pass once over the text: Chain-of-Agents, MemAgent, ReMemR1; and map-reduce.

Written after the papers' descriptions, with prompts of our own and the models of the profile: the
role `read` reads, `answer` concludes. None of them passes source text on, so they have no evidence
recall.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from pydantic import BaseModel, Field

from benchmarks.bench import Bench, Outcome, Spending
from benchmarks.chunks import Chunk, chunked
from benchmarks.suites.base import BenchDocument
from benchmarks.suites.filters import plain_terms
from hmars.fanout import fan_out
from hmars.model import Usage

MEMORY_TOKENS = 1_024
EMPTY = "(empty)"


class ReaderSystem(ABC):
    """Cuts the text into chunks of a size of its own and reads them at question time."""

    size: ClassVar[int] = 4_096

    def __init__(self, bench: Bench, size: int | None = None) -> None:
        self._bench = bench
        self._size = size or self.size
        self._chunks: list[Chunk] = []

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]:
        self._chunks = [
            chunk
            for chunk in chunked(document.text, self._bench.tokenizer, self._size)
            if chunk.text.strip()
        ]
        return {}

    async def ask(self, question: str) -> Outcome:
        spending = self._bench.spending()
        text = await self.read(question, self._chunks, spending)
        return Outcome(text, None, spending.usage, spending.seconds)

    @abstractmethod
    async def read(self, question: str, chunks: Sequence[Chunk], spending: Spending) -> str: ...

    async def close(self) -> None:
        return None


class ChainOfAgentsSystem(ReaderSystem):
    """Workers hand a message down the chain; a manager answers from the last one."""

    size = 8_000

    async def read(self, question: str, chunks: Sequence[Chunk], spending: Spending) -> str:
        message = EMPTY
        for chunk in chunks:
            message = await spending.write(
                "read",
                "chain_worker",
                max_tokens=MEMORY_TOKENS,
                message=message,
                chunk=chunk.text,
                question=question,
            )
        return await spending.write("answer", "chain_manager", message=message, question=question)


class MemAgentSystem(ReaderSystem):
    """One memory of at most 1,024 tokens, rewritten with every section of 5,000."""

    size = 5_000

    async def read(self, question: str, chunks: Sequence[Chunk], spending: Spending) -> str:
        memory = EMPTY
        for chunk in chunks:
            memory = await spending.write(
                "read",
                "update_memory",
                max_tokens=MEMORY_TOKENS,
                memory=memory,
                chunk=chunk.text,
                question=question,
            )
        return await spending.write(
            "answer", "answer_from_memory", memory=memory, question=question
        )


class RecallReply(BaseModel):
    """What a reader with callback must send."""

    memory: str = Field(min_length=1)
    recall: str = ""


class ReMemSystem(ReaderSystem):
    """MemAgent that may call back the earlier state of its memory closest to a few words."""

    size = 5_000

    async def read(self, question: str, chunks: Sequence[Chunk], spending: Spending) -> str:
        memory, recalled = EMPTY, EMPTY
        states: list[str] = []
        for chunk in chunks:
            reply = await spending.fill(
                "read",
                RecallReply,
                "update_memory_with_recall",
                memory=memory,
                recalled=recalled,
                chunk=chunk.text,
                question=question,
            )
            states.append(memory)
            memory = reply.memory
            recalled = closest(reply.recall, states)
        return await spending.write(
            "answer", "answer_from_memory", memory=f"{memory}\n\n{recalled}", question=question
        )


def closest(query: str, states: Sequence[str]) -> str:
    """The state that shares most words with the query, words in many states counting less."""
    wanted = set(plain_terms(query))
    if not wanted:
        return EMPTY
    words = [set(plain_terms(state)) for state in states]
    seen = Counter(word for state in words for word in state)
    scores = [sum(1 / seen[word] for word in wanted & state) for state in words]
    best = max(range(len(states)), key=lambda at: scores[at], default=None)
    return states[best] if best is not None and scores[best] > 0 else EMPTY


class PartReply(BaseModel):
    """What a mapper must send."""

    information: str = ""
    answer: str = ""
    confidence: float = 0.0


class MapReduceSystem(ReaderSystem):
    """The same question to every part at once; notes are joined until they fit one prompt."""

    size = 4_096
    room: ClassVar[int] = 8_000

    async def read(self, question: str, chunks: Sequence[Chunk], spending: Spending) -> str:
        async def look(chunk: Chunk) -> PartReply:
            return await spending.fill(
                "read", PartReply, "map_chunk", chunk=chunk.text, question=question
            )

        replies = await fan_out(chunks, look, workers=16)
        notes = [
            f"(confidence {reply.confidence:g}) {reply.information.strip()}"
            + (f" Answer: {reply.answer.strip()}" if reply.answer.strip() else "")
            for reply in replies
            if reply.information.strip()
        ]
        notes = await self._collapsed(question, notes, spending)
        parts = "\n".join(notes) or "(no part says anything)"
        return await spending.write("answer", "reduce_parts", parts=parts, question=question)

    async def _collapsed(self, question: str, notes: list[str], spending: Spending) -> list[str]:
        count = self._bench.tokenizer.count
        while len(notes) > 1 and sum(count(note) for note in notes) > self.room:
            bundles = bundled(notes, self.room, count)
            if len(bundles) == len(notes):
                break

            async def join(bundle: str) -> str:
                return await spending.write(
                    "read",
                    "collapse_parts",
                    max_tokens=MEMORY_TOKENS,
                    parts=bundle,
                    question=question,
                )

            notes = await fan_out(bundles, join, workers=16)
        return notes


def bundled(notes: Sequence[str], room: int, count: Callable[[str], int]) -> list[str]:
    """Neighbouring notes together, as many as fit half the room."""
    bundles: list[list[str]] = []
    size = 0
    for note in notes:
        tokens = count(note)
        if not bundles or size + tokens > room // 2:
            bundles.append([])
            size = 0
        bundles[-1].append(note)
        size += tokens
    return ["\n".join(bundle) for bundle in bundles]
