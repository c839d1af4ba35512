"""Nothing is paid for twice: a validated reply is durable before the next step depends on it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import Any

from pydantic import ValidationError

from hmars.llm.contract import ChatModel, ChatReply, ChatRequest, ReplyCache, ToolCall
from hmars.llm.payload import strict_schema
from hmars.model import Usage
from hmars.settings import RoleSettings

KEY_VERSION = 1
"""Raise it when the meaning of a key or a payload changes. 1: the first."""
KEPT_REASONS = frozenset({"stop", "tool_calls", "function_call"})


def cache_key(request: ChatRequest, role: RoleSettings) -> str:
    """Address of the reply to `request`, as hexadecimal SHA-256.

    In it: everything that changes what a good reply is. The model's name, temperature, token limit
    and `extra_body`; role, messages, prompt id, version and hash; schema of the output; tools and
    log probabilities wanted.

    Left out, and why:
        base_url, key, headers: the same model at another address gives the same replies, and an
            embedded engine gets a new port with every run. Who serves other weights under the same
            name must give them another name.
        mode, streaming: how a reply is asked for; a validated reply is the same either way.
        affinity, documents, prompt_tokens: where it is sent, what it belongs to, what it costs.
        timeouts, retries, limits: whether a reply comes, not which.
    """
    parts: dict[str, Any] = {
        "key_version": KEY_VERSION,
        "model": role.model,
        "temperature": role.temperature,
        "max_tokens": request.max_tokens or role.max_tokens,
        "extra_body": role.extra_body,
        "role": request.role,
        "prompt": asdict(request.prompt),
        "messages": [asdict(message) for message in request.messages],
        "schema": strict_schema(request.output) if request.output else None,
        "top_logprobs": request.top_logprobs,
        "tools": [dict(tool) for tool in request.tools],
        "tool_choice": request.tool_choice,
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class Cached:
    """Answers from the cache where it can; keeps only replies that ended well and validated."""

    def __init__(self, inner: ChatModel, cache: ReplyCache, role: RoleSettings) -> None:
        self._inner = inner
        self._cache = cache
        self._role = role

    async def complete(self, request: ChatRequest) -> ChatReply:
        """As the inner model, or from the cache at no cost.

        Raises:
            StoreError: a new reply cannot be kept.
        """
        key = cache_key(request, self._role)
        payload = await self._cache.get_reply(key)
        if payload is not None:
            reply = _load(payload, request)
            if reply is not None:
                if request.on_text is not None:
                    request.on_text(reply.text)
                return reply
        reply = await self._inner.complete(request)
        if payload is not None:  # what was kept does not fit any more: seen, not passed over
            reply = replace(reply, usage=reply.usage + Usage(paths={"cache_unusable": 1}))
        valid = request.output is None or reply.value is not None
        if valid and reply.finish_reason in KEPT_REASONS:
            await self._cache.put_reply(key, _dump(reply), request.documents)
        return reply


def _dump(reply: ChatReply) -> str:
    return json.dumps(
        {
            "text": reply.text,
            "value": reply.value.model_dump(mode="json") if reply.value is not None else None,
            "finish_reason": reply.finish_reason,
            "reasoning": reply.reasoning,
            "model": reply.model,
            "tool_calls": [asdict(call) for call in reply.tool_calls],
            "top_logprobs": reply.extra.get("top_logprobs"),
        },
        ensure_ascii=True,
    )


def _load(payload: str, request: ChatRequest) -> ChatReply | None:
    """The kept reply, or None if it is damaged or of a shape that is no longer wanted."""
    try:
        kept: dict[str, Any] = json.loads(payload)
        value = request.output.model_validate(kept["value"]) if request.output else None
        logprobs = kept["top_logprobs"]
        return ChatReply(
            text=kept["text"],
            value=value,
            finish_reason=kept["finish_reason"],
            reasoning=kept["reasoning"],
            usage=Usage(paths={"cache_hit": 1}),
            model=kept["model"],
            from_cache=True,
            tool_calls=tuple(ToolCall(**call) for call in kept["tool_calls"]),
            extra={"top_logprobs": [tuple(pair) for pair in logprobs]} if logprobs else {},
        )
    except (ValidationError, ValueError, KeyError, TypeError):
        return None
