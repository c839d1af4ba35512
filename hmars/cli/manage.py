"""`hmars list`, `forget`, `doctor` and `prompts`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hmars.cli.dialogue import forgotten_text
from hmars.cli.options import (
    AsJson,
    Namespace,
    Overrides,
    ProfileName,
    Store,
    nothing_stored,
    open_memory,
)
from hmars.cli.output import note, write
from hmars.cli.render import findings_text, list_text, plural
from hmars.conversation import TurnsForgotten
from hmars.errors import ConfigError
from hmars.memory import ForgetReport
from hmars.model import Document
from hmars.prompts import PromptLibrary
from hmars.settings import Environment

if TYPE_CHECKING:
    from hmars.llm.probe import Finding

STILL_IN_USE = (
    "hmars: the store is in use elsewhere; its last bytes are overwritten when that ends."
)


def list_command(store: Store = None, namespace: Namespace = None, as_json: AsJson = False) -> None:
    """List the documents of a namespace."""

    async def work() -> tuple[list[Document], str]:
        if nothing_stored(store):
            return [], namespace or Environment().namespace
        async with open_memory(store, namespace, quiet=True, create=False) as memory:
            return await memory.documents(), memory.namespace

    documents, name = asyncio.run(work())
    if as_json:
        write(json.dumps([_document_json(item) for item in documents], ensure_ascii=False))
    else:
        write(list_text(documents, name))


def _document_json(document: Document) -> dict[str, object]:
    return {
        "document": document.id,
        "title": document.title,
        "source": document.source,
        "kind": document.kind,
        "characters": document.characters,
        "tokens": document.tokens,
        "pages": document.pages,
        "regions": document.regions,
        "groups": document.groups,
        "tokenizer": document.tokenizer,
        "updated": document.updated,
        "complete": document.complete,
        "cards_missing": document.cards_missing,
        "cards_degraded": document.cards_degraded,
    }


def forget_command(
    document: Annotated[str, typer.Argument(help="Id, title or path.")],
    turn: Annotated[
        list[str] | None, typer.Option("--turn", help="Of a conversation, only this turn (id).")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Of a conversation, only what was said before."),
    ] = None,
    store: Store = None,
    namespace: Namespace = None,
    profile: ProfileName = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Remove a document, or turns of a conversation: text, cards, memories, cached replies.

    The profile writes the cards of regions that lost a turn anew.
    """

    async def work() -> ForgetReport | TurnsForgotten:
        async with open_memory(
            store, namespace, profile, overrides, quiet=True, create=False
        ) as memory:
            if turn or before is not None:
                growing = await memory.find_conversation(document)
                return await growing.forget(turn or (), before=before)
            return await memory.forget(document)

    report = asyncio.run(work())
    if isinstance(report, TurnsForgotten):
        write(report.model_dump_json() if as_json else forgotten_text(report))
        if not (report.scrubbed or as_json):
            note(STILL_IN_USE)
        return
    if as_json:
        removed = {
            "document": report.document.id,
            "cards": report.cards,
            "memories": report.memories,
            "replies": report.replies,
            "scrubbed": report.scrubbed,
        }
        write(json.dumps(removed, ensure_ascii=False))
        return
    write(
        f"Forgot {report.document.title} ({report.document.id}): "
        f"{plural(report.cards, 'card')}, {plural(report.memories, 'regional memory')}, "
        f"{plural(report.replies, 'cached reply')} removed."
    )
    if not report.scrubbed:
        note(STILL_IN_USE)


def doctor_command(
    store: Store = None,
    profile: ProfileName = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Try every endpoint of a profile: what is up, and what it can do."""

    async def work() -> list[Finding]:
        async with open_memory(store, None, profile, overrides) as memory:
            return await memory.doctor()

    findings = asyncio.run(work())
    if as_json:
        write(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False))
    else:
        write(findings_text(findings))
    raise typer.Exit(3 if any(finding.problem for finding in findings) else 0)


def prompts_command(
    folder: Annotated[Path, typer.Argument(help="Folder to write them to; made if need be.")],
) -> None:
    """Write the shipped prompts to a folder, to be changed and named in `prompts.dir`."""
    library = PromptLibrary()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in library.names():
            path = folder / f"{name}.md"
            if path.exists():
                note(f"hmars: {path} exists and is kept.")
                continue
            path.write_text(library.text(name), encoding="utf-8")
            write(str(path))
    except OSError as error:
        raise ConfigError(f"The prompts cannot be written to {folder}: {error}.") from None
