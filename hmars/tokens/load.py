"""From the `[tokenizer]` table of a profile to a tokenizer."""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path
from typing import Any

from hmars.errors import ConfigError, MissingExtraError
from hmars.settings import TokenizerSettings
from hmars.tokens.base import Tokenizer
from hmars.tokens.hub import HUB, model_path
from hmars.tokens.words import WordTokenizer

TRANSFORMERS = "transformers:"


def load_tokenizer(settings: TokenizerSettings | str) -> Tokenizer:
    """Load `words`, a tokenizer.json or its folder, a GGUF file, or a Hugging Face name.

    A GGUF file may be one of a hub, `hf:OWNER/REPOSITORY:FILE`.

    `transformers:NAME` loads with the full transformers library, for tokenizers that have no
    tokenizer.json.

    Raises:
        ConfigError: there is no such file, it is damaged, or the name cannot be downloaded.
        MissingExtraError: `transformers:` without transformers installed.
    """
    name = settings if isinstance(settings, str) else settings.name
    if name == "words":
        return WordTokenizer()
    if name.startswith(TRANSFORMERS):
        return _load_transformers(name.removeprefix(TRANSFORMERS))
    if name.startswith(HUB):
        return _load_file(model_path(name))
    path = Path(name).expanduser()
    if path.is_dir():
        path = path / "tokenizer.json"
        if not path.is_file():
            raise ConfigError(f"The folder {name} holds no tokenizer.json; name a file instead.")
    if path.is_file():
        return _load_file(path)
    if path.suffix in (".json", ".gguf") or name.startswith((".", "/", "~")):
        raise ConfigError(
            f"There is no tokenizer file {name}; check tokenizer.name in the profile."
        )
    return _download(name)


def _load_file(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer as FastTokenizer

    from hmars.tokens.gguf import build_tokenizer, is_gguf, read_gguf
    from hmars.tokens.huggingface import as_text_tokenizer

    if path.suffix == ".gguf" or is_gguf(path):
        vocabulary = read_gguf(path)
        return as_text_tokenizer(build_tokenizer(vocabulary, str(path)), vocabulary.identity)
    try:
        tokenizer = FastTokenizer.from_file(str(path))
    except Exception as error:
        # The library raises Exception itself for whatever is wrong with the file.
        if type(error) is not Exception:
            raise
        raise ConfigError(
            f"{path} is not a tokenizer.json ({error}); name one, or a GGUF file."
        ) from None
    return as_text_tokenizer(tokenizer)


def _download(name: str) -> Tokenizer:
    from tokenizers import Tokenizer as FastTokenizer

    from hmars.tokens.huggingface import as_text_tokenizer

    try:
        tokenizer = FastTokenizer.from_pretrained(name)
    except Exception as error:
        if not isinstance(error, (OSError, ValueError)) and type(error) is not Exception:
            raise
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"The tokenizer '{name}' cannot be downloaded ({reason}); set tokenizer.name to "
            "'words' or to the path of a tokenizer.json or a GGUF file."
        ) from None
    return as_text_tokenizer(tokenizer)


def _load_transformers(name: str) -> Tokenizer:
    from hmars.tokens.huggingface import EncodeOnlyTokenizer, as_text_tokenizer

    try:
        transformers: Any = importlib.import_module("transformers")
    except ModuleNotFoundError:
        raise MissingExtraError(f"The tokenizer '{name}'", "transformers") from None
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ConfigError(f"transformers cannot load the tokenizer '{name}': {error}.") from None
    if tokenizer.is_fast:
        return as_text_tokenizer(tokenizer.backend_tokenizer)
    vocabulary = json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)

    identity = f"transformers:{hashlib.sha256(vocabulary).hexdigest()[:32]}"
    return EncodeOnlyTokenizer(encode, identity)
