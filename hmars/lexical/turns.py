"""Passages of a dialogue: they end where turns end, and begin with a turn's header line.

A header is known by its form, a line in square brackets at the start of the text or after an empty
line. A turn that holds such a line itself is cut there as well, which costs nothing: passages are
for ranking, and who said what is never read from them.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from hmars.lexical.sentences import Span, passages

_HEADER = re.compile(r"(?:\A|(?<=\n\n))\[[^\[\]\n]{1,600}\]\n")


def turn_headers(text: str) -> list[tuple[int, str]]:
    """Where turns begin in a stretch of a dialogue, and their headers without the brackets."""
    return [(found.start(), found.group()[1:-2]) for found in _HEADER.finditer(text)]


def turn_passages(
    text: str, size: int, longest: int, starts: NDArray[np.uint32], *, offset: int = 0
) -> list[Span]:
    """Whole turns, as many as `size` tokens hold, tiling the text.

    A turn of more than `longest` tokens stands alone, cut into passages of its sentences.
    """
    edges = [0, *(start for start, _ in turn_headers(text) if start > 0), len(text)]
    counts = np.searchsorted(starts, edges).tolist()
    spans: list[Span] = []
    begin, used = 0, 0
    for at in range(len(edges) - 1):
        low, high = edges[at], edges[at + 1]
        tokens = counts[at + 1] - counts[at]
        if begin < low and used + tokens > size:
            spans.append((offset + begin, offset + low))
            begin, used = low, 0
        if tokens > longest and begin == low:
            own = starts[counts[at] : counts[at + 1]] - np.uint32(low)
            spans.extend(passages(text[low:high], longest, own, offset=offset + low))
            begin, used = high, 0
        else:
            used += tokens
    if begin < len(text):
        spans.append((offset + begin, offset + len(text)))
    return spans
