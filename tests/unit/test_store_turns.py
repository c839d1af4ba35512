"""Turns in the store: kept whole, written as a difference, gone with their document."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from store_samples import groups_of, put_cards, regions_of, save

from hmars.errors import ConfigError, NotFoundError, StoreError
from hmars.model import Document, SourceText
from hmars.store import Overtaken, Store, StoredConversation, StoredTurn
from hmars.store.schema import SCHEMA_VERSION

TURNS = tuple(
    StoredTurn(
        id=f"id-{number}\ud83d" if number == 1 else f"id-{number}",
        speaker="Zoë\x00",
        role="user",
        text=f"Said \x00 {number}. ",
        sequence=number,
        said_at="2024-01-01T10:00:00+01:00",
        placed_at="2024-01-01T09:00:00+00:00",
        offset_s=1.5 if number else None,
    )
    for number in range(3)
)


def save_turns(
    store: Store,
    turns: tuple[StoredTurn, ...],
    base: str | None,
    *,
    forgotten: frozenset[str] = frozenset(),
    namespace: str = "default",
) -> Document:
    regions = regions_of([[turn.text] for turn in turns])
    return store.save_document(
        namespace,
        SourceText("".join(turn.text for turn in turns), "ana", "ana", kind="dialogue"),
        regions,
        groups_of(regions),
        tokenizer="words",
        tokens=sum(region.tokens for region in regions),
        settings={},
        conversation=StoredConversation(turns, "Europe/Lisbon", base, forgotten),
    )


def test_turns_come_back_as_they_were(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        assert store.conversation("default", "ana") is None
        document = save_turns(store, TURNS, None)
        found = store.conversation("default", "ana")
        bare = store.conversation("default", "ana", with_turns=False)
        _, said = store.load_dialogue("default", document.id)
    assert found == StoredConversation(
        TURNS, "Europe/Lisbon", document.content_hash, frozenset(), document.id
    )
    assert bare is not None and bare.turns == () and bare.base == document.content_hash
    assert said is not None and said.turns == TURNS


def test_turns_change_as_a_difference(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        first = save_turns(store, TURNS, None)
        changed = (replace(TURNS[0], text="Said anew. "), TURNS[2])
        added = (*changed, replace(TURNS[1], id="new", sequence=9))
        second = save_turns(store, added, first.content_hash)
        found = store.conversation("default", "ana")
    assert found is not None and found.turns == added
    assert (second.id, second.version) == (first.id, 2)


def test_a_change_made_from_another_state_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        first = save_turns(store, TURNS[:1], None)
        save_turns(store, TURNS[:2], first.content_hash)
        for base in (None, first.content_hash):
            with pytest.raises(Overtaken):
                save_turns(store, TURNS, base, forgotten=frozenset({"k"}))
        found = store.conversation("default", "ana")
    assert found is not None and found.turns == TURNS[:2] and found.forgotten == frozenset()


def test_forgotten_keys_outlive_the_turns_but_not_the_conversation(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        first = save_turns(store, TURNS, None, forgotten=frozenset({"a"}))
        second = save_turns(store, TURNS[1:], first.content_hash, forgotten=frozenset({"a", "b"}))
        store.forget("default", second.id, frozenset({"c"}))
        found = store.conversation("default", "ana")
        assert found is not None and found.document is None and found.base is None
        assert found.forgotten == {"a", "b", "c"}
        third = save_turns(store, TURNS[:1], None)
        store.forget("default", third.id)
        assert store.conversation("default", "ana") is None


def test_a_conversation_of_another_namespace_is_not_seen(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        document = save_turns(store, TURNS, None, namespace="ours")
        assert store.conversation("theirs", "ana") is None
        with pytest.raises(NotFoundError):
            store.load_dialogue("theirs", document.id)


def test_a_document_is_no_conversation(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        document = save(store, (("One. ",),), source="ana")
        with pytest.raises(ConfigError, match="not a conversation"):
            store.conversation("default", "ana")
        assert store.load_dialogue("default", document.id)[1] is None
        save_turns(store, TURNS, document.content_hash)
        save(store, (("One. ",),), source="ana")
        assert store.load_dialogue("default", document.id)[1] is None


def as_version_1(path: Path) -> None:
    with Store.open(path) as store:
        put_cards(store, save(store, (("One tide. ",), ("Two ships. ",))))
    with closing(sqlite3.connect(path)) as raw:
        for table in ("turns", "conversations", "forgotten_turns"):
            raw.execute(f"DROP TABLE {table}")
        raw.execute("UPDATE meta SET value = '1' WHERE name = 'schema'")
        raw.execute("PRAGMA user_version = 1")
        raw.commit()


def test_a_store_of_an_earlier_version_gains_what_it_lacks_and_loses_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s"
    as_version_1(path)
    with Store.open(path) as store:
        assert len(store.load_index("default", store.documents("default")[0].id).cards) == 2
        save_turns(store, TURNS, None)
    with closing(sqlite3.connect(path)) as raw:
        version = raw.execute("PRAGMA user_version").fetchone()[0]
        assert version == SCHEMA_VERSION
        assert raw.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == (
            str(SCHEMA_VERSION),
        )


def test_a_store_of_an_earlier_version_that_can_only_be_read_says_what_to_do(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s"
    as_version_1(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"older hmars .* open it once where it can be written"):
        Store.open(path, read_only=True)
    assert path.read_bytes() == before
