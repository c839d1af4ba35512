"""GGUF headers for tests: values only, no tensors."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path


def write_gguf(path: Path, values: Mapping[str, str | int]) -> Path:
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(values))
    for key, value in values.items():
        data += _string(key)
        if isinstance(value, str):
            data += struct.pack("<I", 8) + _string(value)
        else:
            data += struct.pack("<II", 4, value)
    path.write_bytes(data)
    return path


def _string(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data
