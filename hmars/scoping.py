"""What a question is asked of: documents of the store, and a conversation as it was at a time.

Turns stand in the order of their instants, so what was said up to a time is the beginning of the
text. What was said later is cut off: it is in no page, no card and no regional memory that the
question can reach. Pages and offsets keep their numbers, so citations fit the stored text, and
every region still ends in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from hmars.errors import ConfigError
from hmars.graph import candidates
from hmars.indexing.extractive import AUTHOR, fallback_card, fallback_memory
from hmars.indexing.labels import PageNamer
from hmars.indexing.turns import as_of, read_moment, render
from hmars.indexing.turns.keep import turns_of
from hmars.model import DocumentIndex, Group, MemoryCard, Page, Region, RegionalMemory, SourceText
from hmars.query.agents import Scope
from hmars.store import AsyncStore, StoredConversation
from hmars.tokens import Tokenizer

Moment = str | datetime
_LATER = MemoryCard(summary="(later than the time asked about)", author=AUTHOR)


async def load_scope(
    store: AsyncStore,
    namespace: str,
    document: str | Sequence[str] | None,
    tokenizer: Tokenizer,
    profile: str,
    moment: Moment | None = None,
) -> Scope:
    """The documents named, or all of the namespace; of conversations what was said by `moment`.

    Raises:
        NotFoundError: no such document here.
        ConfigError: one was indexed with another tokenizer than that of the `profile` named.
        InputError: `moment` is no time.
    """
    if document is None:
        found = await store.documents(namespace)
    else:
        names = [document] if isinstance(document, str) else list(document)
        listed = [await store.document(namespace, name) for name in names]
        found = list({item.id: item for item in listed}.values())
    for item in found:
        if item.tokenizer != tokenizer.identity:
            raise ConfigError(
                f"{item.title} ({item.id}) was indexed with the tokenizer {item.tokenizer}, "
                f"the profile {profile} has {tokenizer.identity}: index it again "
                "with this profile, or ask with the profile it was indexed with."
            )
    indexes: list[DocumentIndex] = []
    notes: list[str] = []
    namers: dict[str, Callable[[int, int], str]] = {}
    for item in found:
        index, said = await store.load_dialogue(namespace, item.id)
        if said is not None:
            namers[item.id] = TurnNamer(said, item.source)
        if moment is not None:
            index, note = cut(index, said, moment, tokenizer)
            notes.append(note)
        indexes.append(index)
    return Scope(tuple(indexes), tuple(notes), namers)


@dataclass(frozen=True)
class TurnNamer:
    """Names the turns that a quotation stands in; a page may hold dozens of them."""

    said: StoredConversation
    source: str

    def __call__(self, start: int, end: int) -> str:
        return PageNamer(self._text).name(start, end).label

    @cached_property
    def _text(self) -> SourceText:
        return render(turns_of(self.said), conversation=self.source).source


def cut(
    index: DocumentIndex, said: StoredConversation | None, moment: Moment, tokenizer: Tokenizer
) -> tuple[DocumentIndex, str]:
    """A conversation as it was at a time, and what is to be said about that.

    A day without an hour means its end, in the conversation's zone. A document without turns has
    no times and stays whole.
    """
    name = index.document.title
    zone = said.zone if said else None
    time = read_moment(moment, zone, end_of_day=True) if isinstance(moment, str) else moment
    if said is None:
        return index, f"{name} is no conversation, so it was read whole, whatever the time."
    turns = turns_of(said)
    kept = as_of(turns, time)
    later = len(turns) - len(kept)
    left_out = f"{later} later turn{'' if later == 1 else 's'} left out"
    note = f"{name} as of {time.isoformat(timespec='seconds')}: {left_out}."
    if len(kept) == len(turns):
        return index, note
    source = render(kept, conversation=index.document.source, zone=zone).source
    namer, end = PageNamer(source), len(source.text)

    def shortened(page: Page) -> Page:
        if page.end <= end:
            return page
        text = page.text[: max(0, end - page.start)]
        start = min(page.start, end)
        label = namer.name(start, end).label if text else ""
        context = page.context if text else ""
        return Page(page.index, start, end, tokenizer.count(text), label, context, text)

    regions = tuple(
        region if region.end <= end else replace(region, pages=tuple(map(shortened, region.pages)))
        for region in index.regions
    )
    cards = _cards(index, regions, end)
    groups, memories = _groups(index, regions, cards, end)
    document = replace(
        index.document, characters=end, tokens=sum(region.tokens for region in regions)
    )
    return DocumentIndex(document, regions, groups, cards, memories), note


def _cards(index: DocumentIndex, regions: Sequence[Region], end: int) -> dict[int, MemoryCard]:
    """The card of a region that was cut knows too much: a deterministic one takes its place."""
    cards = dict(index.cards)
    for before, region in zip(index.regions, regions, strict=True):
        if before.end <= end:
            continue
        later = before.start >= end
        cards[region.index] = _LATER if later else fallback_card(region, "cut at a time")
    return cards


def _groups(
    index: DocumentIndex, regions: Sequence[Region], cards: dict[int, MemoryCard], end: int
) -> tuple[tuple[Group, ...], dict[int, RegionalMemory]]:
    """Groups without regions of later text; their memories are made anew from what is left."""
    groups: list[Group] = []
    memories: dict[int, RegionalMemory] = {}
    for group in index.groups:
        members = tuple(n for n in group.regions if index.regions[n - 1].start < end)
        if not members:
            continue
        groups.append(Group(group.index, members))
        if index.regions[group.regions[-1] - 1].end <= end:
            if group.index in index.memories:
                memories[group.index] = index.memories[group.index]
            continue
        known = [cards[number] for number in members if number in cards]
        if len(known) == len(members):
            memories[group.index] = fallback_memory(known, candidates(known), "cut at a time")
    return tuple(groups), memories


def as_of_question(question: str, moment: Moment | None) -> str:
    """The question as models are asked it: "now" and "last week" mean that time."""
    if moment is None:
        return question
    text = moment if isinstance(moment, str) else moment.isoformat(timespec="minutes")
    return f"{question} (Asked as of {text}: answer as things stood then.)"
