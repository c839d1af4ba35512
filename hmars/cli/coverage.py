"""`hmars coverage`: how much of the evidence of your own questions reaches the answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from hmars.cli.options import AsJson, Namespace, Overrides, ProfileName, Store, open_memory
from hmars.cli.output import note, progress_display, write
from hmars.coverage.analyse import AGAINST, Against, CoverageRecord, analyse, open_own
from hmars.coverage.report import summary


def command(
    data: Annotated[
        Path, typer.Option(help="Questions as JSON Lines; docs/coverage.md has the format.")
    ],
    against: Annotated[
        str, typer.Option(help="Compare with these, with commas: bm25, full. '' for none.")
    ] = "bm25",
    out: Annotated[
        Path, typer.Option(help="Folder for records.jsonl, report.md and the files' index.")
    ] = Path("coverage"),
    store: Store = None,
    namespace: Namespace = None,
    profile: ProfileName = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Measure evidence recall, precision and cost on questions whose evidence you know."""
    named = [name.strip() for name in against.split(",") if name.strip()]
    chosen: list[Against] = [known for known in AGAINST if known in named]
    unknown = sorted(set(named) - set(AGAINST))
    if unknown:
        raise typer.BadParameter(f"--against knows {', '.join(AGAINST)}, not {unknown[0]}")

    async def work() -> list[CoverageRecord]:
        with progress_display() as display:
            stored = open_memory(store, namespace, profile, overrides, on_progress=display)
            async with stored, open_own(out, stored.profile) as own:
                beat = asyncio.create_task(display.heartbeat())
                lines = out / "records.jsonl"
                lines.write_text("", encoding="utf-8")

                def keep(record: CoverageRecord) -> None:
                    with lines.open("a", encoding="utf-8") as file:
                        file.write(record.model_dump_json() + "\n")

                try:
                    return await analyse(
                        data, stored, own, against=chosen, on_record=keep, on_progress=display
                    )
                finally:
                    beat.cancel()
                    with suppress(asyncio.CancelledError):
                        await beat

    records = asyncio.run(work())
    text = summary(records)
    (out / "report.md").write_text(f"# Evidence coverage\n\n{text}\n", encoding="utf-8")
    if as_json:
        write("[" + ",\n".join(record.model_dump_json() for record in records) + "]")
    else:
        write(text)
        note(f"hmars: one line a question in {out / 'records.jsonl'}")
    raise typer.Exit(1 if any(record.error for record in records) else 0)
