"""`hmars show`: the hierarchy of a document, down to a page's exact text."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from hmars.cli import hierarchy
from hmars.cli.dialogue import turns_json, turns_text
from hmars.cli.options import AsJson, Namespace, Store, open_memory
from hmars.cli.output import write
from hmars.model import DocumentIndex

View = tuple[Callable[[DocumentIndex], str], Callable[[DocumentIndex], Any]]

TREE: View = (hierarchy.tree_text, hierarchy.hierarchy_json)
VIEWS: dict[str, View] = {
    "pages": (hierarchy.pages_text, hierarchy.pages_json),
    "regions": (hierarchy.regions_text, hierarchy.regions_json),
    "cards": (hierarchy.cards_text, hierarchy.cards_json),
    "graph": (hierarchy.graph_text, hierarchy.graph_json),
}


def command(
    document: Annotated[
        str | None, typer.Argument(help="Id, title or path. Default: all of the namespace.")
    ] = None,
    page: Annotated[
        int | None, typer.Option("--page", help="Print one page's text, exactly.")
    ] = None,
    pages: Annotated[bool, typer.Option("--pages", help="List the pages.")] = False,
    regions: Annotated[bool, typer.Option("--regions", help="List the regions.")] = False,
    cards: Annotated[bool, typer.Option("--cards", help="Print the memory cards.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Print the cross-references.")] = False,
    turns: Annotated[
        bool, typer.Option("--turns", help="List the turns of a conversation with their ids.")
    ] = False,
    store: Store = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Show what was indexed: the tree of groups and regions, or one of its parts."""
    chosen = [
        name
        for name, wanted in (
            ("pages", pages),
            ("regions", regions),
            ("cards", cards),
            ("graph", graph),
            ("turns", turns),
        )
        if wanted
    ]
    if len(chosen) + (page is not None) > 1:
        raise typer.BadParameter(
            "choose one of --page, --pages, --regions, --cards, --graph, --turns"
        )
    if page is not None:
        asyncio.run(_page(document, page, store, namespace, as_json))
    elif turns:
        asyncio.run(_turns(document, store, namespace, as_json))
    else:
        view = VIEWS[chosen[0]] if chosen else TREE
        asyncio.run(_hierarchies(document, view, store, namespace, as_json))


async def _hierarchies(
    document: str | None, view: View, store: str | None, namespace: str | None, as_json: bool
) -> None:
    text, data = view
    async with open_memory(store, namespace, quiet=True, create=False) as memory:
        if document is None:
            found = await memory.documents()
            if not found:
                write("[]" if as_json else "Nothing is indexed in this namespace.")
                return
            indexes = [await memory.hierarchy(item.id) for item in found]
        else:
            indexes = [await memory.hierarchy(document)]
    if as_json:
        shown = [data(index) for index in indexes]
        write(hierarchy.as_json(shown[0] if document is not None else shown))
    else:
        write("\n\n".join(text(index) for index in indexes))


async def _turns(
    document: str | None, store: str | None, namespace: str | None, as_json: bool
) -> None:
    if document is None:
        raise typer.BadParameter("name the conversation whose turns are wanted")
    async with open_memory(store, namespace, quiet=True, create=False) as memory:
        found = await (await memory.find_conversation(document)).turns()
    write(turns_json(found) if as_json else turns_text(found))


async def _page(
    document: str | None, page: int, store: str | None, namespace: str | None, as_json: bool
) -> None:
    async with open_memory(store, namespace, quiet=True, create=False) as memory:
        if document is None:
            found = await memory.documents()
            if len(found) != 1:
                raise typer.BadParameter("name the document whose page is wanted")
            document = found[0].id
        wanted = await memory.page(document, page)
    if as_json:
        write(hierarchy.as_json(hierarchy.page_json(wanted)))
    else:
        sys.stdout.write(hierarchy.page_text(wanted))
        sys.stdout.flush()
