"""What all values of the model have in common."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict

Role = Literal["card", "region", "broadcast", "select", "answer", "lead", "read", "judge"]
DocumentKind = Literal["text", "dialogue"]


class Frozen(BaseModel):
    """A value that is stored or printed as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_NOT_BLANK = re.compile(r"[^\s\x00\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def is_blank(text: str) -> bool:
    """Nothing in it that can be seen: white space, zero-width characters and NUL."""
    return _NOT_BLANK.search(text) is None
