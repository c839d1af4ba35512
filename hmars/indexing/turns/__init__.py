"""Dialogues: turns from chat exports, kept in order as they grow, laid out as one text.

`read_turns` or `make_turns`, then `merge` into what is there, then `render`. See docs/dialogues.md.
"""

from hmars.indexing.turns.filters import as_of, by_speaker, forget_turns
from hmars.indexing.turns.merge import MergeResult, merge
from hmars.indexing.turns.reading import TurnFile, TurnFormat, make_turns, read_turns
from hmars.indexing.turns.render import RenderedConversation, render
from hmars.indexing.turns.times import read_moment
from hmars.indexing.turns.turn import Turn, TurnRole, TurnTime

__all__ = [
    "MergeResult",
    "RenderedConversation",
    "Turn",
    "TurnFile",
    "TurnFormat",
    "TurnRole",
    "TurnTime",
    "as_of",
    "by_speaker",
    "forget_turns",
    "make_turns",
    "merge",
    "read_moment",
    "read_turns",
    "render",
]
