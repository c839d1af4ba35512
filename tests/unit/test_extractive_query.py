from __future__ import annotations

import asyncio

import pytest

from hmars.indexing.extractive import ExtractiveCardAgent, ExtractiveRegionalAgent
from hmars.indexing.partition import partition
from hmars.model import Document, DocumentIndex, SourceText
from hmars.query.agents import Draft, Guidance, RegionSelection, Scope
from hmars.query.evidence import assemble
from hmars.query.extractive import ExtractiveMemory, extractive_agents
from hmars.settings import PartitionSettings
from hmars.tokens import WordTokenizer

TOKENIZER = WordTokenizer()
YARD = """The yard at Tamsin Cove has two piers and one crane. The crane was bought second hand.

Pier 1 has 8 lamps. Pier 2 has 12 lamps. The lamps are lit at dusk by Orla Venn.

Orla Venn lives in the house by the gate. She keeps the key on a hook behind the door.

The rules of the yard are:

- Boats longer than 9 metres moor at pier 2.
- Nobody may swim between the piers.
"""


def index_of(
    text: str, name: str = "yard", sizes: PartitionSettings | None = None
) -> DocumentIndex:
    source = SourceText(text=text, source=name, title=name)
    sizes = sizes or PartitionSettings(page_tokens=48, region_tokens=48, group_regions=2)
    parts = partition(source, TOKENIZER, sizes, name)
    cards = {r.index: asyncio.run(ExtractiveCardAgent().write_card(r)) for r in parts.regions}
    memories = {
        group.index: asyncio.run(
            ExtractiveRegionalAgent().write_memory([cards[number] for number in group.regions], ())
        )
        for group in parts.groups
    }
    document = Document(
        id=name, namespace="default", title=name, source=name, kind="text", content_hash=name,
        characters=len(text), tokens=parts.tokens, pages=len(parts.regions),
        regions=len(parts.regions), groups=len(parts.groups), tokenizer=TOKENIZER.identity,
        updated="",
    )  # fmt: skip
    return DocumentIndex(document, parts.regions, parts.groups, cards, memories)


async def select(
    scope: Scope, question: str, hint: str = ""
) -> dict[tuple[str, int], RegionSelection]:
    agents = extractive_agents(scope, TOKENIZER)
    guidance = Guidance(question, hint or question)
    return {
        (index.document.id, region.index): await agents.selector.select(
            question, region, None, guidance
        )
        for index, region in scope.regions()
    }


def ask(scope: Scope, question: str, budget: int = 13_000) -> Draft:
    async def run() -> Draft:
        selections = await select(scope, question)
        evidence = assemble(scope, selections, budget, TOKENIZER)
        return await extractive_agents(scope, TOKENIZER).answerer.answer(question, evidence.blocks)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("How many lamps does pier 2 have?", "Pier 2 has 12 lamps."),
        ("How many lamps does pier 1 have?", "Pier 1 has 8 lamps."),
        ("Who lights the lamps at dusk?", "by Orla Venn"),
        ("Where does Orla Venn live?", "in the house by the gate"),
        ("Where is the key kept?", "on a hook"),
        ("Where do boats longer than 9 metres moor?", "at pier 2"),
    ],
)
def test_a_question_that_the_text_answers_is_answered_by_quoting_it(
    question: str, phrase: str
) -> None:
    draft = ask(Scope((index_of(YARD),)), question)
    assert not draft.abstained
    assert phrase in " ".join(draft.quotes[0].text.split())
    assert all(quote.text in YARD for quote in draft.quotes)
    assert f"[{draft.quotes[0].block}]" in draft.answer


@pytest.mark.parametrize(
    "question",
    [
        "What colour is the crane?",
        "Who is the capital of France?",
        "How many lamps does pier 9 have?",
        "Where does Zoe Brandt live?",
    ],
)
def test_a_question_that_the_text_does_not_answer_is_not_answered(question: str) -> None:
    draft = ask(Scope((index_of(YARD),)), question)
    assert draft.abstained
    assert draft.quotes == ()


def test_a_sentence_that_leans_on_the_one_before_is_quoted_with_it() -> None:
    draft = ask(Scope((index_of(YARD),)), "Where does she keep the key of the house?")
    assert draft.quotes[0].text.startswith("Orla Venn lives")


def test_the_answer_is_streamed_as_it_is_returned() -> None:
    heard: list[str] = []
    scope = Scope((index_of(YARD),))

    async def run() -> Draft:
        selections = await select(scope, "Who lights the lamps at dusk?")
        blocks = assemble(scope, selections, 1000, TOKENIZER).blocks
        answerer = extractive_agents(scope, TOKENIZER).answerer
        return await answerer.answer("Who lights the lamps at dusk?", blocks, heard.append)

    draft = asyncio.run(run())
    assert not draft.abstained
    assert "".join(heard) == draft.answer


def test_a_region_without_a_word_of_the_question_abstains() -> None:
    scope = Scope((index_of(YARD),))
    selections = asyncio.run(select(scope, "crane"))
    chosen = {number for (_, number), selection in selections.items() if selection.pages}
    assert chosen == {1}


def test_confidence_is_comparable_between_regions_and_passages_come_best_first() -> None:
    index = index_of(YARD * 3, sizes=PartitionSettings(page_tokens=400, region_tokens=800))
    selections = asyncio.run(select(Scope((index,)), "How many lamps does pier 2 have?"))
    pages = [page for selection in selections.values() for page in selection.pages]
    assert pages
    for page in pages:
        assert 0 < page.confidence <= 1
        assert page.weights == tuple(sorted(page.weights, reverse=True))
        assert page.confidence == page.weights[0]
        for start, end in page.passages:
            assert page.page.start <= start < end <= page.page.end


def test_a_question_of_which_less_is_known_is_asked_with_less_confidence() -> None:
    scope = Scope((index_of(YARD),))

    def best(question: str) -> float:
        found = asyncio.run(select(scope, question)).values()
        return max(page.confidence for selection in found for page in selection.pages)

    assert best("second hand crane") > best("second hand crane of the emperor of Lisbon")


def test_the_document_whose_title_is_named_comes_first() -> None:
    first, second = (
        index_of("Pier 2 has 12 lamps.", "Tamsin"),
        index_of("Pier 2 has 7 lamps.", "Orford"),
    )
    draft = ask(Scope((first, second)), "How many lamps does pier 2 have in Orford?")
    assert draft.quotes[0].text == "Pier 2 has 7 lamps."


def test_the_mid_agent_hands_each_region_the_names_that_go_with_the_question() -> None:
    index = index_of(YARD)

    async def run() -> dict[int, str]:
        broadcaster = extractive_agents(Scope((index,)), TOKENIZER).broadcaster
        hints: dict[int, str] = {}
        for group in index.groups:
            found = await broadcaster.broadcast("Where does Orla live?", index, group)
            assert found.interpretation == "orla live"
            hints.update(found.hints)
        return hints

    hints = asyncio.run(run())
    named = {number for number, card in index.cards.items() if "Orla Venn" in card.entities}
    assert named and set(hints) >= named
    assert all("Orla Venn" in hints[number] for number in named)


def test_agents_of_the_next_question_find_the_index_ready_until_the_document_is_forgotten() -> None:
    memory = ExtractiveMemory()
    index = index_of(YARD)
    first = memory.index(Scope((index,)), TOKENIZER)
    assert memory.index(Scope((index_of(YARD),)), TOKENIZER) is first
    assert memory.index(Scope((index_of(YARD + "More."),)), TOKENIZER) is not first
    memory.forget("yard")
    assert memory.index(Scope((index,)), TOKENIZER) is not first


@pytest.mark.parametrize("question", ["", "?", "the of and", "\u200b", "🦀"])
def test_a_question_without_words_finds_nothing_and_breaks_nothing(question: str) -> None:
    assert ask(Scope((index_of(YARD),)), question).abstained
