"""`python -m benchmarks run | report | check`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from benchmarks import suites, systems
from benchmarks.check import check
from benchmarks.report import write_report
from benchmarks.runner import BUDGETS, RunSettings, run
from benchmarks.suites.base import Options
from hmars.errors import ConfigError, HmarsError
from hmars.settings import load_profile

INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    add = commands.add_parser("run", help="ask the questions of a suite of several systems")
    add.add_argument("--suite", required=True, help=", ".join(suites.names()))
    add.add_argument("--systems", required=True, help="with commas: " + ", ".join(systems.names()))
    add.add_argument("--profile", default="extractive", help="a profile's name or file")
    add.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    add.add_argument("--data", type=Path, help="the folder with the data sets")
    add.add_argument("--out", type=Path, help="default: benchmark-runs/SUITE")
    add.add_argument("--limit", type=int, help="questions, spread over the sets of the suite")
    add.add_argument("--seed", type=int, default=0)
    add.add_argument("--lengths", default="", help="paragraphs, or thousands of words (ruler)")
    add.add_argument("--sets", default="", help="only these data sets of the suite")
    add.add_argument("--resume", action="store_true", help="go on with the run in --out")
    add.add_argument("--retrieval-only", action="store_true", help="evidence at each budget only")
    add.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="prompt tokens")
    add.add_argument("--embeddings", help="minilm, or URL,MODEL")
    add.add_argument(
        "--parameters", default="", help="sizes for FLOPs, as MODEL=NUMBER: gpt-5.1=2e12"
    )
    shown = commands.add_parser("report", help="tables, plots and a page for each question")
    shown.add_argument("folders", nargs="+", type=Path)
    shown.add_argument("--out", type=Path, help="default: the first folder")
    checked = commands.add_parser("check", help="compare a small slice with expected results")
    checked.add_argument("--data", type=Path)
    checked.add_argument("--update", action="store_true", help="write what came out as expected")
    return top


def _run(arguments: argparse.Namespace) -> None:
    names = tuple(name.strip() for name in arguments.systems.split(",") if name.strip())
    for name in names:
        systems.parse(name)
    settings = RunSettings(
        suite=arguments.suite,
        systems=names,
        profile=load_profile(arguments.profile, arguments.overrides),
        out=arguments.out or Path("benchmark-runs") / arguments.suite,
        options=Options(
            data=arguments.data,
            limit=arguments.limit,
            seed=arguments.seed,
            lengths=tuple(int(length) for length in arguments.lengths.split(",") if length),
            sets=tuple(name for name in arguments.sets.split(",") if name),
        ),
        resume=arguments.resume,
        retrieval_only=arguments.retrieval_only,
        budgets=tuple(int(budget) for budget in arguments.budgets.split(",")),
        embeddings=arguments.embeddings,
        parameters=_parameters(arguments.parameters),
    )
    folder = asyncio.run(run(settings))
    print(f"{folder.records}\npython -m benchmarks report {folder.path}")


def _parameters(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        if part:
            model, equals, number = part.rpartition("=")
            try:
                found[model] = float(number)
            except ValueError:
                equals = ""
            if not equals:
                raise ConfigError(f"--parameters takes MODEL=NUMBER, not '{part}'.")
    return found


def main() -> int:
    """Every expected error is one sentence and an exit code."""
    arguments = parser().parse_args()
    try:
        if arguments.command == "run":
            _run(arguments)
        elif arguments.command == "report":
            for path in write_report(arguments.folders, arguments.out or arguments.folders[0]):
                print(path)
        else:
            return check(arguments.data, update=arguments.update)
    except HmarsError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("benchmarks: interrupted; go on with --resume.", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
