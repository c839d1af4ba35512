"""What indexing asks of its agents (S-HMARS 3.2, indexing phase).

Two families stand behind these protocols: models (`model_agents`) and deterministic agents
(`extractive`). The pipeline is the same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hmars.model import CrossReference, MemoryCard, Region, RegionalMemory


class CardAgent(Protocol):
    """A sub-agent at indexing time: writes the memory card of one region."""

    @property
    def author(self) -> str:
        """Model, prompt version and parameters, or name and version: part of each card's key."""
        ...

    async def write_card(self, region: Region) -> MemoryCard:
        """Read one region.

        Raises:
            CallFailed: no usable card for this region.
            EndpointError: no card can be written at all.
        """
        ...


class RegionalAgent(Protocol):
    """A mid-agent at indexing time: joins the cards of one group into a regional memory."""

    @property
    def author(self) -> str: ...

    async def write_memory(
        self, cards: Sequence[MemoryCard], candidates: Sequence[CrossReference]
    ) -> RegionalMemory:
        """Join cards in reading order; regions are numbered from 1 within the group.

        `candidates` are cross-references that the entity graph suggests inside this group.

        Raises:
            CallFailed, EndpointError: as for cards.
        """
        ...
