from __future__ import annotations

from hmars.graph import CAPS, across_groups, candidates, entity_graph
from hmars.model import Document, DocumentIndex, Group, MemoryCard, PageGist


def card(*entities: str, gists: tuple[str, ...] = ()) -> MemoryCard:
    return MemoryCard(
        summary="",
        entities=entities,
        page_index=tuple(PageGist(page=n, gist=gist) for n, gist in enumerate(gists, start=1)),
        author="test",
    )


def index_of(cards: list[MemoryCard], groups: list[tuple[int, ...]]) -> DocumentIndex:
    document = Document(
        id="doc", namespace="default", title="Doc", source="doc", kind="text", content_hash="",
        characters=0, tokens=0, pages=0, regions=len(cards), groups=len(groups),
        tokenizer="words/1", updated="",
    )  # fmt: skip
    return DocumentIndex(
        document,
        (),
        tuple(Group(number, regions) for number, regions in enumerate(groups, start=1)),
        dict(enumerate(cards, start=1)),
    )


def test_spellings_of_one_name_meet_in_one_node_shown_as_the_text_spells_it() -> None:
    graph = entity_graph(
        {1: card("Zoë Brandt"), 2: card("ZOE\u0308  BRANDT"), 3: card("Zoë Brandt")}
    )
    entities = [data["name"] for _, data in graph.nodes(data=True) if data["kind"] == "entity"]
    assert entities == ["Zoë Brandt"]
    assert sorted(
        number for _, number in graph[("entity", next(n for k, n in graph if k == "entity"))]
    ) == [1, 2, 3]


def test_a_shared_entity_suggests_a_reference_with_numbers_of_the_group() -> None:
    (found,) = candidates([card("Orla Venn"), card("crane"), card("orla venn"), card(), card()])
    assert (found.kind, found.regions) == ("shared_entity", (1, 3))
    assert found.subject in ("Orla Venn", "orla venn")


def test_an_entity_of_nearly_every_region_links_nothing() -> None:
    assert candidates([card("Harbour") for _ in range(10)]) == []


def test_the_rarer_entity_comes_first_and_each_kind_is_capped() -> None:
    many = [f"Berth {chr(65 + n)}x" for n in range(20)]
    cards = [
        card(*many, "Harbour"),
        card(*many, "Harbour"),
        card("Harbour"),
        card(),
        card(),
        card(),
    ]
    found = candidates(cards)
    assert len(found) == CAPS["shared_entity"]
    assert "Harbour" not in [reference.subject for reference in found]


def test_an_amount_in_several_regions_is_a_repeated_constraint_and_a_bare_number_is_nothing() -> (
    None
):
    cards = [card("30 days", "7"), card("30 days", "7"), card(), card()]
    (found,) = candidates(cards)
    assert (found.kind, found.subject, found.regions) == ("repeated_constraint", "30 days", (1, 2))


def test_the_same_statement_with_another_number_is_a_temporal_update() -> None:
    cards = [
        card(gists=("The harbour fee for fishing boats is 30 crowns.",)),
        card(gists=("A new crane arrived at the northern quay in spring.",)),
        card(gists=("The harbour fee for fishing boats is 45 crowns.",)),
    ]
    (found,) = candidates(cards)
    assert (found.kind, found.regions, found.note) == ("temporal_update", (1, 3), "30 → 45")
    assert found.subject.startswith("The harbour fee")


def test_statements_on_other_things_and_unchanged_ones_are_no_update() -> None:
    cards = [
        card(gists=("The harbour fee for fishing boats is 30 crowns.",)),
        card(gists=("The harbour fee for fishing boats is 30 crowns.",)),
        card(gists=("The school fee for evening classes is 45 crowns.",)),
    ]
    assert candidates(cards) == []


def test_references_across_groups_carry_document_numbers_and_span_two_groups() -> None:
    index = index_of(
        [card("Orla Venn", "Quay Nine"), card("Quay Nine"), card(), card("Orla Venn"), card()],
        [(1, 2), (3, 4, 5)],
    )
    (found,) = across_groups(index)
    assert (found.subject, found.regions) == ("Orla Venn", (1, 4))


def test_a_document_without_cards_has_no_references() -> None:
    assert across_groups(index_of([], [])) == []
    assert candidates([]) == []
