"""The facade without a loop, inside a running loop, and several at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hmars import ConfigError, InputError, Memory, NotFoundError

FERRY = "The ferry leaves at seven. Tickets cost four crowns. Captain Ilse Brandt steers it."


def test_a_script_without_a_loop_adds_asks_and_forgets(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.sqlite") as memory:
        report = memory.add_sync(FERRY, title="Ferry")
        answer = memory.ask_sync("What do tickets cost?")
        assert "Tickets cost four crowns." in answer.answer
        assert [document.title for document in memory.documents_sync()] == ["Ferry"]
        assert memory.hierarchy_sync(report.document).pages[0].text == FERRY
        memory.forget_sync("Ferry")
        assert memory.documents_sync() == []


async def test_the_same_calls_work_inside_a_running_loop(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.sqlite") as memory:
        memory.add_sync(FERRY, title="Ferry")
        assert "seven" in memory.ask_sync("When does the ferry leave?").answer
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        assert "seven" in memory.ask_sync("When does the ferry leave?").answer
        assert "seven" in (await memory.ask("When does the ferry leave?")).answer


async def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "m.sqlite")
    await memory.add(FERRY)
    await memory.close()
    await memory.close()


def test_two_memories_in_two_threads_keep_their_own_documents(tmp_path: Path) -> None:
    found: dict[str, list[str]] = {}

    def work(name: str) -> None:
        with Memory.open(tmp_path / f"{name}.sqlite") as memory:
            memory.add_sync(f"{name} lives in the mill of {name}.", title=name)
            found[name] = [document.title for document in memory.documents_sync()]

    threads = [threading.Thread(target=work, args=(name,)) for name in ("Ada", "Ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {"Ada": ["Ada"], "Ben": ["Ben"]}


async def test_a_string_that_names_a_file_is_read_and_one_that_only_looks_so_is_an_error(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ferry.txt"
    path.write_text(FERRY, encoding="utf-8")
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        assert (await memory.add(str(path))).title == "ferry.txt"
        with pytest.raises(InputError, match=r"missing\.txt"):
            await memory.add("missing.txt")
        with pytest.raises(InputError):
            await memory.add(tmp_path)
        assert (await memory.add("Version 2.5 is out. It floats.")).characters == 30


async def test_texts_without_a_title_are_documents_of_their_own(tmp_path: Path) -> None:
    same_beginning = "The minutes of the meeting of the harbour board of the town of "
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        first = await memory.add(same_beginning + "Ost.")
        second = await memory.add(same_beginning + "West.")
        again = await memory.add(same_beginning + "West.")
    assert first.document != second.document == again.document
    assert again.unchanged


async def test_a_text_added_again_under_its_title_takes_the_place_of_the_old_one(
    tmp_path: Path,
) -> None:
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        old = await memory.add("The lock code is 4711.", title="Note")
        new = await memory.add("The lock code is 9023.", title="Note")
        answer = await memory.ask("What is the lock code?")
        assert old.document == new.document
        assert "9023" in answer.answer and "4711" not in answer.answer
        pages = (await memory.hierarchy(new.document)).pages
        assert "4711" not in "".join(page.text for page in pages)


async def test_an_empty_question_and_an_unknown_document_are_errors(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        await memory.add(FERRY, title="Ferry")
        with pytest.raises(ConfigError, match="empty"):
            await memory.ask("   ")
        with pytest.raises(NotFoundError, match="Nowhere"):
            await memory.ask("What?", document="Nowhere")
        with pytest.raises(NotFoundError, match="no page 2"):
            await memory.page("Ferry", 2)


async def test_odd_titles_and_names_are_kept_and_ids_are_safe_everywhere(tmp_path: Path) -> None:
    names = ["CON", "a:b\\c?.txt", "../../etc/passwd", "Ünïcödé 書", "x" * 500, "con"]
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        for name in names:
            await memory.add(f"This is the text of {name[:20]}.", title=name)
        documents = await memory.documents()
    assert sorted(document.title for document in documents) == sorted(names)
    ids = [document.id for document in documents]
    assert len({identity.casefold() for identity in ids}) == len(names)
    assert all(len(identity) <= 120 and not set(identity) & set('\\/:*?"<>| ') for identity in ids)
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"m.sqlite"}


async def test_lone_surrogates_and_nul_are_indexed_and_read_back(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        report = await memory.add("pair \ud83d\ude00 lone \ud83d nul \x00 end", title="odd")
        pages = (await memory.hierarchy(report.document)).pages
        answer = await memory.ask("What comes at the end of nul?")
    text = "".join(page.text for page in pages)
    assert text == "pair \U0001f600 lone \ufffd nul \x00 end"
    assert any("surrogate" in warning for warning in report.warnings)
    assert answer.model_dump_json()
