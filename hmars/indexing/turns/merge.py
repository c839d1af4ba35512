"""A growing conversation: taking in turns in any order, any number of times.

Turns are taken in one after the other, and everything that decides about a turn is stored in the
turns themselves, so a file in one piece and the same file in any number of batches give the same
conversation, and taking in a file twice is taking it in once.

Rules:

- A turn whose id and content are known is a duplicate.
- Same id, session, speaker and (known) time with another text: the turn was edited, and is
  replaced at its place.
- Same id otherwise: ids of the source are not unique (numbers that start anew in each file); both
  turns are kept, the later one under "ID~DIGEST".
- Order is by instant, then by arrival. A turn without an instant stands after the turn that was
  taken in before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC

from hmars.indexing.turns.turn import Turn, order_key, second_id
from hmars.model import Frozen


class MergeResult(Frozen):
    """The conversation after taking in new turns, and what became of each of them.

    `added`, `replaced`, `renamed` and `out_of_order` are ids; the last two are among the added.
    """

    turns: tuple[Turn, ...]
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    """Edited: same id, speaker and time, another text."""
    renamed: tuple[str, ...] = ()
    """Their given id was taken by another turn."""
    out_of_order: tuple[str, ...] = ()
    """Earlier than a turn that was taken in before them."""
    duplicates: int = 0
    ambiguous: int = 0
    """Of the duplicates: without time and given id, so the same words may have been said again."""
    time_differs: int = 0
    """Of the duplicates: read with another zone or date order; the first reading holds."""
    forgotten: int = 0
    """Left out because they were forgotten before."""
    unchanged: int = 0
    """How many turns at the start are as before: what follows them was touched."""


@dataclass(slots=True)
class _Intake:
    by_id: dict[str, Turn]
    last: Turn | None
    added: list[str] = field(default_factory=list[str])
    replaced: list[str] = field(default_factory=list[str])
    renamed: list[str] = field(default_factory=list[str])
    duplicates: int = 0
    ambiguous: int = 0
    time_differs: int = 0

    def take(self, turn: Turn) -> None:
        known = self.by_id.get(turn.id)
        if known is not None and known.content_key != turn.content_key:
            if _is_edit(known, turn):
                self._replace(known, turn)
                return
            turn = turn.model_copy(update={"id": second_id(turn)})
            known = self.by_id.get(turn.id)
            if known is None:
                self.renamed.append(turn.id)
        if known is not None:
            self.duplicates += 1
            self.ambiguous += turn.time.missing and not turn.id_given
            self.time_differs += turn.time.at != known.time.at
            return
        self._add(turn)

    def _add(self, turn: Turn) -> None:
        before = self.last.placed_at if self.last else None
        placed_at = turn.time.at.astimezone(UTC) if turn.time.at else before
        sequence = self.last.sequence + 1 if self.last else 0
        turn = turn.model_copy(update={"sequence": sequence, "placed_at": placed_at})
        self.by_id[turn.id] = self.last = turn
        self.added.append(turn.id)

    def _replace(self, known: Turn, turn: Turn) -> None:
        place = {"sequence": known.sequence, "placed_at": known.placed_at}
        self.by_id[turn.id] = turn = turn.model_copy(update=place)
        if self.last is known:
            self.last = turn
        self.replaced.append(turn.id)


def merge(
    existing: Sequence[Turn], new: Iterable[Turn], *, forgotten: Collection[str] = ()
) -> MergeResult:
    """Take `new` turns into a conversation.

    Args:
        existing: the `turns` of an earlier result (or none).
        forgotten: ids that must not come back when an old export is taken in again.
    """
    if len({turn.sequence for turn in existing}) != len(existing):
        existing = merge((), existing).turns  # a list that no merge has numbered yet
    last = max(existing, key=lambda turn: turn.sequence, default=None)
    intake = _Intake(by_id={turn.id: turn for turn in existing}, last=last)
    left_out = 0
    for turn in new:
        if turn.id in forgotten:
            left_out += 1
        else:
            intake.take(turn)
    turns = tuple(sorted(intake.by_id.values(), key=order_key))
    return MergeResult(
        turns=turns,
        added=tuple(intake.added),
        replaced=tuple(intake.replaced),
        renamed=tuple(intake.renamed),
        out_of_order=_overtaken(turns, frozenset(intake.added)),
        duplicates=intake.duplicates,
        ambiguous=intake.ambiguous,
        time_differs=intake.time_differs,
        forgotten=left_out,
        unchanged=_common_prefix(existing, turns),
    )


def _is_edit(known: Turn, turn: Turn) -> bool:
    """Times are needed for it: two files that both number from 1 must not overwrite each other."""
    return (
        not turn.time.missing
        and known.time.key == turn.time.key
        and known.speaker == turn.speaker
        and known.session == turn.session
    )


def _overtaken(turns: Sequence[Turn], added: frozenset[str]) -> tuple[str, ...]:
    """Added turns that stand before one that had arrived earlier."""
    earliest_after: int | None = None
    found: list[str] = []
    for turn in reversed(turns):
        if turn.id in added and earliest_after is not None and earliest_after < turn.sequence:
            found.append(turn.id)
        if earliest_after is None or turn.sequence < earliest_after:
            earliest_after = turn.sequence
    return tuple(reversed(found))


def _common_prefix(before: Sequence[Turn], after: Sequence[Turn]) -> int:
    pairs = zip(before, after, strict=False)
    return next(
        (index for index, (old, new) in enumerate(pairs) if old is not new and old != new),
        min(len(before), len(after)),
    )
