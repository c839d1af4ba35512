"""`hmars export` and `import`: one document in one file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from hmars.cli.options import AsJson, Namespace, Store, open_memory
from hmars.cli.output import write
from hmars.cli.render import plural
from hmars.model import Document


def export_command(
    document: Annotated[str, typer.Argument(help="Id, title or path.")],
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    store: Store = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Write a document with its cards, regional memories and turns to one file."""

    async def work() -> Document:
        async with open_memory(store, namespace, quiet=True, create=False) as memory:
            return await memory.export(document, file)

    _show(asyncio.run(work()), "Wrote", f" to {file}", as_json)


def import_command(
    file: Annotated[Path, typer.Argument(help="File that `hmars export` wrote.")],
    store: Store = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Take in a document from a file; nothing is read again, no model is called."""

    async def work() -> Document:
        async with open_memory(store, namespace, quiet=True) as memory:
            return await memory.import_file(file)

    _show(asyncio.run(work()), "Took in", "", as_json)


def _show(document: Document, verb: str, where: str, as_json: bool) -> None:
    if as_json:
        found = {
            "document": document.id,
            "title": document.title,
            "regions": document.regions,
            "complete": document.complete,
        }
        write(json.dumps(found, ensure_ascii=False))
        return
    state = "" if document.complete else ", unfinished"
    write(
        f"{verb} {document.title} ({document.id}){where}: "
        f"{plural(document.regions, 'region')}{state}."
    )
