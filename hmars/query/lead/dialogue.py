"""A conversation with one model over several turns: of the lead, and of a reader that searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from hmars.llm.contract import ChatModel, ChatReply, ChatRequest, Message, PromptRef, ToolCall
from hmars.model import Role
from hmars.query.lead.agents import Entry, EntryKind
from hmars.tokens import Tokenizer

PER_MESSAGE = 8
"""Tokens a chat template puts around a message, more or less."""
NO_WORDS = "(no usable reply)"
"""Stands for a turn that gave nothing: templates do not take an empty one."""


@dataclass
class Dialogue:
    """Messages so far; every turn is asked with all of them."""

    role: Role
    model: ChatModel
    prompt: PromptRef
    opening: Sequence[Message]
    tokenizer: Tokenizer
    affinity: str = ""
    documents: tuple[str, ...] = ()
    exact: bool = False
    """The tokenizer is the model's own."""
    entries: list[Entry] = field(init=False)
    tokens: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.entries = []
        for message in self.opening:
            self._add(Entry(message, "prompt"))

    async def send(
        self,
        *,
        output: type[BaseModel] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> ChatReply:
        """Ask for the next turn; it is not added by itself.

        Raises:
            CallFailed, EndpointError: as `ChatModel.complete`.
        """
        messages = tuple(entry.message for entry in self.entries)
        request = ChatRequest(
            role=self.role,
            messages=messages,
            prompt=self.prompt,
            output=output,
            max_tokens=max_tokens,
            affinity=self.affinity,
            documents=self.documents,
            # Thinking and calls of earlier turns are not counted: a template may leave them out,
            # and that is not a prompt that was cut.
            prompt_tokens=sum(self.tokenizer.count(message.content) for message in messages),
            prompt_tokens_exact=self.exact,
            tools=tuple(tools),
        )
        return await self.model.complete(request)

    def say(
        self,
        text: str,
        calls: Sequence[ToolCall] = (),
        *,
        reasoning: str = "",
        invalid: bool = False,
    ) -> None:
        """Add a turn of the model. Its thinking stays (the published lead was trained so)."""
        content = text if text or calls else NO_WORDS
        message = Message("assistant", content, tuple(calls), reasoning=reasoning)
        self._add(Entry(message, "lead", invalid))

    def result(self, call: ToolCall, text: str) -> None:
        """Add what came of a call."""
        self._add(Entry(Message("tool", text, tool_call_id=call.id), "observation"))

    def tell(self, text: str, kind: EntryKind) -> None:
        """Add words from our side; joined to what we said last, for templates that want turns."""
        last = self.entries[-1] if self.entries else None
        if last is not None and last.message.role == "user":
            joined = replace(last.message, content=f"{last.message.content}\n\n{text}")
            self.entries[-1] = replace(last, message=joined)
            self.tokens += self.tokenizer.count(text)
        else:
            self._add(Entry(Message("user", text), kind))

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        message = entry.message
        parts = [message.content, message.reasoning]
        parts += [call.name + call.arguments for call in message.tool_calls]
        self.tokens += PER_MESSAGE + sum(self.tokenizer.count(part) for part in parts if part)
