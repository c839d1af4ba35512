"""What a model is to the rest of hmars: one method, one request, one reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from hmars.model import CallRecord, Role, Usage

Output = TypeVar("Output", bound=BaseModel)
StructuredMode = Literal["json_schema", "json_object", "text"]
Notify = Callable[[str], None]
"""Takes one line for a human: a warning, or what is being waited for."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model wants made; `arguments` is the text it wrote, JSON or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant message that is passed back."""
    tool_call_id: str = ""
    """Of a `tool` message: the call it answers."""
    reasoning: str = ""
    """Earlier thinking of an assistant message, passed back as `reasoning_content`."""


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

    Everything but `affinity`, `documents`, `prompt_tokens`, `prompt_tokens_exact` and `on_text` is
    part of the cache key.
    """

    role: Role
    messages: tuple[Message, ...]
    prompt: PromptRef
    output: type[BaseModel] | None = None
    """The shape the reply must have; `None` takes the text as it is."""
    max_tokens: int | None = None
    """Overrides the role's `max_tokens`."""
    affinity: str = ""
    """Equal for requests that share a long prefix (a region's key), so that a router keeps them
    on one replica."""
    documents: tuple[str, ...] = ()
    """Ids of the documents whose text is inside: forgetting one forgets the cached reply."""
    prompt_tokens: int | None = None
    """Our own count of the prompt; a server that reports far fewer has cut it."""
    prompt_tokens_exact: bool = False
    """The count was made with the model's own tokenizer, so a smaller gap already shows a cut."""
    on_text: Callable[[str], None] | None = field(default=None, compare=False)
    """Called with each piece of the first attempt's reply as it arrives; asks for a stream."""
    top_logprobs: int | None = None
    """How many alternatives of the first token to return, in `ChatReply.extra["top_logprobs"]`."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Function tools in OpenAI's form."""
    tool_choice: str | Mapping[str, Any] | None = None
    mode: StructuredMode | None = None
    """How the endpoint is asked for `output`; decided by the stack, not by who asks."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back. `usage` is the sum over retries and re-asks."""

    text: str
    value: BaseModel | None = None
    """The validated reply, of the type `request.output`."""
    finish_reason: str = "stop"
    reasoning: str = ""
    usage: Usage = field(default_factory=lambda: Usage(calls=1))
    model: str = ""
    from_cache: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    """`top_logprobs`: list of (token, log probability) for the first token, best first."""


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


class CallLog(Protocol):
    """The history of calls, kept by the store. Records hold no text of prompts or replies."""

    async def log_call(self, record: CallRecord) -> None: ...


def value_of(reply: ChatReply, output: type[Output]) -> Output:
    """The validated reply as the type that was asked for."""
    if not isinstance(reply.value, output):
        raise TypeError(f"the model stack returned {type(reply.value)} where {output} was asked")
    return reply.value
