from __future__ import annotations

from hmars.graph import candidates
from hmars.indexing.extractive import (
    ExtractiveCardAgent,
    ExtractiveRegionalAgent,
    fallback_card,
    fallback_memory,
)
from hmars.indexing.partition import partition
from hmars.model import Region, SourceText
from hmars.settings import PartitionSettings
from hmars.tokens import WordTokenizer

TEXT = """The harbour of Tamsin Cove has two piers. The keeper Orla Venn lights every lamp at dusk.

Each lamp burns for 9 hours. The harbour office pays Orla Venn $2,500 a month since 12 May 2024.

The crane stands on pier 2. Nobody but the keeper Orla Venn may use the crane without a permit.
"""


def regions_of(text: str) -> tuple[Region, ...]:
    source = SourceText(text=text, source="doc", title="Doc")
    sizes = PartitionSettings(page_tokens=32, region_tokens=96)
    return partition(source, WordTokenizer(), sizes, "doc").regions


async def test_a_card_says_what_the_region_says_in_its_own_words() -> None:
    (region,) = regions_of(TEXT)
    card = await ExtractiveCardAgent().write_card(region)
    flat = " ".join(TEXT.split())
    assert "Orla Venn" in card.entities
    assert {"$2,500", "12 May 2024", "9 hours"} <= set(card.entities)
    assert card.topics and all(topic in TEXT for topic in card.topics)
    assert card.summary and card.summary.split(". ")[0] in flat
    assert [entry.page for entry in card.page_index] == list(range(1, len(region.pages) + 1))
    for entry, page in zip(card.page_index, region.pages, strict=True):
        assert entry.gist.rstrip("…") in " ".join(page.text.split())
    assert card.degraded is None


async def test_the_same_region_gives_the_same_card_whatever_was_read_before() -> None:
    first, second = regions_of(TEXT)[0], regions_of(TEXT.replace("crane", "winch") * 2)[0]
    agent = ExtractiveCardAgent()
    await agent.write_card(second)
    assert await agent.write_card(first) == await ExtractiveCardAgent().write_card(first)


async def test_a_long_page_gives_one_short_line() -> None:
    (region,) = regions_of("word and lamp " * 20)
    card = await ExtractiveCardAgent().write_card(region)
    assert all(len(entry.gist) <= 161 for entry in card.page_index)


def test_a_card_that_stands_in_says_why() -> None:
    card = fallback_card(regions_of(TEXT)[0], "the model cut its reply twice")
    assert card.degraded == "the model cut its reply twice"
    assert card.summary


async def test_scripts_without_spaces_get_topics_and_gists_too() -> None:
    (region,) = regions_of("守灯人每天傍晚点亮码头的灯。守灯人住在灯塔里。")
    card = await ExtractiveCardAgent().write_card(region)
    assert "守灯人" in card.topics
    assert card.page_index


async def test_a_regional_memory_joins_cards_and_carries_the_suggestions() -> None:
    (region,) = regions_of(TEXT)
    agent = ExtractiveCardAgent()
    cards = [await agent.write_card(region), await agent.write_card(region)]
    suggested = candidates(cards)
    memory = await ExtractiveRegionalAgent().write_memory(cards, suggested)
    assert [entry.region for entry in memory.submap] == [1, 2]
    assert "Orla Venn" in memory.submap[0].entities
    assert memory.crossrefs == tuple(suggested) != ()
    assert memory.summary
    degraded = fallback_memory(cards, (), "timeout")
    assert (degraded.degraded, degraded.crossrefs) == ("timeout", tuple(suggested))
