"""`hmars index`: read files into memory, one after the other."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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
from hmars.cli.output import ProgressDisplay, note, progress_display, write
from hmars.cli.render import estimate_text, plural, report_text
from hmars.errors import InputError, MissingExtraError
from hmars.llm.budget import Budget
from hmars.memory import Estimate, Memory, find_files
from hmars.model import Document, IndexReport

Failure = InputError | MissingExtraError


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for."""

    paths: Sequence[Path]
    password: str | None
    title: str | None
    estimate: bool
    as_json: bool
    budget: Budget
    """Of all files together."""


@dataclass
class Run:
    """What became of each file."""

    done: list[IndexReport | Estimate] = field(default_factory=list[IndexReport | Estimate])
    failures: list[tuple[Path, Failure]] = field(default_factory=list[tuple[Path, Failure]])

    @property
    def exit_code(self) -> int:
        """0 all is well, 1 some of it is, 3 none."""
        if not self.done:
            return 3
        degraded = any(
            isinstance(report, IndexReport) and (report.cards.degraded or report.regional.degraded)
            for report in self.done
        )
        return 1 if self.failures or degraded else 0


def command(
    files: Annotated[list[Path], typer.Argument(help="Files or folders to read.")],
    store: Store = None,
    namespace: Namespace = None,
    profile: ProfileName = None,
    overrides: Overrides = None,
    title: Annotated[str | None, typer.Option(help="Title to cite it by (one file).")] = None,
    glob: Annotated[
        str | None, typer.Option(help="Of folders, take only files like this, e.g. '*.py'.")
    ] = None,
    password: Annotated[str | None, typer.Option(help="Password of encrypted files.")] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take; spend nothing.")
    ] = False,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Index files. Running it again on the same text makes no model calls."""
    paths = _existing(files, glob)
    if title is not None and len(paths) > 1:
        raise typer.BadParameter("--title names one file, and there are several")
    budget = Budget(max_cost, max_calls, max_seconds)
    wanted = Wanted(paths, password, title, estimate, as_json, budget)

    async def work() -> Run:
        with progress_display() as display:
            memory = open_memory(store, namespace, profile, overrides, on_progress=display)
            async with memory:
                beat = asyncio.create_task(display.heartbeat())
                try:
                    run = await _each(memory, wanted, display)
                    if not (estimate or as_json):
                        _name_missing(files, await memory.documents())
                    return run
                finally:
                    beat.cancel()
                    with suppress(asyncio.CancelledError):
                        await beat

    run = asyncio.run(work())
    if len(paths) > 1:
        verb = "estimated" if estimate else "indexed"
        failed = f", {len(run.failures)} not" if run.failures else ""
        note(f"hmars: {plural(len(run.done), 'file')} {verb}{failed}.")
        for _, error in run.failures:
            note(f"  {error}")
    raise typer.Exit(run.exit_code)


def _existing(files: Sequence[Path], glob: str | None) -> list[Path]:
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"there is no file or folder {path}")
    found = find_files(files, glob)
    if not found:
        raise typer.BadParameter("no file matches")
    return found


def _name_missing(files: Sequence[Path], documents: Sequence[Document]) -> None:
    """Documents whose files are gone from the folders that were read; they stay until forgotten."""
    folders = [os.path.normpath(path.absolute()) + os.sep for path in files if path.is_dir()]
    for document in documents:
        inside = any(document.source.startswith(folder) for folder in folders)
        if inside and not Path(document.source).exists():
            note(
                f"hmars: the file of {document.id} is gone ({document.source}); "
                f"to forget it as well: hmars forget {document.id}"
            )


async def _each(memory: Memory, wanted: Wanted, display: ProgressDisplay) -> Run:
    """One file after the other; a bad one never stops the rest."""
    run = Run()
    budget = wanted.budget
    for path in wanted.paths:
        display.start(f"{path.name}: " if len(wanted.paths) > 1 else "")
        try:
            if wanted.estimate:
                result = await memory.estimate(path, password=wanted.password)
            else:
                result = await memory.add(
                    path, title=wanted.title, password=wanted.password, budget=budget
                )
                budget = budget.after(result.usage, memory.profile, result.seconds.total)
        except (InputError, MissingExtraError) as error:
            run.failures.append((path, error))
            if wanted.as_json:
                write(json.dumps({"file": str(path), "error": str(error)}, ensure_ascii=False))
            else:
                note(f"hmars: {error}")
            continue
        run.done.append(result)
        _show(result, wanted.as_json)
    return run


def _show(result: IndexReport | Estimate, as_json: bool) -> None:
    if as_json:
        write(result.model_dump_json())
    elif isinstance(result, IndexReport):
        write(report_text(result))
    else:
        write(estimate_text(result))
