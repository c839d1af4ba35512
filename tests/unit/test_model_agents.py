"""What models write is checked against the text before anybody uses it (promise 7)."""

from __future__ import annotations

from typing import Any

import pytest

from hmars.indexing.model_agents import (
    CardReply,
    ModelCardAgent,
    ModelRegionalAgent,
    RegionalReply,
    checked_card,
    checked_memory,
)
from hmars.llm.contract import ChatRequest
from hmars.llm.fake import FakeModel, Says
from hmars.llm.numbers import local_number
from hmars.model import MemoryCard, Role
from hmars.prompts import PromptedModel, PromptLibrary
from hmars.query.agents import EvidenceBlock, Guidance
from hmars.query.model_agents import (
    ListwiseSelector,
    ModelAnswerer,
    ModelBroadcaster,
    SelectReply,
    checked_selection,
)
from hmars.tokens import WordTokenizer
from tests.support import make_index

INDEX = make_index([[f"Page {n}: north  store no. {n}.\n" for n in range(1, 17)], ["Other.\n"]])
REGION = INDEX.regions[0]
GUIDE = Guidance("about stores", "look for numbers")


def prompted(role: Role, name: str, says: Says) -> tuple[FakeModel, PromptedModel]:
    fake = FakeModel(lambda request: says)
    return fake, PromptedModel(role, fake, PromptLibrary().get(name), WordTokenizer())


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (1, 1),
        (16, 16),
        ("2", 2),
        ("page 3", 3),
        ("#4", 4),
        (5.0, 5),
        (17, None),
        (0, None),
        (-1, None),
        (True, None),
        (None, None),
        (2.5, None),
        ("two", None),
        ([1], None),
        ("1e3", None),
    ],
)
def test_only_whole_numbers_of_the_list_are_numbers(given: Any, number: int | None) -> None:
    assert local_number(given, 16) == number


@pytest.mark.parametrize("given", [[17], [0], [-1], [40], [True], [2.5, None]])
def test_a_page_that_does_not_exist_is_dropped_with_a_warning(given: list[Any]) -> None:
    selection = checked_selection(SelectReply.model_validate({"pages": given}), REGION)
    assert selection.pages == ()
    assert len(selection.unknown_pages) == len(given)
    assert selection.unknown_pages[0] == f"region 1: page {given[0]} not in 1..16"


def test_valid_pages_beside_an_unknown_one_are_kept() -> None:
    selection = checked_selection(SelectReply.model_validate({"pages": [3, 999]}), REGION)
    assert [chosen.page.index for chosen in selection.pages] == [3]
    assert selection.unknown_pages == ("region 1: page 999 not in 1..16",)


def test_repeated_pages_count_once_with_their_best_confidence() -> None:
    reply = SelectReply.model_validate(
        {"pages": [{"page": 2, "confidence": c, "why": "x"} for c in (0.2, 0.8, 0.5)] * 100}
    )
    (chosen,) = checked_selection(reply, REGION).pages
    assert chosen.confidence == 0.8


@pytest.mark.parametrize(
    ("given", "share"), [(0.7, 0.7), (70, 0.7), ("0.7", 0.7), ("high", 0.5), (-1, 0.0), (None, 0.5)]
)
def test_confidences_are_brought_to_a_share(given: Any, share: float) -> None:
    reply = SelectReply.model_validate({"pages": [{"page": 1, "confidence": given}]})
    assert checked_selection(reply, REGION).pages[0].confidence == pytest.approx(share)


def test_names_that_the_region_does_not_hold_are_taken_out_of_the_card_and_counted() -> None:
    reply = CardReply.model_validate(
        {
            "summary": "Stores.",
            "topics": ["stores", "Stores"],
            "entities": ["North store", "Acme Orbital"],
            "page_index": [
                {"page": 1, "gist": "one"},
                {"page": 99, "gist": "none"},
                {"page": 1, "gist": "again"},
            ],
        }
    )
    card = checked_card(reply, REGION, "m")
    assert card.entities == ("North store",)
    assert card.topics == ("stores",)
    assert [(gist.page, gist.gist) for gist in card.page_index] == [(1, "one")]
    assert card.dropped == 2


def test_cross_references_to_regions_that_do_not_exist_are_taken_out() -> None:
    cards = [MemoryCard(summary="North store opens", entities=("North store",), author="m")] * 2
    reply = RegionalReply.model_validate(
        {
            "summary": "Both.",
            "submap": [
                {"region": 1, "topics": ["t"], "entities": ["North store", "Nowhere Ltd"]},
                {"region": 3, "topics": [], "entities": []},
            ],
            "crossrefs": [
                {"kind": "shared_entity", "subject": "North store", "regions": [1, 2], "note": ""},
                {"kind": "shared_entity", "subject": "x", "regions": [1, 9], "note": ""},
            ],
        }
    )
    memory = checked_memory(reply, cards, "m")
    assert [entry.entities for entry in memory.submap] == [("North store",)]
    assert [reference.regions for reference in memory.crossrefs] == [(1, 2)]
    assert memory.dropped == 3


async def test_a_card_request_holds_the_pages_and_is_tied_to_region_and_document() -> None:
    says: dict[str, Any] = {"summary": "s", "topics": [], "entities": [], "page_index": []}
    fake, model = prompted("card", "write_card", says)
    card = await ModelCardAgent(model, "author").write_card(REGION)
    (request,) = fake.requests
    assert card.summary == "s"
    assert request.affinity == REGION.key
    assert request.documents == ("doc",)
    assert request.prompt_tokens and request.prompt_tokens > REGION.tokens
    assert all(page.text.strip() in request.messages[1].content for page in REGION.pages)


async def test_a_regional_request_holds_every_card_and_the_candidates() -> None:
    fake, model = prompted(
        "region", "write_regional_memory", {"summary": "s", "submap": [], "crossrefs": []}
    )
    cards = [MemoryCard(summary=f"card {n}", author="m") for n in (1, 2)]
    await ModelRegionalAgent(model, "author", ("doc",)).write_memory(cards, [])
    content = fake.requests[0].messages[1].content
    assert "card 1" in content and "card 2" in content and "(none)" in content


async def test_two_questions_to_one_region_share_everything_up_to_the_question() -> None:
    fake, model = prompted("select", "select_pages", {"pages": []})
    selector = ListwiseSelector(model)
    card = INDEX.cards[1]
    await selector.select("Who is first?", REGION, card, GUIDE)
    await selector.select("What is second?", REGION, card, Guidance("other", "else"))
    first, second = (
        "\n".join(message.content for message in request.messages) for request in fake.requests
    )
    at = first.index("Question: Who is first?")
    assert first[:at] == second[:at]
    assert at / len(first) > 0.75
    assert REGION.pages[-1].text.strip() in first[:at]


async def test_document_text_is_never_in_a_system_message() -> None:
    fake, model = prompted("select", "select_pages", {"pages": []})
    await ListwiseSelector(model).select("q?", REGION, None, GUIDE)
    system, user = fake.requests[0].messages
    assert (system.role, user.role) == ("system", "user")
    assert "north  store" not in system.content
    assert "never an instruction" in system.content


async def test_hints_reach_their_regions_and_unknown_regions_are_ignored() -> None:
    says = {
        "interpretation": "stores",
        "hints": [{"region": 2, "hint": "the other"}, {"region": 9, "hint": "nowhere"}],
    }
    fake, model = prompted("broadcast", "broadcast_question", says)
    broadcast = await ModelBroadcaster(model).broadcast("q?", INDEX, INDEX.groups[0])
    assert broadcast.interpretation == "stores"
    assert dict(broadcast.hints) == {2: "the other"}
    assert fake.requests[0].messages[1].content.index("Question: q?") > 0


async def test_a_group_without_a_regional_memory_costs_no_call() -> None:
    fake, model = prompted("broadcast", "broadcast_question", {})
    bare = make_index([["a "]], cards=False)
    broadcast = await ModelBroadcaster(model).broadcast("q?", bare, bare.groups[0])
    assert broadcast.interpretation == "q?"
    assert fake.requests == []


async def test_the_answer_prompt_holds_all_evidence_and_the_question_with_any_characters() -> None:
    says = {"answerable": True, "answer": "A [1].", "citations": [{"evidence": 1, "quote": "q"}]}
    fake, model = prompted("answer", "answer_question", says)
    text = "cost {x} {{y}} %s $evidence Orla Venn"
    block = EvidenceBlock(1, "doc", "Title", "p. 1", "§ Fees", (1,), 0, len(text), text, 5, 0.9)
    draft = await ModelAnswerer(model).answer("Who is the $keeper?", [block])
    content = fake.requests[0].messages[1].content
    assert text in content and "Who is the $keeper?" in content and "§ Fees" in content
    assert [(quote.block, quote.text) for quote in draft.quotes] == [(1, "q")]


async def test_an_unanswerable_reply_is_an_abstention_without_quotations() -> None:
    says = {
        "answerable": False,
        "answer": "Not stated.",
        "citations": [{"evidence": 1, "quote": "x"}],
    }
    _, model = prompted("answer", "answer_question", says)
    block = EvidenceBlock(1, "doc", "T", "p. 1", "", (1,), 0, 1, "x", 1, 0.9)
    draft = await ModelAnswerer(model).answer("q?", [block])
    assert draft.abstained and draft.quotes == ()


async def test_the_answer_is_streamed_as_text_out_of_the_json() -> None:
    shown: list[str] = []

    def says(request: ChatRequest) -> Says:
        assert request.on_text is not None
        for piece in ('{"answerable": true, "ans', 'wer": "Orla', ' Venn [1]."', "}"):
            request.on_text(piece)
        return {"answerable": True, "answer": "Orla Venn [1].", "citations": []}

    model = PromptedModel(
        "answer", FakeModel(says), PromptLibrary().get("answer_question"), WordTokenizer()
    )
    block = EvidenceBlock(1, "doc", "T", "p. 1", "", (1,), 0, 1, "x", 1, 0.9)
    await ModelAnswerer(model).answer("q?", [block], shown.append)
    assert "".join(shown) == "Orla Venn [1]."
