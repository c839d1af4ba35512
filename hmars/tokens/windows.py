"""Cutting long texts into bounded windows, so that no tokenizer meets one enormous piece."""

from __future__ import annotations

from collections.abc import Iterator

WINDOW = 16_384
"""Code points. Merging one unbroken piece of this size takes milliseconds; of 1 MB, minutes."""


def windows(text: str, size: int = WINDOW) -> Iterator[str]:
    """Slices of at most `size` code points that join to the text.

    Cut after a line or before a blank in the last quarter of a window; through an unbroken run.
    """
    begin = 0
    while begin < len(text):
        end = begin + size
        if end < len(text):
            end = _cut(text, begin + size - size // 4, end)
        yield text[begin:end]
        begin = end


def _cut(text: str, low: int, high: int) -> int:
    line_end = text.rfind("\n", low, high)
    if line_end >= 0:
        return line_end + 1
    blank = text.rfind(" ", low, high)
    return blank if blank > 0 else high
