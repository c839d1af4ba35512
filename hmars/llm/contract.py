"""What a model is to the rest of hmars: one method, one request, one reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from hmars.model import Role, Usage

Output = TypeVar("Output", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class PromptRef:
    """Which prompt text made a request: kept with every card, cache key and run record."""

    id: str
    version: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.id}@{self.version}"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model.

    Everything but `affinity`, `documents`, `prompt_tokens` and `on_text` is part of the cache key.
    """

    role: Role
    messages: tuple[Message, ...]
    prompt: PromptRef
    output: type[BaseModel] | None = None
    """The shape the reply must have; `None` takes the text as it is."""
    max_tokens: int | None = None
    """Overrides the role's `max_tokens`."""
    affinity: str = ""
    """Equal for requests that share a long prefix (a region's key): a router keeps them together."""
    documents: tuple[str, ...] = ()
    """Ids of the documents whose text is inside: forgetting one forgets the cached reply."""
    prompt_tokens: int | None = None
    """Our own count of the prompt; a server that reports far fewer has cut it."""
    on_text: Callable[[str], None] | None = field(default=None, compare=False)
    """Called with each piece of the reply as it arrives; asks for a streamed reply."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back. `usage` is the sum over retries and re-asks."""

    text: str
    value: BaseModel | None = None
    """The validated reply, of the type `request.output`."""
    finish_reason: str = "stop"
    reasoning: str = ""
    usage: Usage = Usage(calls=1)
    model: str = ""
    from_cache: bool = False
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


class ChatModel(Protocol):
    """The whole contract of a model; every wrapper (record, cache, validate, ...) is one itself."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask once.

        Raises:
            CallFailed: this request has no usable reply.
            EndpointError: no request to this endpoint can succeed.
        """
        ...


class ReplyCache(Protocol):
    """Durable replies by request key, kept by the store. Only validated replies are put here."""

    async def get_reply(self, key: str) -> str | None: ...

    async def put_reply(self, key: str, payload: str, documents: tuple[str, ...]) -> None: ...


def value_of(reply: ChatReply, output: type[Output]) -> Output:
    """The validated reply as the type that was asked for."""
    if not isinstance(reply.value, output):
        raise TypeError(f"the model stack returned {type(reply.value)} where {output} was asked")
    return reply.value
