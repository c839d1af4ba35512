"""What all values of the model have in common."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Role = Literal["card", "region", "broadcast", "select", "answer", "lead", "read", "judge"]
DocumentKind = Literal["text", "dialogue"]


class Frozen(BaseModel):
    """A value that is stored or printed as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_blank(text: str) -> bool:
    """Nothing in it but white space and characters that have no width."""
    return not text.translate(_NO_WIDTH).strip()


_NO_WIDTH = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))
