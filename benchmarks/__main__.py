"""`python -m benchmarks run | report | check`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
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
    add.add_argument("--suite", required=True, help="with commas: " + ", ".join(suites.names()))
    add.add_argument(
        "--systems", required=True, help="all, or with commas: " + ", ".join(systems.names())
    )
    add.add_argument("--profile", default="extractive", help="a profile's name or file")
    add.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    add.add_argument("--data", type=Path, help="the folder with the data sets")
    add.add_argument(
        "--out", type=Path, help="default: benchmark-runs/SUITE; of several suites: OUT/SUITE"
    )
    add.add_argument("--limit", type=int, help="questions, spread over the sets of the suite")
    add.add_argument("--seed", type=int, default=0)
    add.add_argument("--lengths", default="", help="paragraphs, or thousands of words (ruler)")
    add.add_argument(
        "--sets", default="", help="only these data sets; of one suite of several: SUITE/SET"
    )
    add.add_argument("--together", type=int, default=1, help="questions a document (multihop)")
    add.add_argument(
        "--whole", action="store_true", help="--limit takes all questions of a document, then more"
    )
    add.add_argument("--at-once", type=int, default=1, help="systems asked side by side")
    add.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="of a loader: pack=2"
    )
    add.add_argument("--resume", action="store_true", help="go on with the run in --out")
    add.add_argument("--report", action="store_true", help="write the report at the end")
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
    chosen = _listed(arguments.suite)
    for suite in chosen:
        if suite not in suites.names():
            raise ConfigError(f"There is no suite '{suite}': use {', '.join(suites.names())}.")
    names = tuple(systems.names()) if arguments.systems == "all" else _listed(arguments.systems)
    for name in names:
        systems.parse(name)
    out: Path | None = arguments.out
    for suite in chosen:
        folder = out or Path("benchmark-runs") / suite
        if out is not None and len(chosen) > 1:
            folder = out / suite
        found = asyncio.run(run(_settings(arguments, suite, names, folder)))
        print(f"{found.records}\npython -m benchmarks report {found.path}")
        if arguments.report:
            print("\n".join(str(path) for path in write_report([found.path], found.path)))


def _settings(
    arguments: argparse.Namespace, suite: str, names: tuple[str, ...], folder: Path
) -> RunSettings:
    return RunSettings(
        suite=suite,
        systems=names,
        profile=load_profile(arguments.profile, arguments.overrides),
        out=folder,
        options=Options(
            data=arguments.data,
            limit=arguments.limit,
            seed=arguments.seed,
            lengths=tuple(int(length) for length in _listed(arguments.lengths)),
            sets=sets_of(arguments.sets, suite),
            together=arguments.together,
            whole=arguments.whole,
            extra=_options(arguments.option),
        ),
        resume=arguments.resume,
        retrieval_only=arguments.retrieval_only,
        budgets=tuple(int(budget) for budget in _listed(arguments.budgets)),
        embeddings=arguments.embeddings,
        at_once=arguments.at_once,
        parameters=_parameters(arguments.parameters),
    )


def _options(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise ConfigError(f"--option takes KEY=VALUE, not '{pair}'.")
    return dict(pair.split("=", 1) for pair in pairs)


def sets_of(text: str, suite: str) -> tuple[str, ...]:
    """The sets that are meant for this suite."""
    parts = [name.rpartition("/") for name in _listed(text)]
    return tuple(name for of, _, name in parts if of in ("", suite))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


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
