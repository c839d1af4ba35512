"""What the command line shows: progress and notes on stderr, results on stdout."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from hmars.model import WAITING, Progress

HEARTBEAT_SECONDS = 20.0
SECONDS_BETWEEN_LINES = 5.0


def write(text: str, stream: TextIO | None = None) -> None:
    """A result on stdout, whatever its characters and whatever the terminal's encoding."""
    out = stream or sys.stdout
    data = text if text.endswith("\n") else text + "\n"
    try:
        out.write(data)
    except UnicodeEncodeError:
        encoding = out.encoding or "utf-8"
        out.write(data.encode(encoding, "backslashreplace").decode(encoding))
    out.flush()


def note(text: str) -> None:
    """A line for people on stderr."""
    write(text, sys.stderr)


@dataclass
class ProgressDisplay:
    """Bars on a terminal, plain lines elsewhere; a line at least every 20 s while waiting."""

    console: Console
    bars: Bars | None
    prefix: str = ""
    _tasks: dict[str, int] = field(default_factory=dict[str, int])
    _last: Progress | None = None
    _quiet_beats: int = 0
    _spoke: float = field(default_factory=time.monotonic)

    def __call__(self, progress: Progress) -> None:
        waiting = progress.stage == WAITING  # calls say so every second: no lines of their own
        if not waiting:
            self._last = progress
        elif self._last is not None:
            progress = replace(self._last, note=progress.note)
        if self.bars is not None:
            self._show_bar(self.bars, progress)
        elif self._worth_a_line(always=bool(progress.note) and not waiting):
            self._line(progress)

    def start(self, prefix: str) -> None:
        """Begin another document: new bars, lines with its name."""
        self.prefix = prefix
        self._tasks.clear()
        self._last = None

    def hide(self) -> None:
        """Take the bars off the terminal for good: while they are there, what is written elsewhere
        goes through them and loses its place."""
        if self.bars is not None:
            self.bars.stop()

    async def heartbeat(self) -> None:
        """Say what is waited for, while nothing else is said."""
        while True:
            before = self._last
            await asyncio.sleep(HEARTBEAT_SECONDS)
            last = self._last
            self._quiet_beats = self._quiet_beats + 1 if last is before else 0
            if self.bars is None and last is not None and self._quiet_beats:
                waited = int(self._quiet_beats * HEARTBEAT_SECONDS)
                note(
                    f"{self.prefix}{last.stage}: {last.done} of {last.total}, "
                    f"nothing new for {waited} s"
                )

    def _show_bar(self, bars: Bars, progress: Progress) -> None:
        task = self._tasks.get(progress.stage)
        if task is None:
            task = bars.add_task(f"{self.prefix}{progress.stage}", total=progress.total or None)
            self._tasks[progress.stage] = task
        description = f"{self.prefix}{progress.stage}"
        if progress.note:
            description += f" ({progress.note})"
        bars.update(
            task,  # type: ignore[arg-type]
            completed=progress.done,
            total=progress.total or None,
            description=description,
        )

    def _worth_a_line(self, *, always: bool) -> bool:
        """Whatever carries a note, else one line every five seconds: a quick run says nothing."""
        now = time.monotonic()
        if not always and now - self._spoke < SECONDS_BETWEEN_LINES:
            return False
        self._spoke = now
        return True

    def _line(self, progress: Progress) -> None:
        if progress.stage == WAITING:
            note(f"{self.prefix}{progress.note}")
            return
        extra = f" ({progress.note})" if progress.note else ""
        note(f"{self.prefix}{progress.stage}: {progress.done} of {progress.total}{extra}")


@contextmanager
def progress_display() -> Generator[ProgressDisplay]:
    """A display that is gone from the terminal when the block ends."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield ProgressDisplay(console, None)
        return
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    with bars:
        yield ProgressDisplay(console, bars)
