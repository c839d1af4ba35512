from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_samples import Texts, card_for, groups_of, put_cards, put_memories, regions_of, save

from hmars.errors import ConfigError, NotFoundError
from hmars.model import SourceText
from hmars.store import Store, card_key

BOOK: Texts = (("One tide came. ", "Mira saw it. "), ("Two ships left. ",), ("Three bells. ",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "memory.hmars", clock=lambda: "2026-01-02T03:04:05+00:00") as opened:
        yield opened


def test_a_document_reads_back_as_it_was_saved(store: Store) -> None:
    document = save(store, BOOK)
    put_cards(store, document)
    put_memories(store, document)
    index = store.load_index("default", document.id)
    expected = [replace(region, document=document.id) for region in regions_of(BOOK)]
    assert list(index.regions) == expected
    assert list(index.groups) == groups_of(expected)
    assert index.cards == {region.index: card_for(region) for region in expected}
    assert sorted(index.memories) == [1, 2]
    assert index.document == store.document("default", document.id)
    assert index.document.complete
    assert index.document.warnings == ("read as latin-1",)
    assert store.document_settings("default", document.id) == {"page_tokens": 8}


@given(st.lists(st.lists(st.text(min_size=1), min_size=1, max_size=3), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_keeps_its_offsets(store: Store, texts: list[list[str]]) -> None:
    encodable = [[text.encode("utf-8", "replace").decode() for text in page] for page in texts]
    document = save(store, encodable)
    index = store.load_index("default", document.id)
    whole = "".join("".join(region) for region in encodable)
    assert "".join(page.text for page in index.pages) == whole
    assert all(whole[page.start : page.end] == page.text for page in index.pages)
    assert store.pages("default", document.id) == list(index.pages)


def test_nul_and_odd_file_names_survive(store: Store) -> None:
    document = save(store, (("a\0b",),), title="nul\0title", source="/odd/\udcff.txt")
    assert store.document("default", "/odd/\udcff.txt") == document
    assert document.title == "nul\0title"
    assert store.pages("default", document.id)[0].text == "a\0b"


def test_the_id_is_readable_and_stays_when_the_title_changes(store: Store) -> None:
    first = save(store, BOOK, title="War & Peace: Book 1")
    assert first.id.startswith("war-peace-book-1-")
    again = save(store, BOOK, title="Peace")
    assert (again.id, again.title) == (first.id, "Peace")


@pytest.mark.parametrize(
    ("title", "slug"),
    [("西遊記", "西遊記"), ("…", "document"), ("हिन्दी पाठ", "हिन्दी-पाठ"), ("x" * 90, "x" * 40)],
)
def test_titles_of_any_script_make_an_id(store: Store, title: str, slug: str) -> None:
    assert save(store, BOOK, title=title).id.rpartition("-")[0] == slug


def test_equal_file_names_and_equal_content_are_two_documents(store: Store) -> None:
    one = save(store, BOOK, source="/a/notes.txt", title="notes")
    two = save(store, BOOK, source="/b/notes.txt", title="notes")
    assert one.id != two.id
    assert {document.source for document in store.documents("default")} == {one.source, two.source}


def test_saving_the_same_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    first = save(store, BOOK)
    put_cards(store, first)
    store.put_reply("default", "k", "{}", [first.id])
    with Store.open(tmp_path / "memory.hmars", clock=lambda: "2027-01-01T00:00:00+00:00") as later:
        again = save(later, BOOK)
    assert (again.updated, again.version) == (first.updated, 1)
    assert again.complete
    assert store.get_reply("default", "k") == "{}"


def test_an_edit_replaces_the_text_and_keeps_what_still_holds(store: Store) -> None:
    first = save(store, BOOK)
    put_cards(store, first)
    put_memories(store, first)
    store.put_reply("default", "k", "{}", [first.id])
    new: Texts = (("A new start. ",), *BOOK[:2], ("Four bells. ",))
    second = save(store, new)
    index = store.load_index("default", second.id)
    assert (second.id, second.version) == (first.id, 2)
    assert [region.text for region in index.regions] == ["".join(texts) for texts in new]
    assert sorted(index.cards) == [2, 3]
    assert second.cards_missing == 2
    assert index.memories == {}
    gone = regions_of(BOOK)[2]
    assert store.cards("default", [card_key("tester@1", gone.key)]) == {}
    assert store.get_reply("default", "k") is None


def test_an_appended_region_leaves_full_groups_their_memory(store: Store) -> None:
    put_memories(store, save(store, BOOK))
    grown = save(store, (*BOOK, ("Four gulls. ",)))
    assert sorted(store.load_index("default", grown.id).memories) == [1]


def test_labels_and_token_counts_follow_while_cards_stay(store: Store) -> None:
    document = save(store, BOOK, label="p.")
    put_cards(store, document)
    again = save(store, BOOK, label="page")
    index = store.load_index("default", again.id)
    assert [page.label for page in index.pages] == [f"page {n}" for n in range(1, 5)]
    assert (again.complete, again.version) == (True, 1)


def test_equal_regions_in_one_document_share_a_card(store: Store) -> None:
    document = save(store, (("Same. ",), ("Same. ",)))
    region = store.load_index("default", document.id).regions[0]
    store.put_card("default", document.id, region, card_key("a", region.key), card_for(region))
    assert sorted(store.load_index("default", document.id).cards) == [1, 2]


def test_blank_regions_never_count_as_missing(store: Store) -> None:
    document = save(store, (("Text. ",), ("  \n",)))
    put_cards(store, document)
    assert store.document("default", document.id).complete


def test_pages_are_read_by_number(store: Store) -> None:
    document = save(store, BOOK)
    assert [page.index for page in store.pages("default", document.id, 2, 3)] == [2, 3]
    assert [page.index for page in store.pages("default", document.id, 4, 99)] == [4]
    assert store.pages("default", document.id, 5) == []
    everything = store.load_index("default", document.id).pages
    assert store.pages("default", document.id, 2, 2) == [everything[1]]


def test_a_document_is_found_by_id_source_title_or_start_of_the_id(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = save(store, BOOK, source=str(tmp_path / "harbour.txt"))
    monkeypatch.chdir(tmp_path)
    for ref in (document.id, document.source, "harbour.txt", "The Harbour", document.id[:5]):
        assert store.document("default", ref) == document


def test_what_is_not_found_is_told_with_what_is_there(store: Store) -> None:
    with pytest.raises(NotFoundError, match="it has none yet"):
        store.document("default", "x")
    for number in range(7):
        save(store, BOOK, source=f"/{number}", title=f"Book {number}")
    with pytest.raises(NotFoundError, match=r"there: book-0-\w+, .* and 2 more"):
        store.document("default", "x")
    with pytest.raises(NotFoundError, match="several documents"):
        store.document("default", "book")
    with pytest.raises(NotFoundError):
        store.document("default", "%")
    with pytest.raises(NotFoundError):
        store.document("default", "")


def test_a_namespace_sees_only_itself(store: Store) -> None:
    mine = save(store, BOOK, namespace="mine")
    theirs = save(store, BOOK, namespace="theirs")
    put_cards(store, mine)
    assert mine.id != theirs.id
    assert store.namespaces() == ["mine", "theirs"]
    assert [document.id for document in store.documents("mine")] == [mine.id]
    assert store.load_index("theirs", theirs.id).cards == {}
    region = store.load_index("theirs", theirs.id).regions[0]
    wanted = [(region, card_key("tester@1", region.key))]
    assert store.reuse_cards("theirs", theirs.id, wanted) == {}
    for act in (store.document, store.load_index, store.forget, store.pages):
        with pytest.raises(NotFoundError):
            act("theirs", mine.id)
    with pytest.raises(NotFoundError):
        put_cards(store, replace(mine, namespace="theirs"))
    assert not store.put_reply("theirs", "k", "{}", [mine.id])


def test_a_namespace_needs_a_name(store: Store) -> None:
    for namespace in ("", " ", "a\nb"):
        with pytest.raises(ConfigError):
            save(store, BOOK, namespace=namespace)


def test_a_partition_that_does_not_tile_the_text_is_refused(store: Store) -> None:
    regions = regions_of(BOOK)
    source = SourceText("".join(region.text for region in regions) + "x", "/s", "t")
    with pytest.raises(ValueError, match="pages end at"):
        store.save_document(
            "default", source, regions, [], tokenizer="words", tokens=9, settings={}
        )
    assert store.documents("default") == []
