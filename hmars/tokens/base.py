"""What hmars asks of a tokenizer: where tokens begin, and how many there are."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Starts = NDArray[np.uint32]
"""Code point offset where each token of a text begins."""


class Tokenizer(Protocol):
    """Counts the tokens of exact text. Nothing is ever decoded: pages are slices of the text."""

    @property
    def identity(self) -> str:
        """Equal for tokenizers that count alike; stored with every index."""
        ...

    @property
    def exact_slices(self) -> bool:
        """Whether the counts of slices cut at token starts add up to the count of the whole."""
        ...

    def starts(self, text: str) -> Starts:
        """Where each token begins: never decreasing, and 0 first unless the text is empty.

        Several tokens may begin at the same code point (bytes of one character).
        """
        ...

    def count(self, text: str) -> int:
        """The number of tokens of this text by itself, without special tokens."""
        ...
