"""What the lead of one open memory keeps from question to question."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from hmars.lexical import Terms
from hmars.model import Role
from hmars.query.agents import Scope
from hmars.query.lead.sentences import SentenceIndex
from hmars.query.lead.windows import windows_of
from hmars.query.ranking import LexicalIndex
from hmars.settings import Profile


@dataclass
class ActionMemory:
    """What questions have found out about tool calls, by endpoint and model.

    A model whose calls have once been understood is not held to be without them because of a later
    question.
    """

    _works: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _broken: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def works(self, profile: Profile, role: Role) -> None:
        self._works.add(_served(profile, role))

    def fails(self, profile: Profile, role: Role, why: str) -> None:
        key = _served(profile, role)
        if key not in self._works:
            self._broken.setdefault(key, why)

    def broken(self, profile: Profile, role: Role) -> str | None:
        """Why tool calls do not work there; None where that is not known."""
        return self._broken.get(_served(profile, role))


def _served(profile: Profile, role: Role) -> tuple[str, str]:
    settings = profile.roles[role]
    return settings.endpoint, settings.model


class SentenceShelf:
    """Keeps the sentences of a scope as long as its lexical index is kept, and no longer: what is
    forgotten there is forgotten here."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[LexicalIndex, SentenceIndex] = WeakKeyDictionary()

    def of(self, lexical: LexicalIndex, scope: Scope, window_tokens: int) -> SentenceIndex:
        """The sentences of the scope that `lexical` was made of; a memory has one window size."""
        found = self._kept.get(lexical)
        if found is None:
            found = SentenceIndex(windows_of(scope, window_tokens), Terms())
            self._kept[lexical] = found
        return found


@dataclass
class LeadMemory:
    """Belongs to one open memory, like the indexes of the single query."""

    actions: ActionMemory = field(default_factory=ActionMemory)
    sentences: SentenceShelf = field(default_factory=SentenceShelf)
