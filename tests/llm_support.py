"""What tests of model access share: an output type, requests, profiles for a scripted server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from hmars.llm.contract import ChatRequest, Message, PromptRef
from hmars.llm.endpoint import Endpoint
from hmars.llm.openai_client import OpenAIChat
from hmars.model import Role
from hmars.settings import EndpointSettings, Profile, RoleSettings
from tests.scripted_server import ScriptedServer

PROMPT = PromptRef("sketch_lamp", 1, "0" * 64)


class Lamp(BaseModel):
    """The output type of these tests."""

    model_config = ConfigDict(extra="forbid")

    name: str
    watts: list[int]


LAMP = '{"name": "Brindle", "watts": [4, 9]}'


def ask(
    text: str = "Describe the lamp.",
    output: type[BaseModel] | None = Lamp,
    role: Role = "card",
    **more: Any,
) -> ChatRequest:
    return ChatRequest(role, (Message("user", text),), PROMPT, output=output, **more)


def profile_for(
    server: ScriptedServer, role: dict[str, Any] | None = None, **endpoint: Any
) -> Profile:
    """One endpoint `desk` and the role `card` on it."""
    table = {"base_url": server.base_url, "in_flight": 4, **endpoint}
    settings: dict[str, Any] = {"endpoint": "desk", "model": "scripted", **(role or {})}
    return Profile.model_validate(
        {"name": "test", "endpoints": {"desk": table}, "roles": {"card": settings}}
    )


def chat_for(
    server: ScriptedServer, warn: Callable[[str], None] = lambda _: None, **endpoint: Any
) -> tuple[Endpoint, OpenAIChat]:
    """The innermost model alone. The endpoint must be closed."""
    table = {"base_url": server.base_url, "timeout_s": 10, **endpoint}
    settings = EndpointSettings.model_validate(table)
    desk = Endpoint("desk", settings, warn=warn)
    role = RoleSettings(endpoint="desk", model="scripted", max_tokens=100)
    return desk, OpenAIChat(desk, "card", role)
