from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmars.indexing.partition import partition
from hmars.model import Document, DocumentIndex, SourceText
from hmars.query.agents import RegionSelection, Scope, SelectedPage
from hmars.query.evidence import assemble
from hmars.settings import PartitionSettings
from hmars.tokens import WordTokenizer

TOKENIZER = WordTokenizer()


def index_of(text: str, name: str = "doc", *, page: int = 24, snap: bool = True) -> DocumentIndex:
    source = SourceText(text=text, source=name, title=f"Title of {name}")
    sizes = PartitionSettings(
        page_tokens=page, region_tokens=page * 3, snap="structure" if snap else "none"
    )
    parts = partition(source, TOKENIZER, sizes, name)
    document = Document(
        id=name,
        namespace="default",
        title=source.title,
        source=name,
        kind="text",
        content_hash=name,
        characters=len(text),
        tokens=parts.tokens,
        pages=sum(len(region.pages) for region in parts.regions),
        regions=len(parts.regions),
        groups=len(parts.groups),
        tokenizer=TOKENIZER.identity,
        updated="2026-01-01T00:00:00Z",
    )
    return DocumentIndex(document, parts.regions, parts.groups)


TEXT = "".join(
    f"Lamp {number} stands on pier {number % 7} and is lit at dusk. " for number in range(90)
)


def choose(
    index: DocumentIndex, chosen: dict[int, SelectedPage]
) -> dict[tuple[str, int], RegionSelection]:
    return {
        (index.document.id, region.index): RegionSelection(
            pages=tuple(chosen[page.index] for page in region.pages if page.index in chosen)
        )
        for region in index.regions
    }


def whole(index: DocumentIndex, confidences: dict[int, float]) -> dict[int, SelectedPage]:
    return {number: SelectedPage(index.pages[number - 1], c) for number, c in confidences.items()}


def test_everything_selected_goes_in_whole_and_in_order_while_it_fits() -> None:
    index = index_of(TEXT)
    picked = choose(index, whole(index, {9: 0.9, 2: 0.1, 5: 0.5}))
    evidence = assemble(Scope((index,)), picked, 10_000, TOKENIZER)
    assert [span.page for span in evidence.spans] == [2, 5, 9]
    assert [block.text for block in evidence.blocks] == [index.pages[n - 1].text for n in (2, 5, 9)]
    assert [block.number for block in evidence.blocks] == [1, 2, 3]
    assert evidence.left_out == 0


def test_adjacent_pages_share_one_header() -> None:
    index = index_of(TEXT.replace(". ", ".\n"))
    picked = choose(index, whole(index, {4: 0.3, 5: 0.9}))
    (block,) = assemble(Scope((index,)), picked, 10_000, TOKENIZER).blocks
    assert block.pages == (4, 5)
    assert block.text == index.pages[3].text + index.pages[4].text
    assert block.confidence == 0.9
    assert block.label == f"{index.pages[3].label} – {index.pages[4].label}"


def test_adjacent_pages_of_different_dates_keep_their_own_headers() -> None:
    base = index_of(TEXT)
    region = base.regions[0]
    first, second = (
        replace(page, context=date)
        for page, date in zip(region.pages, ("May", "June"), strict=False)
    )
    index = replace(base, regions=(replace(region, pages=(first, second)),), groups=base.groups[:1])
    picked = choose(index, whole(index, {1: 1.0, 2: 1.0}))
    blocks = assemble(Scope((index,)), picked, 10_000, TOKENIZER).blocks
    assert [block.context for block in blocks] == ["May", "June"]


def test_the_least_confident_are_left_out_first_and_counted() -> None:
    index = index_of(TEXT)
    picked = choose(index, whole(index, {2: 0.2, 5: 0.9, 9: 0.8, 12: 0.1}))
    budget = index.pages[4].tokens + index.pages[8].tokens
    evidence = assemble(Scope((index,)), picked, budget, TOKENIZER)
    assert [span.page for span in evidence.spans] == [5, 9]
    assert evidence.left_out == 2


def test_a_page_larger_than_the_budget_gives_its_first_sentences() -> None:
    index = index_of(TEXT, page=400)
    picked = choose(index, whole(index, {1: 1.0}))
    evidence = assemble(Scope((index,)), picked, 60, TOKENIZER)
    (block,) = evidence.blocks
    assert 0 < block.tokens <= 60
    assert block.text.endswith("dusk. ")
    assert evidence.left_out == 0


def test_pages_are_cut_to_their_best_passages_when_the_budget_is_short() -> None:
    index = index_of(TEXT, page=400)
    page = index.pages[0]
    at = page.text.index("Lamp 5 ")
    best = (at, page.text.index("Lamp 6 "))
    chosen = SelectedPage(page, 0.9, passages=(best,), weights=(0.9,))
    evidence = assemble(Scope((index,)), choose(index, {1: chosen}), 20, TOKENIZER)
    (span,) = evidence.spans
    assert (span.start, span.end) == best


def test_passages_without_weights_count_less_one_after_the_other() -> None:
    index = index_of(TEXT, page=400)
    page = index.pages[0]
    cuts = [page.text.index(f"Lamp {number} ") for number in (3, 4, 5)]
    first, second = (cuts[1], cuts[2]), (cuts[0], cuts[1])
    chosen = SelectedPage(page, 0.9, passages=(first, second))
    evidence = assemble(Scope((index,)), choose(index, {1: chosen}), 20, TOKENIZER)
    assert [(span.start, span.end) for span in evidence.spans] == [first]


def test_a_sentence_cut_by_the_edge_of_its_page_is_finished() -> None:
    index = index_of(TEXT, snap=False)
    at = next(
        page.index
        for page in index.pages[1:-1]
        if page.text.rstrip()[-1] not in "." and page.index > 2
    )
    picked = choose(index, whole(index, {at: 1.0}))
    (block,) = assemble(Scope((index,)), picked, 10_000, TOKENIZER).blocks
    assert at in block.pages and at + 1 in block.pages
    assert block.text.rstrip().endswith("dusk.")
    spans = assemble(Scope((index,)), picked, 10_000, TOKENIZER).spans
    assert "".join(TEXT[span.start : span.end] for span in spans) == block.text


def test_a_page_selected_twice_counts_once_with_the_higher_confidence() -> None:
    index = index_of(TEXT)
    page = index.pages[0]
    picked = {("doc", 1): RegionSelection(pages=(SelectedPage(page, 0.2), SelectedPage(page, 0.7)))}
    (span,) = assemble(Scope((index,)), picked, 10_000, TOKENIZER).spans
    assert span.confidence == 0.7


def test_documents_keep_the_order_of_the_scope() -> None:
    first, second = index_of(TEXT, "b"), index_of(TEXT, "a")
    picked = choose(first, whole(first, {3: 0.1})) | choose(second, whole(second, {1: 0.9}))
    evidence = assemble(Scope((first, second)), picked, 10_000, TOKENIZER)
    assert [block.document for block in evidence.blocks] == ["b", "a"]
    assert evidence.blocks[0].title == "Title of b"


def test_nothing_selected_is_no_evidence() -> None:
    index = index_of(TEXT)
    evidence = assemble(Scope((index,)), {}, 100, TOKENIZER)
    assert (evidence.blocks, evidence.spans, evidence.left_out) == ((), (), 0)


class Joining(WordTokenizer):
    """Counts one more for each text of more than 30 tokens: joined text costs extra."""

    def count(self, text: str) -> int:
        tokens = super().count(text)
        return tokens + (tokens > 30)


@pytest.mark.parametrize("tokenizer", [TOKENIZER, Joining()])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_evidence_lies_in_what_was_selected_in_order_without_overlap_within_budget(
    tokenizer: WordTokenizer, data: st.DataObject
) -> None:
    index = index_of(TEXT)
    numbers = data.draw(st.sets(st.integers(1, len(index.pages)), max_size=12))
    chosen: dict[int, SelectedPage] = {}
    for number in numbers:
        page = index.pages[number - 1]
        cut = data.draw(st.integers(page.start, page.end))
        parts = tuple(p for p in ((cut, page.end), (page.start, cut)) if p[0] < p[1])
        passages = data.draw(st.sampled_from([(), parts]))
        chosen[number] = SelectedPage(page, data.draw(st.floats(0.01, 1.0)), passages=passages)
    budget = data.draw(st.integers(1, 500))
    evidence = assemble(Scope((index,)), choose(index, chosen), budget, tokenizer)

    assert sum(block.tokens for block in evidence.blocks) <= budget
    assert sum(span.tokens for span in evidence.spans) <= budget
    ends = 0
    for span in evidence.spans:
        page = index.pages[span.page - 1]
        assert page.start <= span.start < span.end <= page.end
        assert span.start >= ends
        ends = span.end
    near = {n + step for n in numbers for step in (-1, 0, 1)}
    assert {span.page for span in evidence.spans} <= near
    for block in evidence.blocks:
        assert block.text == TEXT[block.start : block.end]
        assert block.tokens == tokenizer.count(block.text)
    assert "".join(block.text for block in evidence.blocks) == "".join(
        TEXT[span.start : span.end] for span in evidence.spans
    )
    shown = {span.page for span in evidence.spans}
    assert evidence.left_out == len(numbers - shown)
