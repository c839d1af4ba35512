"""`hmars ask`: one question, an answer with proof."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from hmars.cli.options import (
    AsJson,
    MaxCalls,
    MaxCost,
    MaxSeconds,
    Namespace,
    Overrides,
    ProfileName,
    Store,
    open_memory,
)
from hmars.cli.output import progress_display, write
from hmars.cli.render import answer_text, proof_text
from hmars.llm.budget import Budget
from hmars.memory import Driver
from hmars.model import Answer


def command(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    document: Annotated[
        list[str] | None,
        typer.Option("--document", "-d", help="Ask only this document (id, title or path)."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Of conversations, see only what was said up to this time; a day means its end.",
        ),
    ] = None,
    store: Store = None,
    namespace: Namespace = None,
    profile: ProfileName = None,
    overrides: Overrides = None,
    driver: Annotated[
        Driver,
        typer.Option(
            help="single: every region is asked once. lead: in rounds, for questions of several "
            "hops."
        ),
    ] = "single",
    trajectory: Annotated[
        Path | None,
        typer.Option(
            help="With the lead: add its rounds to this file, one line of JSON.", dir_okay=False
        ),
    ] = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
    no_stream: Annotated[
        bool, typer.Option("--no-stream", help="Print the answer when it is complete.")
    ] = False,
) -> None:
    """Ask a question of everything indexed, or of one document."""
    if not question.strip():
        raise typer.BadParameter("the question is empty")
    streams = sys.stdout.isatty() and not (as_json or no_stream)
    streamed: list[str] = []

    async def run() -> tuple[Answer, dict[str, str]]:
        with progress_display() as display:

            def on_text(piece: str) -> None:
                display.hide()
                streamed.append(piece)
                sys.stdout.write(piece)
                sys.stdout.flush()

            memory = open_memory(store, namespace, profile, overrides, on_progress=display)
            async with memory:
                beat = asyncio.create_task(display.heartbeat())
                try:
                    answer = await memory.ask(
                        question,
                        document=document,
                        as_of=as_of,
                        on_text=on_text if streams else None,
                        driver=driver,
                        trajectory=trajectory,
                        budget=Budget(max_cost, max_calls, max_seconds),
                    )
                finally:
                    beat.cancel()
                    with suppress(asyncio.CancelledError):
                        await beat
                titles = {item.id: item.title for item in await memory.documents()}
                return answer, titles

    answer, titles = asyncio.run(run())
    if as_json:
        write(answer.model_dump_json())
    else:
        _print(answer, titles, "".join(streamed))
    raise typer.Exit(0 if answer.ledger.ok else 1)


def _print(answer: Answer, titles: dict[str, str], streamed: str) -> None:
    """The rest of an answer that was streamed, or all of it."""
    text = answer_text(answer)
    if streamed and text.startswith(streamed):
        write(text[len(streamed) :])
    else:
        # What was streamed held a mark or a quotation that did not stand up to verification.
        write(("\n\n" if streamed else "") + text)
    write("\n" + proof_text(answer, titles))
