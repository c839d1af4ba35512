"""What every compared system is: build on a document, answer questions, say what it passed on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import BaseModel

from benchmarks.chunks import Chunk
from benchmarks.embeddings import Embedder
from benchmarks.suites.base import BenchDocument
from hmars.errors import ConfigError
from hmars.llm.contract import CallLog, ChatModel, ChatRequest, Message, value_of
from hmars.llm.stack import ModelStack
from hmars.model import CallRecord, Role, Usage
from hmars.prompts import PromptLibrary
from hmars.prompts.load import Prompt, parse
from hmars.prompts.prompted import PromptedModel
from hmars.query.agents import EvidenceBlock
from hmars.query.model_agents import ModelAnswerer
from hmars.settings import Profile
from hmars.tokens import Tokenizer

Output = TypeVar("Output", bound=BaseModel)
PROMPTS = Path(__file__).parent / "prompts"
MARGIN = 1_024
"""Tokens of a context kept for instructions, question and headers."""
UNLIMITED = 1_000_000


@dataclass(frozen=True, slots=True)
class Passed:
    """A stretch of the document that was put before the answer model."""

    start: int
    end: int
    tokens: int
    score: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What came of one question. `evidence` is None where a system passes on no source text."""

    text: str
    evidence: tuple[Passed, ...] | None
    usage: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    seconds: float = 0.0
    abstained: bool = False
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know: truncation, regions that failed, no model."""

    @property
    def evidence_tokens(self) -> int:
        return sum(part.tokens for part in self.evidence or ())


class System(Protocol):
    """One system on one document at a time."""

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]:
        """Prepare for questions on this document, instead of the one before; returns the cost."""
        ...

    async def ask(self, question: str) -> Outcome: ...

    async def close(self) -> None: ...


class Retriever(Protocol):
    """A system whose evidence can be had without an answer, at any token budget."""

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]: ...

    async def retrieve(self, question: str, budget: int) -> Outcome: ...

    async def close(self) -> None: ...


class QuestionCalls(CallLog, Protocol):
    """Where finished calls go, under the question in hand."""

    def add(self, record: CallRecord) -> None: ...


@dataclass
class Spending:
    """Adds up calls of one question; everything a system asks of models goes through one."""

    bench: Bench
    began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self._recorder = None
        if self.bench.stack is not None:
            self._recorder = self.bench.stack.new_recorder(self.bench.log)

    def model(self, role: Role) -> ChatModel:
        """Raises: ConfigError where the profile has no models, or none for this role."""
        if self.bench.stack is None:
            raise ConfigError(
                f"The profile {self.bench.profile.name} has no models, and this system needs one "
                f"for the role '{role}': take another profile, or --retrieval-only."
            )
        return self.bench.stack.model(role, self._recorder)

    @property
    def usage(self) -> dict[str, Usage]:
        return self._recorder.usage if self._recorder is not None else {}

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    async def write(
        self, role: Role, prompt: str, *, max_tokens: int | None = None, **values: str
    ) -> str:
        """A text reply to one of the benchmark's prompts."""
        loaded = self.bench.prompt(prompt)
        messages = loaded.render(**values)
        request = self._request(role, messages, loaded, max_tokens)
        return (await self.model(role).complete(request)).text.strip()

    async def fill(self, role: Role, output: type[Output], prompt: str, **values: str) -> Output:
        """A validated reply to one of the benchmark's prompts."""
        loaded = self.bench.prompt(prompt)
        request = self._request(role, loaded.render(**values), loaded, None, output=output)
        return value_of(await self.model(role).complete(request), output)

    async def yes(self, role: Role, prompt: str, **values: str) -> float:
        """log P(yes) - log P(no) of the first token; of a server without log probabilities, +-1."""
        loaded = self.bench.prompt(prompt)
        request = self._request(role, loaded.render(**values), loaded, 4, top_logprobs=20)
        reply = await self.model(role).complete(request)
        table: Sequence[tuple[str, float]] = reply.extra.get("top_logprobs") or ()
        if not table:
            return 1.0 if reply.text.strip().lower().startswith("yes") else -1.0
        floor = min(value for _, value in table)
        best = {"yes": floor, "no": floor}
        for token, value in table:
            word = token.strip().lower()
            if word in best:
                best[word] = max(best[word], value)
        return best["yes"] - best["no"]

    def _request(
        self,
        role: Role,
        messages: tuple[Message, ...],
        prompt: Prompt,
        max_tokens: int | None,
        top_logprobs: int | None = None,
        output: type[BaseModel] | None = None,
    ) -> ChatRequest:
        if max_tokens is not None:
            max_tokens = min(max_tokens, self.bench.profile.roles[role].max_tokens)
        return ChatRequest(
            role=role,
            messages=messages,
            prompt=prompt.ref,
            max_tokens=max_tokens,
            prompt_tokens=sum(self.bench.tokenizer.count(part.content) for part in messages),
            top_logprobs=top_logprobs,
            output=output,
        )

    async def answer(
        self, question: str, document: BenchDocument, chunks: Sequence[Chunk]
    ) -> Outcome:
        """The answer from chunks by hmars' own answer prompt, so that only the evidence differs."""
        ordered = sorted(chunks, key=lambda chunk: chunk.start)
        passed = passed_of(ordered)
        if self.bench.stack is None:
            note = "no answer model in this profile: evidence only"
            return Outcome("", passed, {}, self.seconds, notes=(note,))
        library = PromptLibrary(self.bench.profile.prompts.dir)
        prompted = PromptedModel(
            "answer", self.model("answer"), library.get("answer_question"), self.bench.tokenizer
        )
        draft = await ModelAnswerer(prompted).answer(question, blocks(document, ordered))
        return Outcome(draft.answer, passed, self.usage, self.seconds, abstained=draft.abstained)


@dataclass
class Bench:
    """What systems share: models, tokenizer, embeddings, and a folder for what they build."""

    profile: Profile
    tokenizer: Tokenizer
    folder: Path
    stack: ModelStack | None = None
    embedder: Embedder | None = None
    log: QuestionCalls | None = None
    """Where each finished call of the question in hand goes at once."""
    makers: dict[Path, asyncio.Lock] = field(default_factory=dict[Path, asyncio.Lock])
    """One lock a file, for all systems of a run."""

    def spending(self) -> Spending:
        return Spending(self)

    def alone(self, path: Path) -> asyncio.Lock:
        """Held while a file that systems share is made: the others then find it made."""
        return self.makers.setdefault(path, asyncio.Lock())

    def prompt(self, name: str) -> Prompt:
        return parse((PROMPTS / f"{name}.md").read_text(encoding="utf-8"), f"{name}.md")

    async def evidence_room(self) -> int:
        """Tokens of evidence that the answer model's context has room for."""
        if self.stack is None:
            return UNLIMITED
        context = await self.stack.context_tokens("answer")
        reply = self.profile.roles["answer"].max_tokens
        return max(256, (context or UNLIMITED) - reply - MARGIN)

    def needs_embedder(self) -> Embedder:
        """Raises: ConfigError where none was given."""
        if self.embedder is None:
            raise ConfigError(
                "Dense retrieval needs embeddings: --embeddings minilm, or --embeddings URL,MODEL."
            )
        return self.embedder


def passed_of(chunks: Sequence[Chunk]) -> tuple[Passed, ...]:
    return tuple(Passed(chunk.start, chunk.end, chunk.tokens) for chunk in chunks)


def blocks(document: BenchDocument, chunks: Sequence[Chunk]) -> list[EvidenceBlock]:
    """Chunks under numbered headers, as hmars shows its evidence."""
    return [
        EvidenceBlock(
            number=number,
            document=document.id,
            title=document.title,
            label=f"part {chunk.number + 1}",
            context="",
            pages=(),
            start=chunk.start,
            end=chunk.end,
            text=chunk.text,
            tokens=chunk.tokens,
            confidence=1.0,
        )
        for number, chunk in enumerate(chunks, start=1)
    ]
