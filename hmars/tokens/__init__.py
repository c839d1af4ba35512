"""Tokenizers behind one interface: they say where tokens begin and count them.

base.py         the interface
words.py        the default, without a model
huggingface.py  tokenizers of the `tokenizers` library; anything that can only encode
gguf.py         the tokenizer inside a GGUF file
load.py         from a profile to a tokenizer (imports the heavy parts when they are named)
"""

from __future__ import annotations

from hmars.tokens.base import Starts, Tokenizer
from hmars.tokens.load import load_tokenizer
from hmars.tokens.words import WordTokenizer

__all__ = ["Starts", "Tokenizer", "WordTokenizer", "load_tokenizer"]
