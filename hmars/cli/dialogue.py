"""`hmars append`: turns into a conversation."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from hmars.cli.options import AsJson, Namespace, Overrides, ProfileName, Store, open_memory
from hmars.cli.output import progress_display, write
from hmars.cli.render import cost_text, plural
from hmars.conversation import AppendReport, TurnsForgotten
from hmars.indexing.turns import Turn, TurnFormat
from hmars.indexing.turns.render import header
from hmars.prompts import one_line

SHOWN_OF_A_TURN = 100
"""Characters."""


def append_command(
    conversation: Annotated[str, typer.Argument(help="Its name; a new one is begun.")],
    file: Annotated[
        Path, typer.Argument(help="Turns: JSON Lines or a chat export; - reads stdin.")
    ],
    zone: Annotated[
        str | None,
        typer.Option(help="Zone of times without an offset, such as Europe/Lisbon. Default: UTC."),
    ] = None,
    format: Annotated[
        TurnFormat | None, typer.Option(help="Format of the file. Default: found from its content.")
    ] = None,
    date_order: Annotated[
        str | None, typer.Option(help="Of a WhatsApp text: dmy, mdy or ymd.")
    ] = None,
    store: Store = None,
    namespace: Namespace = None,
    profile: ProfileName = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Append turns to a conversation. Turns that are there already change nothing."""
    if date_order not in {None, "dmy", "mdy", "ymd"}:
        raise typer.BadParameter("--date-order is dmy, mdy or ymd")
    from_stdin = str(file) == "-"
    if not from_stdin and not file.exists():
        raise typer.BadParameter(f"there is no file or folder {file}")
    source = sys.stdin.buffer.read() if from_stdin else file

    async def work() -> AppendReport:
        with progress_display() as display:
            async with open_memory(
                store, namespace, profile, overrides, on_progress=display
            ) as memory:
                beat = asyncio.create_task(display.heartbeat())
                try:
                    growing = await memory.conversation(conversation, zone=zone)
                    return await growing.append(
                        source,
                        format=format,
                        date_order=date_order,
                        name="The input" if from_stdin else file.name,
                    )
                finally:
                    beat.cancel()
                    with suppress(asyncio.CancelledError):
                        await beat

    report = asyncio.run(work())
    write(report.model_dump_json() if as_json else append_text(report))
    raise typer.Exit(1 if report.index.cards.degraded or report.index.regional.degraded else 0)


def append_text(report: AppendReport) -> str:
    """What became of the turns, and what was read for it."""
    cards = report.index.cards
    counts = [
        f"{count} {name}"
        for count, name in (
            (report.replaced, "edited"),
            (report.duplicates, "known already"),
            (report.out_of_order, "earlier than others"),
            (report.renamed, "renamed, as their id was taken"),
            (report.ambiguous, "known only by their words"),
            (report.time_differs, "read with another zone before"),
            (report.forgotten, "forgotten before"),
            (report.left_out, "left out"),
        )
        if count
    ]
    more = f" ({', '.join(counts)})" if counts else ""
    lines = [
        f"{report.conversation}: {plural(report.added, 'turn')} appended{more}; "
        f"{plural(report.turns, 'turn')} as {report.document}",
        f"  cards: {cards.written} written, {cards.reused} reused, {cards.degraded} degraded",
        "  " + cost_text(report.index.usage, report.index.seconds.total),
    ]
    lines += [f"  warning: {text}" for text in (*report.warnings, *report.index.warnings)]
    return "\n".join(lines)


def turns_text(turns: Sequence[Turn]) -> str:
    """A line for each turn: id, header, beginning of the text."""
    return "\n".join(
        f"{turn.id}  [{header(turn)}] {one_line(turn.text, SHOWN_OF_A_TURN)}" for turn in turns
    )


def turns_json(turns: Sequence[Turn]) -> str:
    """A list of objects with all that was said."""
    return json.dumps(
        [
            {
                "id": turn.id,
                "speaker": turn.speaker,
                "role": turn.role,
                "session": turn.session,
                "time": turn.time.iso,
                "time_as_written": turn.time.original,
                "text": turn.text,
            }
            for turn in turns
        ],
        ensure_ascii=False,
    )


def forgotten_text(report: TurnsForgotten) -> str:
    """What went, and what was read anew for it."""
    if report.document is None:
        return f"Forgot {plural(report.turns, 'turn')}: nothing is left of {report.conversation}."
    text = (
        f"Forgot {plural(report.turns, 'turn')} of {report.conversation}; "
        f"{plural(report.left, 'turn')} left."
    )
    if report.index is not None:
        text += f" {plural(report.index.cards.written, 'card')} written anew."
    return text
