"""Fixed-size chunks of a text, as flat retrieval systems cut it, and filling a token budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hmars.tokens import Tokenizer

SNAP = 0.25
"""A chunk may end this share of its size earlier, at the end of a line, sentence or word."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text[start:end]` of the document; `tokens` of the benchmark's tokenizer."""

    number: int
    start: int
    end: int
    tokens: int
    text: str


def chunked(text: str, tokenizer: Tokenizer, size: int) -> list[Chunk]:
    """Chunks of at most `size` tokens that tile the text."""
    starts = [int(start) for start in tokenizer.starts(text)]
    chunks: list[Chunk] = []
    at = 0
    while at < len(starts):
        last = min(at + size, len(starts))
        if last < len(starts):
            last = _edge(text, starts, at, last)
        end = starts[last] if last < len(starts) else len(text)
        start = starts[at] if chunks else 0
        if end > start:
            chunks.append(Chunk(len(chunks), start, end, last - at, text[start:end]))
        at = last
    return chunks


def _edge(text: str, starts: list[int], first: int, last: int) -> int:
    """The token before which to cut: after a line, else a sentence, else anywhere."""
    lowest = max(first + 1, last - int((last - first) * SNAP))
    for enders in ("\n", ".!?。！？"):
        for at in range(last, lowest - 1, -1):
            before = text[starts[at - 1] : starts[at]]
            kept = before.rstrip(" ")
            if starts[at] > starts[first] and kept and kept[-1] in enders:
                return at
    # Several tokens may begin at one character: never cut inside it.
    while last < len(starts) and starts[last] == starts[last - 1]:
        last += 1
    return last


def fill(ranked: Iterable[Chunk], budget: int, tokenizer: Tokenizer) -> list[Chunk]:
    """The first chunks that fit into `budget` tokens; the one that does not is cut to what is left.

    Cutting it uses the whole budget, so that no system is worse for the size of its chunks alone.
    """
    chosen: list[Chunk] = []
    left = budget
    for chunk in ranked:
        if chunk.tokens > left:
            starts = tokenizer.starts(chunk.text)
            end = int(starts[left]) if left < len(starts) else len(chunk.text)
            if end > 0 and left > 0:
                text = chunk.text[:end]
                chosen.append(Chunk(chunk.number, chunk.start, chunk.start + end, left, text))
            break
        chosen.append(chunk)
        left -= chunk.tokens
    return chosen
