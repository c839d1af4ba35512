"""What the endpoints of a profile can do, found out by trying: for `hmars doctor`."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from hmars.errors import ConfigError, ModelError
from hmars.llm.context import list_models, served_context
from hmars.llm.contract import ChatModel, ChatReply, ChatRequest, Message, PromptRef, StructuredMode
from hmars.llm.endpoint import Endpoint
from hmars.llm.failures import Place
from hmars.llm.openai_client import OpenAIChat
from hmars.llm.structured import MODES, ModeMemory, Structured
from hmars.model import Role
from hmars.settings import Profile, RoleSettings

PROMPT = PromptRef("probe", 1, "")
PREFIX_LINES = 400
"""Enough for several cache blocks of any server (some hold 1,024 tokens only from there on)."""
WARM_SHARE = 0.5
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks a word up.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
            "additionalProperties": False,
        },
    },
}


class _Colour(BaseModel):
    colour: str
    number: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one role. None: not known, because something before it failed."""

    role: Role
    endpoint: str
    model: str
    url: str
    reachable: bool = False
    model_known: bool | None = None
    """None also where the server lists no models."""
    context_tokens: int | None = None
    """As served, or as the profile says."""
    structured: StructuredMode | None = None
    """The strongest kind of structured reply that really worked; `text`: neither of the JSON
    kinds."""
    logprobs: bool | None = None
    tool_calls: bool | None = None
    reports_cached: bool | None = None
    """The server says how many prompt tokens came from its cache."""
    prefix_cache: bool | None = None
    """A second question after the same long prefix was served from the cache."""
    tokens_per_s: float | None = None
    """Speed of writing one reply, prompt included."""
    problem: str | None = None
    """The first thing that went wrong, in one sentence."""


async def probe(profile: Profile) -> list[Finding]:
    """Try every role of the profile; roles of the same model and endpoint are tried once.

    Never raises for a bad endpoint: the finding says what is wrong. Costs some ten small calls for
    each model.
    """
    done: dict[tuple[str, str, str], Finding] = {}
    findings: list[Finding] = []
    for role, settings in profile.roles.items():
        key = (settings.endpoint, settings.model, repr(settings.extra_body))
        if key not in done:
            done[key] = await _probe_role(profile, role, settings)
        known = done[key]
        context = settings.context_tokens or known.context_tokens
        findings.append(replace(known, role=role, context_tokens=context))
    return findings


async def _probe_role(profile: Profile, role: Role, settings: RoleSettings) -> Finding:
    found = Finding(role, settings.endpoint, settings.model, url="")
    try:
        endpoint = Endpoint(
            settings.endpoint, profile.endpoints[settings.endpoint], warn=lambda _: None
        )
    except ConfigError as error:
        return replace(found, problem=str(error))
    found = replace(found, url=endpoint.shown_url)
    try:
        return await _Probe(endpoint, role, settings, found).run()
    finally:
        await endpoint.close()


class _Probe:
    def __init__(
        self, endpoint: Endpoint, role: Role, settings: RoleSettings, found: Finding
    ) -> None:
        self._endpoint = endpoint
        self._role: Role = role
        self._settings = settings
        self._found = found
        self._model: ChatModel = OpenAIChat(endpoint, role, settings)
        self._place = Place(
            endpoint.name, role, settings.model, endpoint.shown_url, endpoint.redactor
        )

    async def run(self) -> Finding:
        try:
            listed = await list_models(self._endpoint, self._place)
            known = self._settings.model in listed.models if listed.models else None
            context = await served_context(self._endpoint, self._place)
            self._note(reachable=True, model_known=known, context_tokens=context)
            await self._speed()
        except ModelError as error:
            # Having answered at all, with whatever, is being reachable.
            return replace(
                self._found,
                reachable=self._found.reachable or self._endpoint.answered,
                problem=str(error),
            )
        self._note(structured=await self._structured())
        self._note(logprobs=await self._tried(self._logprobs()))
        self._note(tool_calls=await self._tried(self._tools()))
        await self._prefix()
        return self._found

    def _note(self, **what: Any) -> None:  # noqa: ANN401 - fields of the finding
        self._found = replace(self._found, **what)

    async def _speed(self) -> None:
        start = time.perf_counter()
        reply = await self._ask("Count from one to twenty in words.", max_tokens=64)
        seconds = time.perf_counter() - start
        if reply.usage.completion_tokens and seconds > 0:
            self._note(tokens_per_s=round(reply.usage.completion_tokens / seconds, 1))

    async def _structured(self) -> StructuredMode:
        """The first kind, strongest first, whose reply has the shape at the first attempt."""
        for mode in MODES[:-1]:
            asked = Structured(
                self._model,
                ModeMemory(mode, warn=None),
                max_tokens=self._settings.max_tokens,
                context_tokens=lambda: self._found.context_tokens,
            )
            request = self._request("Name a colour and a number as a JSON object.")
            try:
                reply = await asked.complete(replace(request, output=_Colour))
            except ModelError:
                continue
            if not reply.usage.reasks:
                return mode
        return "text"

    async def _tried(self, works: Any) -> bool:  # noqa: ANN401 - a coroutine
        try:
            return bool(await works)
        except ModelError:
            return False

    async def _logprobs(self) -> bool:
        request = replace(self._request("Is water wet? Answer yes or no."), top_logprobs=5)
        reply = await self._model.complete(replace(request, max_tokens=1))
        return len(reply.extra.get("top_logprobs", ())) > 1

    async def _tools(self) -> bool:
        request = self._request("Look up the word 'lamp' with the tool.")
        return bool((await self._model.complete(replace(request, tools=(TOOL,)))).tool_calls)

    async def _prefix(self) -> None:
        """Ask twice behind the same long text, and look at what the server reports."""
        lines = min(PREFIX_LINES, (self._found.context_tokens or 16_384) // 32)
        text = "\n".join(f"Line {number} speaks of number {number}." for number in range(lines))
        try:
            await self._ask(f"{text}\n\nWhat does line 3 speak of?", max_tokens=8)
            second = await self._ask(f"{text}\n\nHow many lines are there?", max_tokens=8)
        except ModelError as error:
            self._note(problem=str(error))
            return
        usage = second.usage
        warm = usage.cached_tokens >= WARM_SHARE * usage.prompt_tokens
        self._note(reports_cached="reports_cached" in second.extra, prefix_cache=warm)

    async def _ask(self, text: str, *, max_tokens: int) -> ChatReply:
        return await self._model.complete(replace(self._request(text), max_tokens=max_tokens))

    def _request(self, text: str) -> ChatRequest:
        return ChatRequest(self._role, (Message("user", text),), PROMPT, affinity="hmars-probe")
