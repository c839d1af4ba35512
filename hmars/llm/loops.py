"""Notice that a model has fallen into a loop while it is still writing."""

from __future__ import annotations

from typing import Literal

Loop = Literal["whitespace", "repetition"]

WHITESPACE_RUN = 300
"""Characters. Deeply indented JSON has far shorter runs."""
TAIL = 2_400
LOOP_LENGTH = 1_200
"""Characters that must repeat exactly before a reply counts as looping."""
LOOP_TIMES = 5
CHECK_EVERY = 400


class LoopWatch:
    """Is fed the pieces of a reply; remembers only its tail."""

    def __init__(self) -> None:
        self._tail = ""
        self._unchecked = 0
        self._blank = 0

    def feed(self, piece: str) -> Loop | None:
        """The kind of loop the reply is in by now, if it is in one."""
        body = piece.rstrip()
        self._blank = len(piece) - len(body) + (0 if body else self._blank)
        if self._blank >= WHITESPACE_RUN:
            return "whitespace"
        self._tail = (self._tail + piece)[-TAIL:]
        self._unchecked += len(piece)
        if self._unchecked < CHECK_EVERY:
            return None
        self._unchecked = 0
        return "repetition" if _repeats(self._tail) else None


def find_loop(text: str) -> Loop | None:
    """The kind of loop a whole reply ends in."""
    if len(text) - len(text.rstrip()) >= WHITESPACE_RUN:
        return "whitespace"
    return "repetition" if _repeats(text.rstrip()[-TAIL:]) else None


def _repeats(tail: str) -> bool:
    """`tail` ends in the same stretch, at least LOOP_TIMES and LOOP_LENGTH characters in all.

    A text of length n has the period n - border(n) (Knuth, Morris and Pratt); read backwards, so
    that every prefix examined is an ending of the reply.
    """
    back = tail[::-1]
    borders = [0] * len(back)
    border = 0
    for position in range(1, len(back)):
        while border and back[position] != back[border]:
            border = borders[border - 1]
        if back[position] == back[border]:
            border += 1
        borders[position] = border
        length = position + 1
        if length >= LOOP_LENGTH and length >= LOOP_TIMES * (length - border):
            return True
    return False
