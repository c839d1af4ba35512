"""The tokenizer inside a GGUF file, read from its header without loading the model."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from hmars.errors import ConfigError

MAGIC = b"GGUF"
OF_TOKENIZER = "tokenizer.ggml."
STRING, ARRAY = 8, 9
SCALARS: Final = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
UNKNOWN, USER_DEFINED = 2, 4
LONGEST = 1 << 28
"""A longer string or array than any tokenizer has: the header is damaged."""

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_MODERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_ONE_DIGIT = _MODERN.replace("DIGITS", r"\p{N}")
_THREE_DIGITS = _MODERN.replace("DIGITS", r"\p{N}{1,3}")
_WITH_MARKS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DEFAULT = (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")

SPLITS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("gpt-2", "mpt", "olmo", "jais", "trillion", "granite-docling"), (_GPT2,)),
    **dict.fromkeys(
        ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"),
        (r"\p{N}", _GPT2),
    ),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez"), (_ONE_DIGIT,)),
    "qwen35": (_WITH_MARKS,),
    **dict.fromkeys(
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "dbrx", "smaug-bpe", "chatglm-bpe", "glm4"),
        (_THREE_DIGITS,),
    ),
    "default": _DEFAULT,
}
"""How each `tokenizer.ggml.pre` splits text before merging, applied one after another."""


@dataclass(frozen=True, slots=True)
class GgufVocabulary:
    """The `tokenizer.ggml.*` part of a GGUF header."""

    model: str
    pre: str
    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    scores: tuple[float, ...]
    types: tuple[int, ...]
    space_prefix: bool

    @property
    def identity(self) -> str:
        """Content address: the same vocabulary in another file counts alike."""
        parts = [self.model, self.pre, self.tokens, self.merges, self.scores, self.types]
        data = json.dumps([*parts, self.space_prefix]).encode()
        return f"gguf:{self.pre or self.model}:{hashlib.sha256(data).hexdigest()[:32]}"


def is_gguf(path: Path) -> bool:
    """Whether the file begins like a GGUF file."""
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def read_gguf(path: Path) -> GgufVocabulary:
    """Read the vocabulary from a GGUF header (a few MB, whatever the size of the model).

    Raises:
        ConfigError: not a GGUF file, cut short, or without a tokenizer.
    """
    values = {
        key.removeprefix(OF_TOKENIZER): value
        for key, value in read_gguf_values(path).items()
        if key.startswith(OF_TOKENIZER)
    }
    tokens = cast(Sequence[str], values.get("tokens", ()))
    if not tokens:
        raise ConfigError(
            f"The GGUF file {path} carries no tokenizer; name the model's tokenizer.json instead."
        )
    return GgufVocabulary(
        model=str(values.get("model", "")),
        pre=str(values.get("pre", "")),
        tokens=tuple(tokens),
        merges=tuple(cast(Sequence[str], values.get("merges", ()))),
        scores=tuple(cast(Sequence[float], values.get("scores", ()))),
        types=tuple(cast(Sequence[int], values.get("token_type", ()))),
        space_prefix=bool(values.get("add_space_prefix", True)),
    )


def read_gguf_values(path: Path) -> dict[str, Any]:
    """All values of a GGUF header by key, `qwen2.block_count` and the like.

    Raises:
        ConfigError: not a GGUF file, or cut short.
    """
    try:
        with path.open("rb") as file:
            return _read_header(file)
    except OSError as error:
        raise ConfigError(f"The GGUF file {path} cannot be read: {error.strerror}.") from None
    except (ValueError, struct.error, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is not a whole GGUF file ({error}); download it again or name another one."
        ) from None


def _read_header(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != MAGIC:
        raise ValueError("it does not begin with GGUF")
    version, _, pairs = cast(tuple[int, int, int], _unpack(file, "<IQQ"))
    if version not in (2, 3):
        raise ValueError(f"version {version} is not supported")
    values: dict[str, Any] = {}
    for _ in range(pairs):
        key = _read_string(file)
        values[key] = _read_value(file, _unpack(file, "<I")[0])
    return values


def _unpack(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _read_string(file: BinaryIO) -> str:
    length: int = _unpack(file, "<Q")[0]
    data = file.read(min(length, LONGEST))
    if len(data) != length:
        raise ValueError("it ends inside a string")
    return data.decode("utf-8")


def _read_value(file: BinaryIO, kind: int) -> object:
    if kind == STRING:
        return _read_string(file)
    if kind == ARRAY:
        inner, length = cast(tuple[int, int], _unpack(file, "<IQ"))
        if length > LONGEST:
            raise ValueError("an array is too long")
        if inner in SCALARS:
            return _unpack(file, f"<{length}{SCALARS[inner]}")
        return [_read_value(file, inner) for _ in range(length)]
    if kind not in SCALARS:
        raise ValueError(f"it has a value of unknown type {kind}")
    return _unpack(file, f"<{SCALARS[kind]}")[0]


def build_tokenizer(vocabulary: GgufVocabulary, name: str) -> Tokenizer:
    """A `tokenizers.Tokenizer` that splits as llama.cpp does with this vocabulary.

    Raises:
        ConfigError: a kind of tokenizer that is not known here.
    """
    if vocabulary.model == "gpt2":
        tokenizer = _byte_level(vocabulary, name)
    elif vocabulary.model == "llama" and vocabulary.scores:
        tokenizer = _sentence_piece(vocabulary)
    else:
        raise ConfigError(
            f"{name} has a tokenizer of kind '{vocabulary.model}', which cannot be read from GGUF; "
            "name the model's tokenizer.json instead."
        )
    named = zip(vocabulary.tokens, vocabulary.types, strict=False)
    tokenizer.add_tokens(
        [AddedToken(token, normalized=False) for token, kind in named if kind == USER_DEFINED]
    )
    return tokenizer


def _byte_level(vocabulary: GgufVocabulary, name: str) -> Tokenizer:
    patterns = SPLITS.get(vocabulary.pre or "default")
    if patterns is None:
        raise ConfigError(
            f"{name} splits text by rules named '{vocabulary.pre}', which are not known here; "
            "name the model's tokenizer.json instead."
        )
    merges = [cast(tuple[str, str], tuple(merge.split(" ", 1))) for merge in vocabulary.merges]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={token: index for index, token in enumerate(vocabulary.tokens)},
            merges=merges,
            ignore_merges=patterns == (_THREE_DIGITS,),
        )
    )
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    return tokenizer


def _sentence_piece(vocabulary: GgufVocabulary) -> Tokenizer:
    """SentencePiece BPE: of all neighbours, those join first whose union scores best."""
    ranks = {token: index for index, token in enumerate(vocabulary.tokens)}
    merges: list[tuple[float, int, str, str]] = []
    for index, token in enumerate(vocabulary.tokens):
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in ranks and right in ranks:
                merges.append((-vocabulary.scores[index], index, left, right))
    merges.sort()
    unknown = vocabulary.types.index(UNKNOWN) if UNKNOWN in vocabulary.types else 0
    tokenizer = Tokenizer(
        models.BPE(
            vocab=ranks,
            merges=[(left, right) for _, _, left, right in merges],
            unk_token=vocabulary.tokens[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
    if vocabulary.space_prefix:
        steps.insert(0, normalizers.Prepend("▁"))
    tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer
