"""Show the answer while it is being written: its text out of a JSON reply that is not finished."""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json

from hmars.query.agents import OnText


class AnswerStream:
    """Turns pieces of `{"answerable": ..., "answer": "..."}` into pieces of the answer's text."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._received = ""
        self._shown = 0

    def feed(self, piece: str) -> None:
        """Take a piece of the reply; pass on what it adds to the answer."""
        self._received += piece
        start = self._received.find("{")
        if start < 0:
            return
        try:
            value: Any = from_json(self._received[start:], allow_partial="trailing-strings")
        except ValueError:
            return  # the end of the reply is judged by the validator, not here
        if not isinstance(value, dict):
            return
        answer = cast(dict[str, Any], value).get("answer")
        if isinstance(answer, str) and len(answer) > self._shown:
            self._on_text(answer[self._shown :])
            self._shown = len(answer)
