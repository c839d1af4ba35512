"""Text without a model: terms, sentences, passages, BM25, key phrases, names."""

from __future__ import annotations

from hmars.lexical.bm25 import Bm25
from hmars.lexical.names import Names, is_quantity, key_phrases, names
from hmars.lexical.sentences import passages, sentences
from hmars.lexical.stopwords import STOP_WORDS
from hmars.lexical.terms import Terms, fold
from hmars.lexical.turns import turn_headers, turn_passages

__all__ = [
    "STOP_WORDS",
    "Bm25",
    "Names",
    "Terms",
    "fold",
    "is_quantity",
    "key_phrases",
    "names",
    "passages",
    "sentences",
    "turn_headers",
    "turn_passages",
]
