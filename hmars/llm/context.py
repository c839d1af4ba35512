"""What a server tells of itself: which models it has, and how much context they are served with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from hmars.errors import ModelError
from hmars.llm.endpoint import Endpoint
from hmars.llm.failures import Place, from_connection, from_status, timed_out
from hmars.llm.transport import ConnectionFailed, HttpReply

ASK_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class ServerModels:
    """The models a server lists, by id, with its own words about each."""

    models: Mapping[str, Mapping[str, Any]]

    def entry(self, model: str) -> Mapping[str, Any] | None:
        """What is said about `model`; a server with a single model answers to every name."""
        if model in self.models:
            return self.models[model]
        return next(iter(self.models.values())) if len(self.models) == 1 else None


async def list_models(endpoint: Endpoint, place: Place) -> ServerModels:
    """GET /models. Empty where the server does not have it.

    Raises:
        EndpointError, CallFailed: the server is not there, refuses the key, or does not answer.
    """
    reply = await _get(endpoint, endpoint.url("/models"), place)
    if reply.status in (401, 403) or reply.status >= 500:
        raise from_status(reply, place, None, None)
    data: Any = _table(_json(reply)).get("data") if reply.status == 200 else None
    found: dict[str, Mapping[str, Any]] = {}
    for entry in cast(list[Any], data) if isinstance(data, list) else []:
        name = _table(entry).get("id")
        if isinstance(name, str):
            found[name] = _table(entry)
    return ServerModels(found)


async def served_context(endpoint: Endpoint, place: Place) -> int | None:
    """Context length in tokens of the model as served; None where the server does not tell.

    vLLM says `max_model_len`; llama.cpp says `n_ctx` of a slot in /props, which is less than what
    the model was trained with; others say `context_length`.

    Raises:
        EndpointError, CallFailed: as `list_models`.
    """
    entry = (await list_models(endpoint, place)).entry(place.model) or {}
    length = _length(entry.get("max_model_len"))
    if length is None and endpoint.local:
        try:
            props = await _get(endpoint, endpoint.root_url("/props"), place)
        except ModelError:
            props = HttpReply(0, {}, "")
        generation = _table(_table(_json(props)).get("default_generation_settings"))
        length = _length(generation.get("n_ctx"))
    for value in (
        entry.get("context_length"),
        entry.get("context_window"),
        _table(entry.get("meta")).get("n_ctx_train"),
    ):
        length = length or _length(value)
    return length


async def _get(endpoint: Endpoint, url: str, place: Place) -> HttpReply:
    limit = min(ASK_TIMEOUT_S, endpoint.settings.timeout_s)
    try:
        async with asyncio.timeout(limit):
            return await endpoint.get(url)
    except TimeoutError:
        raise timed_out(place, limit).lasting from None
    except ConnectionFailed as error:
        raise from_connection(error, place, answered_before=False) from None


def _json(reply: HttpReply) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(reply.text)
    except (ValueError, RecursionError):
        return None


def _table(value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _length(value: Any) -> int | None:  # noqa: ANN401 - any JSON
    return value if isinstance(value, int) and value > 0 else None
