from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, select
from store_samples import card_for, put_cards, put_memories, regions_of, save

from hmars.store import Store, card_key
from hmars.store.schema import documents

SECRET = "L-4408-SECRET"


def traces(folder: Path, secret: str = SECRET) -> list[str]:
    """Names of the files of the store that hold the secret."""
    return [path.name for path in folder.iterdir() if secret.encode() in path.read_bytes()]


def fill(store: Store, source: str = "/diary", title: str = "Diary") -> str:
    texts = [[f"{SECRET} was said on day {n}. " * 60, "Another page. "] for n in range(8)]
    document = save(store, texts, source=source, title=title)
    put_cards(store, document)
    put_memories(store, document)
    for number in range(20):
        store.put_reply("default", f"k{number}", f"{SECRET} " * 700, [document.id])
    return document.id


def test_a_forgotten_document_leaves_no_byte_in_any_file_of_the_store(tmp_path: Path) -> None:
    with Store.open(tmp_path / "memory.hmars") as store:
        kept = save(store, (("Something else. ",),), source="/kept")
        put_cards(store, kept)
        secret = fill(store, title=f"{SECRET} title")
        assert traces(tmp_path)
        report = store.forget("default", secret)
        assert (report.cards, report.memories, report.replies) == (8, 4, 20)
        assert report.document.pages == 16
        assert report.scrubbed
        assert traces(tmp_path) == []
        assert traces(tmp_path, SECRET.lower()) == []
        assert [document.id for document in store.documents("default")] == [kept.id]
        assert store.load_index("default", kept.id).document.complete
    assert traces(tmp_path) == []


def test_what_another_document_holds_as_well_stays(tmp_path: Path) -> None:
    with Store.open(tmp_path / "memory.hmars") as store:
        first, second = save(store, (("Shared. ",), ("Own. ",))), None
        put_cards(store, first)
        second = save(store, (("Shared. ",),), source="/second")
        shared, own = regions_of((("Shared. ",), ("Own. ",)))
        store.reuse_cards("default", second.id, [(shared, card_key("tester@1", shared.key))])
        assert store.forget("default", first.id).cards == 1
        assert store.load_index("default", second.id).cards == {1: card_for(shared)}
        assert store.cards("default", [card_key("tester@1", own.key)]) == {}
        assert store.forget("default", second.id).cards == 1
        assert store.namespaces() == []


def test_text_that_an_edit_removed_is_gone_after_a_scrub(tmp_path: Path) -> None:
    with Store.open(tmp_path / "memory.hmars") as store:
        fill(store)
        save(store, (("Nothing to see. ",),), source="/diary", title="Diary")
        assert store.scrub()
        assert traces(tmp_path) == []


def test_forgetting_while_somebody_reads_says_that_traces_remain(tmp_path: Path) -> None:
    path = tmp_path / "memory.hmars"
    with Store.open(path, busy_timeout_s=0.01) as store, Store.open(path) as other:
        secret = fill(store)

        def forget_meanwhile(connection: Connection) -> bool:
            before = connection.execute(select(documents.c.id)).all()
            report = store.forget("default", secret)
            assert connection.execute(select(documents.c.id)).all() == before
            return report.scrubbed

        assert not other.read(forget_meanwhile)
        assert other.documents("default") == []
        assert store.scrub()
        assert traces(tmp_path) == []


def test_forgetting_in_one_store_is_seen_in_another_at_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.hmars"
    with Store.open(path) as one, Store.open(path) as two:
        secret = fill(one)
        assert two.document("default", secret).pages == 16
        one.forget("default", secret)
        assert two.documents("default") == []
        assert two.get_reply("default", "k1") is None
