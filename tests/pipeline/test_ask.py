"""One question through the whole query pipeline, with agents by function."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hmars.errors import CallFailed, EndpointError
from hmars.model import Answer, Group, Region
from hmars.query.agents import (
    Broadcast,
    Draft,
    EvidenceBlock,
    Quote,
    RegionSelection,
    Scope,
    SelectedPage,
)
from hmars.query.pipeline import NOT_IN_DOCUMENT, NOTHING_INDEXED, AskSettings, ask
from hmars.tokens import WordTokenizer
from tests.support import FakeAgents, make_index, scope_of, select_all_pages, select_nothing

SETTINGS = AskSettings(max_evidence_tokens=1_000, workers=4)
FORTY = make_index([[f"Region {n} says number {n}.\n"] for n in range(1, 41)])


async def run(
    agents: FakeAgents, scope: Scope | None = None, settings: AskSettings = SETTINGS
) -> Answer:
    return await ask(
        "Which number?",
        scope_of(FORTY) if scope is None else scope,
        agents.agents(),
        settings,
        WordTokenizer(),
    )


async def test_every_region_is_asked_and_the_answer_is_cited() -> None:
    agents = FakeAgents(lambda r: select_all_pages(r) if r.index == 7 else select_nothing(r))
    answer = await run(agents)
    assert sorted(agents.guided) == list(range(1, 41))
    assert (answer.ledger.regions, answer.ledger.selected, answer.ledger.abstained) == (40, 1, 39)
    assert answer.ledger.ok
    assert [citation.quote for citation in answer.citations] == ["Region 7 says number 7."]
    assert [(span.page, span.confidence) for span in answer.evidence] == [(7, 0.9)]


async def test_evidence_is_in_the_order_of_the_text_however_confident() -> None:
    def select(region: Region) -> RegionSelection:
        return RegionSelection((SelectedPage(region.pages[0], region.index / 40),))

    answer = await run(FakeAgents(select))
    starts = [span.start for span in answer.evidence]
    assert starts == sorted(starts)
    assert len(starts) == 40


async def test_failed_and_cut_regions_are_named_and_the_answer_comes_all_the_same() -> None:
    problems = {3: "timeout", 17: "invalid_reply", 31: "length"}

    def select(region: Region) -> RegionSelection:
        if region.index in problems:
            raise CallFailed(
                f"Region {region.index} broke.",
                problem=problems[region.index],  # type: ignore[arg-type]
                role="select",
            )
        return select_all_pages(region)

    answer = await run(FakeAgents(select))
    ledger = answer.ledger
    assert (ledger.selected, ledger.failed, ledger.truncated) == (37, 2, 1)
    assert [(f.region, f.problem) for f in ledger.failures] == sorted(problems.items())
    assert not ledger.ok
    assert "3 of 40 regions could not be read (2 failed, 1 truncated)" in answer.answer
    assert not answer.abstained and answer.citations


async def test_a_total_failure_of_selection_does_not_read_as_an_empty_document() -> None:
    def select(region: Region) -> RegionSelection:
        raise CallFailed("No reply.", problem="server", role="select")

    answer = await run(FakeAgents(select))
    assert answer.abstained
    assert answer.ledger.failed == 40
    assert answer.answer.startswith("The answer is not in what could be read.")
    assert "40 of 40 regions could not be read" in answer.answer
    assert not answer.ledger.ok


async def test_a_failed_broadcast_leaves_no_region_out_and_is_in_the_ledger() -> None:
    def broadcast(group: Group) -> Broadcast:
        if group.index == 2:
            raise CallFailed("No reply.", problem="timeout", role="broadcast")
        return Broadcast("understood", {1: "look here"})

    agents = FakeAgents(select_all_pages, broadcast_with=broadcast)
    answer = await run(agents)
    assert answer.ledger.selected == 40
    assert [(f.stage, f.group) for f in answer.ledger.failures] == [("broadcast", 2)]
    assert agents.guided[1].hint == "look here"
    assert agents.guided[2].hint == "understood"
    assert agents.guided[15].hint == "Which number?"


async def test_an_endpoint_that_cannot_serve_anything_ends_the_question() -> None:
    def select(region: Region) -> RegionSelection:
        raise EndpointError("Wrong key.", problem="auth", role="select")

    with pytest.raises(EndpointError, match="Wrong key"):
        await run(FakeAgents(select))


async def test_without_evidence_the_answer_model_is_not_asked() -> None:
    agents = FakeAgents(select_nothing)
    answer = await run(agents)
    assert answer.abstained and answer.answer == NOT_IN_DOCUMENT
    assert answer.citations == () and answer.evidence == ()
    assert agents.answered == []


async def test_an_empty_memory_says_so_and_raises_nothing() -> None:
    answer = await run(FakeAgents(select_nothing), Scope(()))
    assert answer.abstained and answer.answer == NOTHING_INDEXED
    assert answer.ledger.regions == 0 and answer.ledger.ok


async def test_a_failed_answer_call_is_an_error_and_not_an_abstention() -> None:
    def draft(evidence: Sequence[EvidenceBlock]) -> Draft:
        raise CallFailed("No reply.", problem="timeout", role="answer")

    with pytest.raises(CallFailed):
        await run(FakeAgents(select_all_pages, draft))


async def test_an_answer_whose_quotations_are_all_invented_says_so() -> None:
    def draft(evidence: Sequence[EvidenceBlock]) -> Draft:
        return Draft("It is 99 [1].", False, (Quote(1, "It is surely ninety nine"),))

    answer = await run(FakeAgents(select_all_pages, draft))
    assert answer.citations == ()
    assert answer.ledger.rejected_quotes == 1
    assert "no quotation in support of this answer could be verified" in answer.answer
    assert "[1]" not in answer.answer


async def test_an_abstention_of_the_answer_model_carries_no_citations() -> None:
    agents = FakeAgents(select_all_pages, lambda evidence: Draft("Not stated.", True))
    answer = await run(agents)
    assert answer.abstained and answer.citations == () and answer.answer == "Not stated."


async def test_a_blank_region_abstains_without_being_asked() -> None:
    agents = FakeAgents(select_all_pages)
    answer = await run(agents, scope_of(make_index([["text.\n"], [" \n\u200b\u00a0"]])))
    assert sorted(agents.guided) == [1]
    assert (answer.ledger.selected, answer.ledger.abstained) == (1, 1)


async def test_a_short_document_is_read_whole_and_the_ledger_says_so() -> None:
    agents = FakeAgents(select_nothing)
    answer = await run(agents, settings=AskSettings(1_000, read_all_below=500))
    assert agents.guided == {}
    assert answer.ledger.read_whole and answer.ledger.selected == 40
    assert len({span.page for span in answer.evidence}) == 40


async def test_evidence_that_does_not_fit_is_left_out_from_the_least_confident() -> None:
    def select(region: Region) -> RegionSelection:
        return RegionSelection((SelectedPage(region.pages[0], region.index / 40),))

    answer = await run(FakeAgents(select), settings=AskSettings(max_evidence_tokens=60))
    assert answer.ledger.pages_left_out > 0
    assert sum(span.tokens for span in answer.evidence) <= 60
    assert max(span.page for span in answer.evidence) == 40
    assert min(span.page for span in answer.evidence) > 20


async def test_several_documents_are_asked_together_and_cited_by_their_own_offsets() -> None:
    left = make_index([["Alpha rents the mill.\n"]], document="left")
    right = make_index([["Beta owns the mill.\n"]], document="right")

    def draft(evidence: Sequence[EvidenceBlock]) -> Draft:
        quotes = tuple(Quote(block.number, block.text.strip()) for block in evidence)
        return Draft("Alpha rents [1], Beta owns [2].", False, quotes)

    answer = await run(FakeAgents(select_all_pages, draft), scope_of(left, right))
    assert [(c.document, c.start, c.quote) for c in answer.citations] == [
        ("left", 0, "Alpha rents the mill."),
        ("right", 0, "Beta owns the mill."),
    ]


async def test_all_regions_are_under_way_at_once_when_there_are_workers_enough() -> None:
    waiting = 0
    all_here = asyncio.Event()

    class Meeting(FakeAgents):
        async def select(self, question, region, card, guidance):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            nonlocal waiting
            waiting += 1
            if waiting == 40:
                all_here.set()
            async with asyncio.timeout(5):
                await all_here.wait()
            return select_all_pages(region)

    answer = await run(Meeting(select_all_pages), settings=AskSettings(1_000, workers=40))
    assert answer.ledger.selected == 40
