"""Index one text: partition, cards, regional memories (S-HMARS 3.2, indexing phase).

Everything that was paid for is durable before the next step begins, under a key made of who wrote
it and what it was written from. So a killed run goes on where it stopped, a second run makes no
call, and an edit re-reads only the regions it touched (promise 5).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hmars.errors import CallFailed, ConfigError
from hmars.fanout import fan_out
from hmars.graph import candidates
from hmars.indexing.agents import CardAgent, RegionalAgent
from hmars.indexing.extractive import fallback_card, fallback_memory
from hmars.indexing.partition import partition
from hmars.model import (
    CardCounts,
    CrossReference,
    Group,
    IndexReport,
    IndexSeconds,
    MemoryCard,
    Progress,
    Region,
    RegionalMemory,
    SourceText,
    Usage,
)
from hmars.settings import PartitionSettings
from hmars.store import AsyncStore, StoredConversation, card_key, memory_key
from hmars.tokens import Tokenizer

OnProgress = Callable[[Progress], None]
Clock = Callable[[], float]
Body = TypeVar("Body", MemoryCard, RegionalMemory)


@dataclass(frozen=True)
class IndexAgents:
    """The agents that write one document's hierarchy."""

    card: CardAgent
    regional: RegionalAgent


@dataclass(frozen=True)
class _Kept:
    """What is attached to a document and stays, by region and by group."""

    cards: Mapping[int, MemoryCard] = field(default_factory=dict[int, MemoryCard])
    memories: Mapping[int, RegionalMemory] = field(default_factory=dict[int, RegionalMemory])


@dataclass
class _Tally:
    written: int = 0
    reused: int = 0
    degraded: int = 0
    reasons: list[str] = field(default_factory=list[str])

    def counts(self) -> CardCounts:
        return CardCounts(written=self.written, reused=self.reused, degraded=self.degraded)


@dataclass
class Indexer:
    """Writes documents into one namespace of a store."""

    store: AsyncStore
    namespace: str
    tokenizer: Tokenizer
    settings: PartitionSettings
    workers: int = 16
    usage: Callable[[], Mapping[str, Usage]] = dict
    on_progress: OnProgress | None = None
    clock: Clock = time.perf_counter

    async def index(
        self,
        source: SourceText,
        agents_for: Callable[[str], IndexAgents],
        *,
        load_seconds: float = 0.0,
        conversation: StoredConversation | None = None,
        on_saved: Callable[[], Awaitable[None]] | None = None,
        keep_attached: bool = False,
    ) -> IndexReport:
        """Partition `source`, store it, and write the cards and regional memories it lacks.

        Args:
            source: the text; its `source` says which document of the namespace it is.
            agents_for: makes the agents of a document, given its id.
            load_seconds: how long it took to read the text, for the report.
            conversation: the turns that the text was made of, stored with it.
            on_saved: called when the text is stored, before any agent is asked.
            keep_attached: take what is written about a text as it is, whoever wrote it.

        Raises:
            ConfigError: what is attached is to be kept, and was cut with another tokenizer.
            EndpointError: an endpoint cannot serve any call; what was written stays.
            Overtaken: the conversation was changed meanwhile; nothing was stored.
            StoreError: the store cannot take it; what was there stays.
        """
        began = self.clock()
        if keep_attached and conversation is not None and conversation.document is not None:
            await self._check_tokenizer(conversation.document)
        self._report("partition", 0, 1)
        parts = await asyncio.to_thread(partition, source, self.tokenizer, self.settings, "")
        partitioned = self.clock()
        document = await self.store.save_document(
            self.namespace,
            source,
            parts.regions,
            parts.groups,
            tokenizer=self.tokenizer.identity,
            tokens=parts.tokens,
            settings=self.settings.model_dump(mode="json"),
            conversation=conversation,
        )
        if on_saved is not None:
            await on_saved()
        kept = _Kept()
        if keep_attached:
            there = await self.store.load_index(self.namespace, document.id)
            kept = _Kept(_good(there.cards), _good(there.memories))
        regions = [replace(region, document=document.id) for region in parts.regions]
        agents = agents_for(document.id)
        cards, card_tally = await self._cards(document.id, regions, agents.card, kept.cards)
        carded = self.clock()
        memory_tally = await self._memories(
            document.id, parts.groups, regions, cards, agents.regional, kept.memories
        )
        ended = self.clock()
        return IndexReport(
            document=document.id,
            title=document.title,
            characters=document.characters,
            tokens=document.tokens,
            pages=document.pages,
            regions=document.regions,
            groups=document.groups,
            cards=card_tally.counts(),
            regional=memory_tally.counts(),
            usage=dict(self.usage()),
            seconds=IndexSeconds(
                load=load_seconds,
                partition=partitioned - began,
                cards=carded - partitioned,
                regional=ended - carded,
                total=load_seconds + ended - began,
            ),
            warnings=(
                *source.warnings,
                *parts.warnings,
                *card_tally.reasons,
                *memory_tally.reasons,
            ),
            unchanged=not card_tally.written and not memory_tally.written,
        )

    async def _check_tokenizer(self, document: str) -> None:
        """Cut with another tokenizer, every region would be another and nothing could be kept."""
        there = await self.store.document(self.namespace, document)
        if there.tokenizer != self.tokenizer.identity:
            raise ConfigError(
                f"{there.title} ({there.id}) was indexed with the tokenizer {there.tokenizer}, not "
                f"with {self.tokenizer.identity}: use the profile that it was indexed with."
            )

    async def _cards(
        self,
        document: str,
        regions: Sequence[Region],
        agent: CardAgent,
        kept: Mapping[int, MemoryCard],
    ) -> tuple[dict[int, MemoryCard], _Tally]:
        tally = _Tally()
        keys = {region.index: card_key(agent.author, region.key) for region in regions}
        wanted = [(region, keys[region.index]) for region in regions if region.index not in kept]
        found = await self.store.reuse_cards(self.namespace, document, wanted)
        cards = {**kept, **_good(found)}
        tally.reused = len(cards)
        missing = [region for region in regions if region.index not in cards]
        once = list({keys[region.index]: region for region in missing}.values())
        done = 0

        async def write(region: Region) -> MemoryCard:
            nonlocal done
            card = await _write_card(agent, region)
            await self.store.put_card(self.namespace, document, region, keys[region.index], card)
            done += 1
            self._report("cards", done, len(once))
            return card

        self._report("cards", 0, len(once))
        written = await fan_out(once, write, workers=self.workers)
        by_key = {keys[region.index]: card for region, card in zip(once, written, strict=True)}
        tally.written = len(once)
        tally.reused += len(missing) - len(once)
        for region in missing:
            card = cards[region.index] = by_key[keys[region.index]]
            if card.degraded is not None:
                tally.degraded += 1
                tally.reasons.append(
                    f"region {region.index} ({region.start}-{region.end}): {card.degraded}"
                )
        return cards, tally

    async def _memories(
        self,
        document: str,
        groups: Sequence[Group],
        regions: Sequence[Region],
        cards: Mapping[int, MemoryCard],
        agent: RegionalAgent,
        kept: Mapping[int, RegionalMemory],
    ) -> _Tally:
        tally = _Tally(reused=len(kept))
        done = len(kept)

        async def write(group: Group) -> None:
            nonlocal done
            members = [regions[number - 1] for number in group.regions]
            joined = [cards[number] for number in group.regions]
            suggested = candidates(joined)
            key = memory_key(agent.author, _inputs(joined, suggested))
            found = await self.store.reuse_memory(self.namespace, document, members, key)
            if found is not None and found.degraded is None:
                tally.reused += 1
            else:
                memory = await _write_memory(agent, joined, suggested)
                await self.store.put_memory(self.namespace, document, members, key, memory)
                tally.written += 1
                if memory.degraded is not None:
                    tally.degraded += 1
                    tally.reasons.append(f"group {group.index}: {memory.degraded}")
            done += 1
            self._report("regional memories", done, len(groups))

        missing = [group for group in groups if group.index not in kept]
        await fan_out(missing, write, workers=self.workers)
        return tally

    def _report(self, stage: str, done: int, total: int) -> None:
        if self.on_progress is not None and total:
            self.on_progress(Progress(stage, done, total))


def _good(bodies: Mapping[int, Body]) -> dict[int, Body]:
    """Those that their own agents wrote."""
    return {number: body for number, body in bodies.items() if body.degraded is None}


async def _write_card(agent: CardAgent, region: Region) -> MemoryCard:
    """The agent's card, or a deterministic one marked degraded with the reason (promise 7)."""
    if region.blank:
        return MemoryCard(summary="(blank)", author=agent.author)
    try:
        return await agent.write_card(region)
    except CallFailed as error:
        return fallback_card(region, str(error))


async def _write_memory(
    agent: RegionalAgent, cards: Sequence[MemoryCard], suggested: Sequence[CrossReference]
) -> RegionalMemory:
    try:
        return await agent.write_memory(cards, suggested)
    except CallFailed as error:
        return fallback_memory(cards, suggested, str(error))


def _inputs(cards: Sequence[MemoryCard], suggested: Sequence[CrossReference]) -> list[str]:
    """All that a regional agent is shown."""
    return [item.model_dump_json() for item in (*cards, *suggested)]
