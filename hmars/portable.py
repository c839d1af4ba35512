"""One document in one file: text, cards, regional memories, turns.

JSON Lines: a header, then a line for each region with its pages, for each group, card, regional
memory and turn, and an end that counts them. Nothing in it is code. What is read is checked before
it is stored: the pages must be the text of the header's hash, the cards must be under their
content addresses, the turns must make the text.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from hmars.errors import ConfigError, InputError
from hmars.indexing.turns import render
from hmars.indexing.turns.keep import turns_of
from hmars.indexing.turns.turn import TurnRole
from hmars.model import (
    Document,
    DocumentKind,
    Frozen,
    Group,
    MemoryCard,
    Page,
    Region,
    RegionalMemory,
    SourceText,
)
from hmars.store import (
    AsyncStore,
    DocumentPlan,
    KeptBody,
    StoredConversation,
    StoredTurn,
    Transfer,
    card_key,
    group_key,
)

FORMAT = "hmars-document"
VERSION = 1
Address = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class _Header(Frozen):
    format: Literal["hmars-document"]
    version: Literal[1]
    source: str
    title: str
    kind: DocumentKind
    content_hash: Address
    tokenizer: str
    settings: dict[str, Any]
    warnings: tuple[str, ...] = ()
    conversation: bool = False
    zone: str | None = None


class _Page(Frozen):
    label: str
    context: str
    tokens: Count
    text: str = Field(min_length=1)


class _Body(Frozen):
    content_key: Address
    key: Address


class _Card(_Body):
    card: MemoryCard


class _Memory(_Body):
    memory: RegionalMemory


class _Turn(Frozen):
    id: str
    speaker: str
    role: TurnRole
    text: str
    sequence: Count
    id_given: bool
    session: str | None
    replies_to: str | None
    original: str | None
    said_at: str | None
    assumed_zone: str | None
    day_only: bool
    offset_s: float | None
    placed_at: str | None


class _Line(Frozen):
    """One of its fields is there."""

    header: _Header | None = None
    region: tuple[_Page, ...] | None = Field(default=None, min_length=1)
    group: tuple[int, ...] | None = None
    card: _Card | None = None
    memory: _Memory | None = None
    turn: _Turn | None = None
    forgotten: Address | None = None
    end: Count | None = None


async def export_document(store: AsyncStore, namespace: str, document: str, file: Path) -> Document:
    """Write a document to a new file, whole or not at all.

    Raises:
        ConfigError: the file exists, or cannot be written.
    """
    found = await store.transfer(namespace, document)
    await asyncio.to_thread(_write, found, file)
    return found.index.document


async def import_document(store: AsyncStore, namespace: str, file: Path) -> Document:
    """Store what `export_document` wrote.

    Raises:
        InputError: the file is no export, was cut off, or does not hold together.
        ConfigError: there is a document from the same source with another text.
    """
    found = await asyncio.to_thread(_read, file)
    base = None
    if found.is_conversation:
        there = await store.conversation(namespace, found.plan.source.source)
        base = there.base if there else None
    return await store.take_in(
        namespace, found.plan, found.conversation(base), found.cards, found.memories
    )


# ---------------------------------------------------------------- writing


def _write(found: Transfer, file: Path) -> None:
    if file.exists():
        raise ConfigError(f"{file} exists: choose another name, or move it away.")
    new = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        with new.open("w", encoding="utf-8", newline="\n") as out:
            lines = [json.dumps(line) + "\n" for line in _lines(found)]
            out.writelines(lines)
            out.write(json.dumps({"end": len(lines)}) + "\n")
        new.rename(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror or error}.") from None
    finally:
        with suppress(OSError):
            new.unlink()


def _lines(found: Transfer) -> Iterator[dict[str, Any]]:
    document, said = found.index.document, found.conversation
    yield {
        "header": {
            "format": FORMAT,
            "version": VERSION,
            "source": document.source,
            "title": document.title,
            "kind": document.kind,
            "content_hash": document.content_hash,
            "tokenizer": document.tokenizer,
            "settings": dict(found.settings),
            "warnings": document.warnings,
            "conversation": said is not None,
            "zone": said.zone if said else None,
        }
    }
    for region in found.index.regions:
        yield {
            "region": [
                {"label": p.label, "context": p.context, "tokens": p.tokens, "text": p.text}
                for p in region.pages
            ]
        }
    for group in found.index.groups:
        yield {"group": group.regions}
    for name, kept in (("card", found.cards), ("memory", found.memories)):
        for item in kept:
            address = {"content_key": item.content_key, "key": item.key}
            yield {name: {**address, name: json.loads(item.body)}}
    if said is not None:
        for turn in said.turns:
            yield {"turn": asdict(turn)}
        for key in sorted(said.forgotten):
            yield {"forgotten": key}


# ---------------------------------------------------------------- reading


@dataclass
class _Found:
    """What was read so far."""

    header: _Header | None = None
    regions: list[Region] = field(default_factory=list[Region])
    groups: list[Group] = field(default_factory=list[Group])
    cards: list[KeptBody] = field(default_factory=list[KeptBody])
    memories: list[KeptBody] = field(default_factory=list[KeptBody])
    turns: list[StoredTurn] = field(default_factory=list[StoredTurn])
    forgotten: list[str] = field(default_factory=list[str])
    pages: int = 0
    characters: int = 0

    def take(self, line: _Line) -> None:
        if line.header is not None:
            self.header = line.header
        elif line.region is not None:
            self._region(line.region)
        elif line.group is not None:
            self.groups.append(Group(len(self.groups) + 1, line.group))
        elif line.card is not None:
            card = line.card
            if card.card.degraded is None:
                _check(
                    card.key == card_key(card.card.author, card.content_key),
                    "a card is not under the address of its author and text",
                )
            self.cards.append(KeptBody(card.content_key, card.key, card.card.model_dump_json()))
        elif line.memory is not None:
            kept = line.memory
            body = kept.memory.model_dump_json()
            self.memories.append(KeptBody(kept.content_key, kept.key, body))
        elif line.turn is not None:
            self.turns.append(StoredTurn(**line.turn.model_dump()))
        elif line.forgotten is not None:
            self.forgotten.append(line.forgotten)

    def _region(self, pages: Sequence[_Page]) -> None:
        made: list[Page] = []
        for page in pages:
            start, self.characters = self.characters, self.characters + len(page.text)
            self.pages += 1
            made.append(
                Page(
                    self.pages,
                    start,
                    self.characters,
                    page.tokens,
                    page.label,
                    page.context,
                    page.text,
                )
            )
        self.regions.append(Region("", len(self.regions) + 1, tuple(made)))

    def close(self) -> _Import:
        """Everything that concerns more than one line.

        Raises:
            ValueError: it does not hold together.
        """
        header = self.header
        if header is None:
            raise ValueError("it has no header")
        text = "".join(region.text for region in self.regions)
        hashed = hashlib.sha256(text.encode("utf-8")).hexdigest()
        _check(hashed == header.content_hash, "its pages are not the text it was made from")
        plan = DocumentPlan(
            SourceText(text, header.source, header.title, header.kind, (), header.warnings),
            self.regions,
            self.groups,
            header.tokenizer,
            sum(region.tokens for region in self.regions),
            header.settings,
        )
        plan.check()
        known = {region.key for region in self.regions}
        _check(known.issuperset(card.content_key for card in self.cards), "a card has no region")
        joined = {
            group_key([self.regions[number - 1] for number in group.regions])
            for group in self.groups
        }
        _check(
            joined.issuperset(memory.content_key for memory in self.memories),
            "a regional memory has no group",
        )
        found = _Import(header, plan, self.cards, self.memories, self.turns, self.forgotten)
        if found.is_conversation:
            _check_turns(found.conversation(None), header, text)
        else:
            _check(not self.turns and not self.forgotten, "it has turns but is no conversation")
        return found


@dataclass(frozen=True)
class _Import:
    header: _Header
    plan: DocumentPlan
    cards: Sequence[KeptBody]
    memories: Sequence[KeptBody]
    turns: Sequence[StoredTurn]
    forgotten: Sequence[str]

    @property
    def is_conversation(self) -> bool:
        return self.header.conversation

    def conversation(self, base: str | None) -> StoredConversation | None:
        if not self.is_conversation:
            return None
        return StoredConversation(
            tuple(self.turns), self.header.zone, base, frozenset(self.forgotten)
        )


def _check_turns(said: StoredConversation | None, header: _Header, text: str) -> None:
    _check(said is not None and len({turn.id for turn in said.turns}) == len(said.turns), "ids")
    if said is not None:
        made = render(turns_of(said), conversation=header.source, zone=header.zone)
        _check(made.source.text == text, "its turns do not make its text")


def _check(fine: bool, problem: str) -> None:
    if not fine:
        raise ValueError(problem)


def _read(file: Path) -> _Import:
    found = _Found()
    number, ended = 0, False
    try:
        with file.open(encoding="utf-8") as lines:
            for number, raw in enumerate(lines, start=1):
                line = _Line.model_validate_json(raw)
                _check(len(line.model_fields_set) == 1, "it says more than one thing")
                _check((line.header is not None) == (number == 1), "the header is not the first")
                _check(not ended, "something stands after the end")
                if line.end is not None:
                    _check(line.end == number - 1, f"{line.end} lines were written")
                    ended = True
                found.take(line)
        if not ended:
            raise InputError(f"{file} was cut off after line {number}: export the document again.")
        return found.close()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}.") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the line"
        raise InputError(
            f"{file} is no export of this version of hmars, line {number}: {place}: {first['msg']}."
        ) from None
    except (ValueError, OverflowError, IndexError) as error:
        raise InputError(f"{file} cannot be imported, line {number}: {error}.") from None
