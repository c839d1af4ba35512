"""Re-run small slices with the extractive profile and compare with what is expected of them.

Expected numbers stand in `expected/*.json` next to the arguments that make them.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.records import Lines, Record, RunFolder, write_json
from benchmarks.report.tables import interval, score, systems_of
from benchmarks.runner import RunSettings, run
from benchmarks.suites.base import Options
from hmars.settings import load_profile

EXPECTED = Path(__file__).parent / "expected"
TOLERANCE = 0.005
MEASURES = ("recall", "precision", "sub_em", "named", "abstained")


class Slice(BaseModel):
    """One small run and what it gives."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suite: str
    systems: tuple[str, ...]
    limit: int
    lengths: tuple[int, ...] = ()
    sets: tuple[str, ...] = ()
    retrieval_only: bool = True
    budgets: tuple[int, ...] = (1_000, 4_000)
    needs_data: bool = False
    expected: dict[str, dict[str, float]] = {}
    """By system, then by measure."""

    @property
    def name(self) -> str:
        return f"{self.suite} ({', '.join((*self.sets, f'{self.limit} questions'))})"


def check(data: Path | None, *, update: bool) -> int:
    """Print OK, or which number moved, for every slice; 1 where any moved.

    Slices of real data are passed over, and said to be, without a data folder.
    """
    moved = 0
    for path in sorted(EXPECTED.glob("*.json")):
        wanted = Slice.model_validate_json(path.read_text(encoding="utf-8"))
        if wanted.needs_data and data is None:
            print(f"skipped  {wanted.name}: needs --data")
            continue
        found = asyncio.run(measure(wanted, data))
        if update:
            write_json(path, {**wanted.model_dump(mode="json"), "expected": found})
            print(f"written  {wanted.name}")
            continue
        lines = differences(wanted.expected, found)
        moved += len(lines)
        print(f"{'OK      ' if not lines else 'MOVED   '} {wanted.name}")
        for line in lines:
            print(f"         {line}")
    return 1 if moved else 0


async def measure(wanted: Slice, data: Path | None) -> dict[str, dict[str, float]]:
    """Run a slice in a folder of its own and take the means."""
    with tempfile.TemporaryDirectory() as folder:
        settings = RunSettings(
            suite=wanted.suite,
            systems=wanted.systems,
            profile=load_profile("extractive"),
            out=Path(folder) / "run",
            options=Options(
                data=data, limit=wanted.limit, lengths=wanted.lengths, sets=wanted.sets
            ),
            retrieval_only=wanted.retrieval_only,
            budgets=wanted.budgets,
        )
        done = await run(settings)
        return means(list(Lines(RunFolder(done.path).records).read()))


def means(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """By system, the mean of every measure that is watched."""
    found: dict[str, dict[str, float]] = {}
    for system in systems_of(records):
        mine = [record for record in records if record["system"] == system]
        names = sorted(
            {name for record in mine for name in record["scores"] if name.split("@")[0] in MEASURES}
        )
        found[system] = {}
        for name in names:
            measured = interval(mine, lambda record, name=name: score(record, name))
            if measured is not None:
                found[system][name] = round(measured.mean, 4)
    return found


def differences(
    expected: Mapping[str, Mapping[str, float]], found: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """One line for each number that is not what it was."""
    lines: list[str] = []
    for system in sorted({*expected, *found}):
        was, now = expected.get(system, {}), found.get(system, {})
        for name in sorted({*was, *now}):
            before, after = was.get(name), now.get(name)
            if before is None or after is None or abs(before - after) > TOLERANCE:
                lines.append(f"{system} {name}: expected {before}, now {after}")
    return lines
