"""GraphRAG's local search, by the maintained package LightRAG behind an extra; not a rewrite."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.bench import Bench, Outcome, Passed
from benchmarks.embeddings import Vectors
from benchmarks.suites.base import BenchDocument
from hmars.errors import ConfigError, MissingExtraError
from hmars.llm.contract import ChatRequest, Message, PromptRef
from hmars.model import Role, Usage

PROMPT = PromptRef("lightrag", 1, hashlib.sha256(b"lightrag").hexdigest())
"""The prompts are the package's own; their text is part of the cache key all the same."""


class GraphRagSystem:
    """The entity graph is extracted by the role `card`; `answer` concludes from local search."""

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

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]:
        await self.close()
        self._document = document
        self._spending = self._bench.spending()
        self._role = "card"
        name = hashlib.sha256(document.id.encode()).hexdigest()[:16]
        folder = self._bench.folder / "lightrag" / name
        folder.mkdir(parents=True, exist_ok=True)
        width = (await self._embed(["width"])).shape[1]
        self._graph = self._package.LightRAG(
            working_dir=str(folder),
            chunk_token_size=self._size,
            llm_model_func=self._complete,
            embedding_func=self._utilities.EmbeddingFunc(
                embedding_dim=width, max_token_size=8_192, func=self._embed
            ),
        )
        await self._graph.initialize_storages()
        await self._graph.ainsert(document.text, ids=[name])
        return self._spending.usage

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
        notes = (f"{lost} retrieved chunks are not in the text as they stand",) if lost else ()
        return Outcome(
            str(text or ""), evidence, self._spending.usage, self._spending.seconds, notes=notes
        )

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
        return (await self._spending.model(self._role).complete(request)).text

    async def _embed(self, texts: Sequence[str], **_: object) -> Vectors:
        """One vector a text: the first window's where the embedder gives several."""
        vectors, owners = await self._embedder.embed(list(texts))
        first = [owners.index(number) for number in range(len(texts))]
        return vectors[first]


def _lightrag() -> Any:  # noqa: ANN401 - a package that may not be there
    try:
        return importlib.import_module("lightrag")
    except ModuleNotFoundError:
        raise MissingExtraError("GraphRAG's local search", "graphrag") from None
