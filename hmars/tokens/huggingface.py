"""Tokenizers of the `tokenizers` library, and of anything that can only encode."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Protocol

import numpy as np
import tokenizers
from tokenizers import processors

from hmars.errors import ConfigError
from hmars.tokens.base import Starts
from hmars.tokens.windows import windows

PANIC = ("pyo3_runtime", "PanicException")
BATCH = 64
"""Windows encoded in one call: enough for all cores, little memory."""
SMALLEST = 64
"""Code points below which a text that a tokenizer cannot encode is not cut further."""
COARSE = 2_048
"""Code points over which a tokenizer without offsets spreads its tokens evenly."""


class Encoding(Protocol):
    @property
    def offsets(self) -> list[tuple[int, int]]: ...

    def __len__(self) -> int: ...


class Encoder(Protocol):
    """The part of `tokenizers.Tokenizer` that is used."""

    def encode_batch(
        self, input: Sequence[str], is_pretokenized: bool = ..., add_special_tokens: bool = ...
    ) -> Sequence[Encoding]: ...

    def encode_batch_fast(
        self, input: Sequence[str], is_pretokenized: bool = ..., add_special_tokens: bool = ...
    ) -> Sequence[Encoding]: ...


class HuggingFaceTokenizer:
    """A fast tokenizer. What looks like a special token in the text is counted as text.

    Cutting between two tokens may change how both sides are split, so `exact_slices` is false.
    """

    def __init__(self, encoder: Encoder, identity: str) -> None:
        self._encoder = encoder
        self._identity = identity

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def exact_slices(self) -> bool:
        return False

    def starts(self, text: str) -> Starts:
        found: list[Starts] = []
        begin = 0
        for group in _groups(windows(text)):
            for piece, encoding in self._encoded(group, offsets=True):
                found.append(_token_starts(encoding) + np.uint32(begin))
                begin += len(piece)
        return _from_zero(text, found)

    def count(self, text: str) -> int:
        return sum(
            len(encoding)
            for group in _groups(windows(text))
            for _, encoding in self._encoded(group, offsets=False)
        )

    def _encoded(self, pieces: Sequence[str], *, offsets: bool) -> list[tuple[str, Encoding]]:
        encode = self._encoder.encode_batch if offsets else self._encoder.encode_batch_fast
        try:
            return list(zip(pieces, encode(pieces, add_special_tokens=False), strict=True))
        except BaseException as error:
            # A panic of the Rust library derives from BaseException and cannot be imported.
            if (type(error).__module__, type(error).__name__) != PANIC:
                raise
        if len(pieces) == 1 and len(pieces[0]) <= SMALLEST:
            raise ConfigError(
                f"The tokenizer {self._identity} fails on the text {pieces[0][:40]!r}; "
                "use another tokenizer."
            )
        smaller = pieces if len(pieces) > 1 else _halves(pieces[0])
        return [pair for piece in smaller for pair in self._encoded([piece], offsets=offsets)]


class EncodeOnlyTokenizer:
    """A tokenizer that gives no offsets: counts are its own, token starts are approximate."""

    def __init__(self, encode: Callable[[str], Sequence[int]], identity: str) -> None:
        self._encode = encode
        self._identity = identity

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def exact_slices(self) -> bool:
        return False

    def starts(self, text: str) -> Starts:
        found: list[Starts] = []
        begin = 0
        for piece in windows(text, COARSE):
            tokens = len(self._encode(piece))
            evenly = np.arange(tokens, dtype=np.uint64) * len(piece) // max(1, tokens)
            found.append(evenly.astype(np.uint32) + np.uint32(begin))
            begin += len(piece)
        return _from_zero(text, found)

    def count(self, text: str) -> int:
        return sum(len(self._encode(piece)) for piece in windows(text))


def as_text_tokenizer(tokenizer: tokenizers.Tokenizer, identity: str = "") -> HuggingFaceTokenizer:
    """Set a tokenizer up to count plain text: no special tokens, no truncation, no padding."""
    identity = identity or f"hf:{_digest(tokenizer)}"
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    # Some post-processors move a token's start behind its leading space; none is needed here.
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return HuggingFaceTokenizer(tokenizer, identity)


def _digest(tokenizer: tokenizers.Tokenizer) -> str:
    """Of what decides counts: how text is normalised, split and merged."""
    whole: dict[str, object] = json.loads(tokenizer.to_str())
    kept = {key: whole.get(key) for key in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:32]


def _groups(pieces: Iterator[str]) -> Iterator[list[str]]:
    while group := list(islice(pieces, BATCH)):
        yield group


def _halves(piece: str) -> tuple[str, str]:
    middle = len(piece) // 2
    return piece[:middle], piece[middle:]


def _token_starts(encoding: Encoding) -> Starts:
    """Characters that no token covers (dropped blanks) belong to the token after them."""
    spans = np.array(encoding.offsets, dtype=np.uint32).reshape(-1, 2)
    starts, ends = spans[:, 0].copy(), np.maximum.accumulate(spans[:, 1])
    starts[:1] = 0
    starts[1:] = np.minimum(starts[1:], ends[:-1])
    return np.maximum.accumulate(starts)


def _from_zero(text: str, found: list[Starts]) -> Starts:
    starts = np.concatenate(found) if found else np.empty(0, dtype=np.uint32)
    if text and not len(starts):
        return np.zeros(1, dtype=np.uint32)
    starts[:1] = 0
    return starts
