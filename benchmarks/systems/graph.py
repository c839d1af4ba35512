"""GraphRAG's local search, by the maintained package LightRAG behind an extra; not a rewrite."""

from __future__ import annotations

import hashlib
import importlib
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.bench import Bench, Outcome, Passed
from benchmarks.embeddings import Vectors
from benchmarks.suites.base import BenchDocument
from hmars.errors import CallFailed, ConfigError, MissingExtraError
from hmars.llm.contract import ChatRequest, Message, PromptRef
from hmars.model import Role, Usage
from hmars.tokens import Tokenizer

Result = TypeVar("Result")
PROMPT = PromptRef("lightrag", 1, hashlib.sha256(b"lightrag").hexdigest())
"""The prompts are the package's own; their text is part of the cache key all the same."""

UNUSABLE = ("invalid_reply", "length")


class PieceTokenizer:
    """Our tokens as the numbered pieces that LightRAG wants: nothing is downloaded for it.

    It is called from several threads, so the table of pieces has a lock.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._numbers: dict[str, int] = {}
        self._pieces: list[str] = []
        self._lock = threading.Lock()

    def encode(self, content: str) -> list[int]:
        starts = sorted({int(start) for start in self._tokenizer.starts(content)})
        ends = [*starts[1:], len(content)] if starts else []
        with self._lock:
            return [self._number(content[a:b]) for a, b in zip(starts, ends, strict=True)]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self._pieces[token] for token in tokens)

    def __deepcopy__(self, memo: dict[int, object]) -> PieceTokenizer:
        """LightRAG copies its settings; the table of pieces stays one."""
        del memo
        return self

    def _number(self, piece: str) -> int:
        if piece not in self._numbers:
            self._numbers[piece] = len(self._pieces)
            self._pieces.append(piece)
        return self._numbers[piece]


class GraphRagSystem:
    """The entity graph is extracted by the role `card`; `answer` concludes from local search.

    A chunk from which the model extracts nothing usable would cost the package the whole document:
    it is left out of the graph instead, counted, and each answer says how many there are.
    """

    def __init__(self, bench: Bench, size: int) -> None:
        self._bench = bench
        self._size = size
        self._package = _lightrag()
        self._utilities = importlib.import_module("lightrag.utils")
        self._embedder = bench.needs_embedder()
        self._graph: Any = None
        self._document: BenchDocument | None = None
        self._spending = bench.spending()
        self._role: Role = "card"
        self._failures: Path | None = None
        """A line for each extraction that failed, beside the graph: a resumed run knows of them."""

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]:
        await self.close()
        self._document = document
        self._spending = self._bench.spending()
        self._role = "card"
        name = hashlib.sha256(document.id.encode()).hexdigest()[:16]
        folder = self._bench.folder / "lightrag" / name
        folder.mkdir(parents=True, exist_ok=True)
        self._failures = folder / "failures.txt"
        width = (await self._embed(["width"])).shape[1]
        self._graph = self._package.LightRAG(
            working_dir=str(folder),
            chunk_token_size=self._size,
            tokenizer=self._utilities.Tokenizer(
                model_name="benchmark", tokenizer=PieceTokenizer(self._bench.tokenizer)
            ),
            llm_model_func=plain(self._complete),
            default_llm_timeout=self._patience(),
            embedding_func=self._utilities.EmbeddingFunc(
                embedding_dim=width, max_token_size=8_192, func=plain(self._embed)
            ),
        )
        await self._graph.initialize_storages()
        await self._graph.ainsert(document.text, ids=[name])
        await self._check(name)
        return self._spending.usage

    def _patience(self) -> int:
        """Seconds the package waits for a call: what the endpoint may take with its retries."""
        role = self._bench.profile.roles.get("card")
        endpoint = self._bench.profile.endpoints.get(role.endpoint) if role else None
        return int(endpoint.timeout_s * (endpoint.retries + 1)) if endpoint else 240

    async def _check(self, name: str) -> None:
        """The package only logs a document that it could not take in.

        Raises:
            CallFailed: there is no graph of this document.
        """
        found: Any = (await self._graph.aget_docs_by_ids(name)).get(name) or {}
        get: Callable[[str], Any] = getattr(found, "get", lambda key: getattr(found, key))
        status = get("status") or "missing"
        if getattr(status, "value", status) != "processed":
            why = get("error_msg") or "it gives no reason"
            raise CallFailed(
                f"LightRAG made no graph of {name}: {why}", problem="invalid_reply", role="card"
            )

    async def ask(self, question: str) -> Outcome:
        if self._graph is None or self._document is None:
            raise ConfigError("Build the system on a document before asking it.")
        self._spending = self._bench.spending()
        self._role = "answer"
        parameters = self._package.QueryParam(mode="local", enable_rerank=False)
        data = await self._graph.aquery_data(question, param=parameters)
        text = await self._graph.aquery(question, param=parameters)
        found = data.get("data", {}).get("chunks", [])
        evidence, lost = self._located([str(chunk["content"]) for chunk in found])
        notes = [f"{lost} retrieved chunks are not in the text as they stand"] if lost else []
        if self._failures is not None and self._failures.exists():
            count = len(self._failures.read_text(encoding="utf-8").splitlines())
            notes.append(f"{count} extraction calls gave nothing usable: not in the graph")
        usage, seconds = self._spending.usage, self._spending.seconds
        return Outcome(str(text or ""), evidence, usage, seconds, notes=tuple(notes))

    async def close(self) -> None:
        if self._graph is not None:
            await self._graph.finalize_storages()
            self._graph = None

    def _located(self, contents: Sequence[str]) -> tuple[tuple[Passed, ...], int]:
        """Chunks as spans of the document, and how many were changed on their way."""
        text = self._document.text if self._document else ""
        passed: list[Passed] = []
        for content in contents:
            at = text.find(content.strip())
            if at >= 0:
                tokens = self._bench.tokenizer.count(content)
                passed.append(Passed(at, at + len(content.strip()), tokens))
        return tuple(passed), len(contents) - len(passed)

    async def _complete(
        self,
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Sequence[Mapping[str, str]] = (),
        **_: object,
    ) -> str:
        """One of the package's calls, counted like every other system's."""
        messages = [Message("system", system_prompt)] if system_prompt else []
        for message in history_messages:
            role = "assistant" if message["role"] == "assistant" else "user"
            messages.append(Message(role, message["content"]))
        messages.append(Message("user", prompt))
        request = ChatRequest(role=self._role, messages=tuple(messages), prompt=PROMPT)
        try:
            return (await self._spending.model(self._role).complete(request)).text
        except CallFailed as error:
            if self._role != "card" or error.problem not in UNUSABLE or not self._failures:
                raise
            with self._failures.open("a", encoding="utf-8") as file:
                file.write(" ".join(str(error).split()) + "\n")
            return ""

    async def _embed(self, texts: Sequence[str], **_: object) -> Vectors:
        """One vector a text: the first window's where the embedder gives several."""
        vectors, owners = await self._embedder.embed(list(texts))
        first = [owners.index(number) for number in range(len(texts))]
        return vectors[first]


def plain(method: Callable[..., Awaitable[Result]]) -> Callable[..., Awaitable[Result]]:
    """A function for a method: LightRAG copies its settings, and with a method its object."""

    async def call(*arguments: Any, **named: Any) -> Result:  # noqa: ANN401 - passed through
        return await method(*arguments, **named)

    return call


def _lightrag() -> Any:  # noqa: ANN401 - a package that may not be there
    # One of its packages would open the root log for everything from DEBUG up.
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    logging.basicConfig(handlers=[handler])
    try:
        package = importlib.import_module("lightrag")
    except ModuleNotFoundError:
        raise MissingExtraError("GraphRAG's local search", "graphrag") from None
    # Its log tells of each chunk; what of it a reader of the numbers must know is in the notes.
    # Disabled, as it sets the level whenever it is imported further.
    logging.getLogger("lightrag").disabled = True
    return package
