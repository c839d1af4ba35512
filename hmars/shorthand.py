"""What a profile may say in short, and where it is meant: over raw tables, before validation."""

from __future__ import annotations

import re
from typing import Any, cast

from pydantic import BaseModel


def with_model(data: dict[str, Any]) -> dict[str, Any]:
    """Put the top-level model file where the embedded endpoints, their roles and the tokenizer
    want it; sections that are validated already are left as they are."""
    file = data.get("model")
    endpoints = dict(cast(dict[str, Any], data.get("endpoints") or {}))
    roles = dict(cast(dict[str, Any], data.get("roles") or {}))
    embedded = [name for name, it in endpoints.items() if entry(it, "engine") == "embedded"]
    if file and not embedded:
        raise ValueError("model names a file, but no endpoint of this profile is embedded")
    for name in embedded:
        if file and isinstance(endpoints[name], dict):
            endpoints[name] = {**endpoints[name], "model_file": file}
    for role, it in roles.items():
        endpoint = endpoints.get(str(entry(it, "endpoint")))
        path = entry(endpoint, "model_file")
        if path and isinstance(it, dict) and not entry(it, "model"):
            stem = re.split(r"[/\\:]", str(path))[-1].removesuffix(".gguf")
            roles[role] = {**cast(dict[str, Any], it), "model": stem}
    made = {**data, "endpoints": endpoints, "roles": roles}
    tokenizer = data.get("tokenizer", {})
    if file and isinstance(tokenizer, dict) and not entry(tokenizer, "name"):
        made["tokenizer"] = {**cast(dict[str, Any], tokenizer), "name": file}
    return made


def entry(table: Any, key: str) -> Any:  # noqa: ANN401 - not validated yet
    """A value of a table or of a section; None where there is none."""
    if isinstance(table, BaseModel):
        return getattr(table, key, None)
    return cast(dict[str, Any], table).get(key) if isinstance(table, dict) else None
