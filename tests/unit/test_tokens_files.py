from __future__ import annotations

import json
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from hmars.errors import ConfigError, MissingExtraError
from hmars.settings import TokenizerSettings
from hmars.tokens import load_tokenizer
from hmars.tokens.gguf import build_tokenizer, read_gguf
from hmars.tokens.huggingface import EncodeOnlyTokenizer, HuggingFaceTokenizer, as_text_tokenizer
from hmars.tokens.windows import windows

MODELS = Path("~/.cache/hmars/models").expanduser()


def byte_level() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: index for index, character in enumerate(alphabet)}
    vocabulary["th"] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("t", "h")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return tokenizer


def test_windows_join_to_the_text_and_prefer_line_ends() -> None:
    text = "a line of words\n" * 40 + "x" * 500
    parts = list(windows(text, 100))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 100
    assert parts[0].endswith("\n")


def test_special_tokens_in_the_text_are_text(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    byte_level().save(str(path))
    assert load_tokenizer(TokenizerSettings(name=str(path))).count("<|end|>") == len("<|end|>")
    assert load_tokenizer(str(tmp_path)).identity == load_tokenizer(str(path)).identity


def test_several_tokens_may_begin_in_one_character() -> None:
    tokenizer = as_text_tokenizer(byte_level())
    assert tokenizer.starts("th😀 x").tolist() == [0, 2, 2, 2, 2, 3, 4]
    assert tokenizer.count("th😀 x") == 7


def test_a_megabyte_without_a_break_is_counted_in_windows() -> None:
    tokenizer = as_text_tokenizer(byte_level())
    starts = tokenizer.starts("^" * 1_000_000)
    assert len(starts) == tokenizer.count("^" * 1_000_000) == 1_000_000
    assert int(starts[-1]) == 999_999


def test_blanks_that_a_tokenizer_drops_belong_to_the_next_token() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    assert as_text_tokenizer(tokenizer).starts("  A   b ").tolist() == [0, 3]
    assert as_text_tokenizer(tokenizer).starts("   ").tolist() == [0]
    assert as_text_tokenizer(tokenizer).starts("").tolist() == []


PanicException = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})


class Characters:
    """Encodes one token a character, and panics on pieces that are too long."""

    def __init__(self, longest: int, error: type[BaseException] = PanicException) -> None:
        self.longest = longest
        self.error = error

    def encode_batch(
        self, input: Sequence[str], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoded]:
        assert not add_special_tokens
        if any(len(piece) > self.longest for piece in input):
            raise self.error("stack overflow")
        return [Encoded(piece) for piece in input]

    encode_batch_fast = encode_batch


class Encoded:
    def __init__(self, piece: str) -> None:
        self.offsets = [(index, index + 1) for index in range(len(piece))]

    def __len__(self) -> int:
        return len(self.offsets)


def test_a_panic_of_the_library_is_met_with_smaller_windows() -> None:
    tokenizer = HuggingFaceTokenizer(Characters(longest=1000), "demo")
    assert tokenizer.count("y" * 40_000) == 40_000
    assert tokenizer.starts("y" * 40_000).tolist() == list(range(40_000))


def test_a_tokenizer_that_always_panics_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match="demo fails on the text 'yyy"):
        HuggingFaceTokenizer(Characters(longest=0), "demo").count("y" * 1000)


def test_other_errors_and_interrupts_pass_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        HuggingFaceTokenizer(Characters(0, KeyboardInterrupt), "demo").count("yy")


def test_a_tokenizer_without_offsets_gives_approximate_starts() -> None:
    tokenizer = EncodeOnlyTokenizer(lambda text: [0] * len(text.split()), "split")
    starts = tokenizer.starts("MiXeD  Case\tLabel " * 300).tolist()
    assert len(starts) == pytest.approx(900, abs=4)
    assert starts == sorted(starts)
    assert not tokenizer.exact_slices


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./missing.json", "There is no tokenizer file"),
        ("/no/such/model.gguf", "There is no tokenizer file"),
        ("transformers:some/name", "hmars\\[transformers\\]"),
    ],
)
def test_a_tokenizer_that_cannot_be_loaded_is_one_clear_sentence(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)  # as if it were not installed
    with pytest.raises(ConfigError, match=message) as caught:
        load_tokenizer(name)
    assert isinstance(caught.value, MissingExtraError) == name.startswith("transformers:")


def test_a_damaged_tokenizer_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": 1}), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tokenizer\.json is not a tokenizer\.json"):
        load_tokenizer(str(path))
    path.unlink()
    with pytest.raises(ConfigError, match="holds no tokenizer"):
        load_tokenizer(str(tmp_path))


# ---------------------------------------------------------------- GGUF


def gguf_string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_string(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    assert isinstance(value, list)
    items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
    head = struct.pack("<I", 9)
    if items and isinstance(items[0], str):
        return (
            head + struct.pack("<IQ", 8, len(items)) + b"".join(gguf_string(str(i)) for i in items)
        )
    kind, code = ("f", 6) if items and isinstance(items[0], float) else ("i", 5)
    return head + struct.pack(f"<IQ{len(items)}{kind}", code, len(items), *items)


def write_gguf(path: Path, **values: object) -> Path:
    pairs = {f"tokenizer.ggml.{key}": value for key, value in values.items()}
    body = b"".join(gguf_string(key) + gguf_value(value) for key, value in pairs.items())
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + body + b"tensors")
    return path


def byte_level_gguf(path: Path, pre: str) -> Path:
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "<|end|>", "<tool>"]
    types = [1] * (len(tokens) - 2) + [3, 4]
    return write_gguf(
        path, model="gpt2", pre=pre, tokens=tokens, merges=["t h"], token_type=types
    )  # fmt: skip


@pytest.mark.parametrize("pre", ["qwen2", "llama-bpe", "smollm", "gpt-2", "default", "qwen35"])
def test_a_gguf_brings_its_own_tokenizer(tmp_path: Path, pre: str) -> None:
    path = byte_level_gguf(tmp_path / "tiny.gguf", pre)
    tokenizer = load_tokenizer(str(path))
    assert tokenizer.count("th") == 1
    assert tokenizer.count("<|end|>") == 7
    assert tokenizer.count("<tool>") == 1
    assert tokenizer.identity.startswith(f"gguf:{pre}:")


def test_the_identity_of_a_gguf_tokenizer_does_not_depend_on_the_file(tmp_path: Path) -> None:
    one = load_tokenizer(str(byte_level_gguf(tmp_path / "one.gguf", "qwen2")))
    two = load_tokenizer(str(byte_level_gguf(tmp_path / "two.bin", "qwen2")))
    other = load_tokenizer(str(byte_level_gguf(tmp_path / "three.gguf", "gpt-2")))
    assert one.identity == two.identity != other.identity


def test_sentence_piece_vocabularies_merge_by_score(tmp_path: Path) -> None:
    tokens = ["<unk>", "<0xC3>", "<0xA9>", "▁", "t", "h", "e", "th", "he", "▁the"]
    path = write_gguf(
        tmp_path / "spm.gguf", model="llama", tokens=tokens, token_type=[2, 6, 6] + [1] * 7,
        scores=[0.0, 0.0, 0.0, -9.0, -8.0, -7.0, -6.0, -1.0, -2.0, -3.0], add_space_prefix=True,
    )  # fmt: skip
    built = build_tokenizer(read_gguf(path), "spm")
    assert built.encode("the").tokens == ["▁", "th", "e"]
    assert built.encode("é").tokens == ["▁", "<0xC3>", "<0xA9>"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "gpt2"}, "carries no tokenizer"),
        ({"model": "bert", "tokens": ["a"]}, "kind 'bert'"),
        ({"model": "gpt2", "pre": "odd", "tokens": ["a"]}, "rules named 'odd'"),
    ],
)
def test_a_gguf_whose_tokenizer_is_not_known_is_refused(
    tmp_path: Path, values: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_tokenizer(str(write_gguf(tmp_path / "odd.gguf", **values)))


def test_a_gguf_cut_short_is_refused(tmp_path: Path) -> None:
    path = byte_level_gguf(tmp_path / "cut.gguf", "qwen2")
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(ConfigError, match="not a whole GGUF file"):
        load_tokenizer(str(path))


@pytest.mark.parametrize(
    ("file", "count"),
    [("SmolLM2-135M-Instruct.Q4_1.gguf", 25), ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 22)],
)
def test_a_real_gguf_counts_as_llama_cpp_does(file: str, count: int) -> None:
    path = MODELS / file
    if not path.is_file():
        pytest.skip(f"{file} is not in ~/.cache/hmars/models")
    text = "Hello world, it's <|im_start|> 12345  x\n\n y\tz  "
    assert load_tokenizer(str(path)).count(text) == count  # as its server's /tokenize says
