"""Is the second question on a text served from the prompt cache? (promise 6, measured)"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from hmars.llm.contract import ChatModel, ChatReply, ChatRequest, Notify

QUESTION = "\n\nQuestion: "
"""Prompts end with the question: what stands before it should be in the cache next time."""
LEAST_TOKENS = 256
"""Shorter prompts are below the blocks that servers cache by."""
ENOUGH_CALLS = 4
WARM_SHARE = 0.5


@dataclass
class PrefixWatch:
    """Follows the prompts of one open memory that share a prefix; warns once for each role."""

    warn: Notify
    _seen: set[bytes] = field(default_factory=set[bytes])
    _again: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    _warned: set[str] = field(default_factory=set[str])

    def wrap(self, model: ChatModel) -> ChatModel:
        return _Watched(model, self)

    def saw(self, request: ChatRequest, reply: ChatReply) -> None:
        usage = reply.usage
        fixed, mark, _ = request.messages[-1].content.rpartition(QUESTION)
        if not request.affinity or not mark or reply.from_cache:
            return
        if "reports_cached" not in reply.extra or usage.prompt_tokens < LEAST_TOKENS:
            return
        key = hashlib.sha256(f"{request.role}\0{fixed}".encode("utf-8", "replace")).digest()
        if key not in self._seen:
            self._seen.add(key)
            return
        shares = self._again.setdefault(request.role, [])
        shares.append(usage.cached_tokens / usage.prompt_tokens)
        if len(shares) >= ENOUGH_CALLS and sum(shares) / len(shares) < WARM_SHARE:
            self._tell(request.role, sum(shares) / len(shares))

    def _tell(self, role: str, share: float) -> None:
        if role in self._warned:
            return
        self._warned.add(role)
        self.warn(
            f"A further question on the same text was hardly served from the prompt cache of the "
            f"endpoint of role '{role}' ({share:.0%} of the prompt): its cache is smaller than the "
            "text, or prefix caching is off (embedded: endpoints.NAME.cache_mb; llama.cpp: "
            "--cache-ram; vLLM: --enable-prefix-caching and more memory for the KV cache)."
        )


class _Watched:
    def __init__(self, inner: ChatModel, watch: PrefixWatch) -> None:
        self._inner = inner
        self._watch = watch

    async def complete(self, request: ChatRequest) -> ChatReply:
        """As the inner model."""
        reply = await self._inner.complete(request)
        self._watch.saw(request, reply)
        return reply
