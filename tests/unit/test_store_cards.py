from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_samples import card_for, memory_for, put_cards, put_memories, save

from hmars.errors import NotFoundError
from hmars.model import CallRecord, Usage
from hmars.store import Store, card_key, memory_key

BOOK = (("One tide came. ",), ("Two ships left. ",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "memory.hmars") as opened:
        yield opened


def test_cards_are_reused_for_equal_text_of_another_document(store: Store) -> None:
    put_cards(store, save(store, BOOK, source="/one"))
    second = save(store, (*BOOK, ("Three bells. ",)), source="/two")
    regions = store.load_index("default", second.id).regions
    wanted = [(region, card_key("tester@1", region.key)) for region in regions]
    assert sorted(store.reuse_cards("default", second.id, wanted)) == [1, 2]
    assert store.document("default", second.id).cards_missing == 1


def test_a_degraded_card_is_kept_but_unfinished_until_a_good_one_comes(store: Store) -> None:
    document = save(store, BOOK)
    put_cards(store, document)
    region = store.load_index("default", document.id).regions[0]
    key = card_key("other", region.key)
    bad = card_for(region, degraded="invalid_reply twice")

    fresh = save(store, BOOK, source="/fresh")
    store.put_card("default", fresh.id, region, key, bad)
    assert store.document("default", fresh.id).cards_degraded == 1
    assert store.reuse_cards("default", fresh.id, [(region, key)])[1].degraded
    store.put_card("default", fresh.id, region, key, card_for(region))
    assert store.document("default", fresh.id).cards_degraded == 0
    assert store.load_index("default", fresh.id).cards[1] == card_for(region)


def test_a_degraded_card_never_takes_the_place_of_a_good_one(store: Store) -> None:
    document = save(store, BOOK)
    put_cards(store, document)
    region = store.load_index("default", document.id).regions[0]
    bad = card_for(region, degraded="timeout")
    for key in (card_key("tester@1", region.key), card_key("other", region.key)):
        store.put_card("default", document.id, region, key, bad)
        store.reuse_cards("default", document.id, [(region, key)])
        assert store.load_index("default", document.id).cards[1] == card_for(region)
    assert store.document("default", document.id).complete


def test_another_author_replaces_the_card_and_the_first_one_is_not_lost(store: Store) -> None:
    document = save(store, BOOK)
    put_cards(store, document)
    put_cards(store, document, author="cheap")
    assert store.load_index("default", document.id).cards[1].author == "cheap"
    regions = store.load_index("default", document.id).regions
    wanted = [(region, card_key("tester@1", region.key)) for region in regions]
    assert len(store.reuse_cards("default", document.id, wanted)) == 2
    assert store.load_index("default", document.id).cards[1].author == "tester@1"


def test_a_card_for_text_that_is_gone_is_not_kept(store: Store) -> None:
    document = save(store, BOOK)
    region = store.load_index("default", document.id).regions[0]
    key = card_key("late", region.key)
    save(store, (("New tide. ",), BOOK[1]))
    with pytest.raises(NotFoundError, match="edited"):
        store.put_card("default", document.id, region, key, card_for(region))
    store.forget("default", document.id)
    with pytest.raises(NotFoundError, match="no document"):
        store.put_card("default", document.id, region, key, card_for(region))
    assert store.cards("default", [key]) == {}


def test_regional_memories_are_kept_by_group(store: Store) -> None:
    document = save(store, BOOK)
    put_memories(store, document)
    regions = store.load_index("default", document.id).regions
    key = memory_key("tester@1", [region.key for region in regions])
    assert store.reuse_memory("default", document.id, regions, key) == memory_for(regions)
    assert store.reuse_memory("default", document.id, regions, memory_key("x", [])) is None
    assert store.memories("default", [key, "absent"]) == {key: memory_for(regions)}
    other = (regions[1], regions[0])
    with pytest.raises(NotFoundError):
        store.put_memory("default", document.id, other, key, memory_for(other))


def test_many_keys_are_looked_up_at_once(store: Store) -> None:
    document = save(store, [[f"Bell {number}. "] for number in range(1100)])
    put_keys = store.load_index("default", document.id).regions[:3]
    for region in put_keys:
        store.put_card("default", document.id, region, card_key("a", region.key), card_for(region))
    regions = store.load_index("default", document.id).regions
    wanted = [(region, card_key("a", region.key)) for region in regions]
    assert sorted(store.reuse_cards("default", document.id, wanted)) == [1, 2, 3]
    assert len(store.cards("default", [key for _, key in wanted])) == 3


def test_keys_tell_parts_apart() -> None:
    assert card_key("ab", "c") != card_key("a", "bc")
    assert memory_key("a", ["x", "y"]) != memory_key("a", ["y", "x"])


def test_a_reply_goes_with_any_of_its_documents(store: Store) -> None:
    one = save(store, BOOK, source="/one")
    two = save(store, BOOK, source="/two")
    assert store.put_reply("default", "both", "from both", [one.id, two.id])
    assert store.put_reply("default", "two", "from two", [two.id])
    assert store.put_reply("default", "none", "of no document", [])
    assert store.put_reply("default", "none", "again", [])
    store.forget("default", one.id)
    assert store.get_reply("default", "both") is None
    assert store.get_reply("default", "two") == "from two"
    assert store.get_reply("default", "none") == "again"
    assert store.get_reply("other", "two") is None


def test_a_reply_that_comes_after_its_document_was_forgotten_is_not_kept(store: Store) -> None:
    document = save(store, BOOK)
    store.forget("default", document.id)
    assert not store.put_reply("default", "late", "text of it", [document.id])
    assert store.get_reply("default", "late") is None


def test_usage_is_summed_by_day_role_and_model(store: Store) -> None:
    def record(day: str, outcome: str = "ok", **paths: int) -> CallRecord:
        usage = Usage(calls=1, prompt_tokens=10, cached_tokens=4, paths=paths)
        return CallRecord(
            ts=f"{day}T10:00:00+00:00",
            role="card",
            model="small",
            prompt="write_card@1",
            usage=usage,
            seconds=0.5,
            outcome=outcome,
        )

    store.log_call("default", record("2026-01-01", repaired=1))
    store.log_call("default", record("2026-01-01", "timeout", repaired=1, fenced=2))
    store.log_call("default", record("2026-01-02"))
    store.log_call("other", record("2026-01-02"))
    first, second = store.usage_history("default")
    assert (first.day, first.role, first.model) == ("2026-01-01", "card", "small")
    assert (first.requests, first.failed, first.seconds) == (2, 1, 1.0)
    assert (first.usage.prompt_tokens, first.usage.cached_tokens) == (20, 8)
    assert first.usage.paths == {"fenced": 2, "repaired": 2}
    assert second.usage.paths == {}
    assert store.usage_history("default", since="2026-01-02") == [second]
