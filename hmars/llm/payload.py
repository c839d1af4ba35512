"""A request as the body of an OpenAI-compatible chat completion."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel

from hmars.llm.contract import ChatRequest, Message
from hmars.settings import RoleSettings

NOISE = frozenset({"title", "default", "examples"})


@dataclass
class Dialect:
    """What one model behind one endpoint has shown not to take. Learned from its refusals."""

    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    stream_options: bool = True

    def adapt(self, parameter: str) -> bool:
        """Give up `parameter`; False if it was not sent anyway."""
        if parameter == "max_tokens" and self.limit_name == "max_tokens":
            self.limit_name = "max_completion_tokens"
        elif parameter == "temperature" and self.temperature:
            self.temperature = False
        elif parameter == "stream_options" and self.stream_options:
            self.stream_options = False
        else:
            return False
        return True


def payload_of(
    request: ChatRequest, role: RoleSettings, dialect: Dialect, *, stream: bool
) -> dict[str, Any]:
    """The body, with `extra_body` of the role laid over it."""
    body: dict[str, Any] = {
        "model": role.model,
        "messages": [_message(message) for message in request.messages],
        dialect.limit_name: request.max_tokens or role.max_tokens,
    }
    if dialect.temperature and role.send_temperature:
        body["temperature"] = role.temperature
    if stream:
        body["stream"] = True
        if dialect.stream_options:
            body["stream_options"] = {"include_usage": True}
    if request.top_logprobs is not None:
        body["logprobs"] = True
        body["top_logprobs"] = request.top_logprobs
    if request.tools:
        body["tools"] = [dict(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
    if request.output is not None and request.mode == "json_schema":
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": request.output.__name__,
                "strict": True,
                "schema": strict_schema(request.output),
            },
        }
    elif request.output is not None and request.mode == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body | role.extra_body


def strict_schema(output: type[BaseModel]) -> dict[str, Any]:
    """JSON schema in the form that strict decoders want: every key required, no other keys."""
    schema = copy.deepcopy(output.model_json_schema())
    return cast(dict[str, Any], _strict(schema))


def _strict(node: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node, list):
        return [_strict(item) for item in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    table = cast(dict[str, Any], node)
    made: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("properties", "$defs"):
            # The names in here are the author's own: a field may be called "title".
            made[key] = {name: _strict(entry) for name, entry in value.items()}
        elif key in ("enum", "const", "required"):
            made[key] = value
        elif key not in NOISE:
            made[key] = _strict(value)
    if "properties" in made:
        made["required"] = list(made["properties"])
        made["additionalProperties"] = False
    return made


def _message(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        body["tool_call_id"] = message.tool_call_id
    if message.reasoning:
        body["reasoning_content"] = message.reasoning
    return body
