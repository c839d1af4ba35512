"""The size of a model as its GGUF header tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hmars.tokens.gguf import read_gguf_values

BYTES_PER_NUMBER = 2
"""llama.cpp keeps keys and values as 16-bit floats."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """`context_tokens` is what the model was trained with; 0 where the header does not say."""

    architecture: str
    context_tokens: int
    kv_bytes_per_token: int


def model_shape(path: Path) -> ModelShape:
    """Read it from the header.

    Raises:
        ConfigError: not a GGUF file, or cut short.
    """
    values = read_gguf_values(path)
    architecture = str(values.get("general.architecture", ""))

    def number(key: str, default: int = 0) -> int:
        value: Any = values.get(f"{architecture}.{key}")
        if isinstance(value, list | tuple) and value:  # one number for each layer
            value = max(cast(Sequence[int], value))
        return int(value) if isinstance(value, int | float) else default

    heads = number("attention.head_count", 1)
    kv_heads = number("attention.head_count_kv", heads)
    width = number("embedding_length") // max(1, heads)
    keys = number("attention.key_length", width)
    kept = number("attention.value_length", width)
    return ModelShape(
        architecture=architecture,
        context_tokens=number("context_length"),
        kv_bytes_per_token=number("block_count") * kv_heads * (keys + kept) * BYTES_PER_NUMBER,
    )
