"""The lead against the single query, and its time against the number of windows.

    python -m benchmarks.lead latency --windows 100 1000 --latency 2
    python -m benchmarks.lead multihop --data DIR --profile PROFILE --limit 90

`latency`: a server in a process of its own answers every call after a fixed time, with permits for
all readers at once. The critical path of a question of three turns of which two ask is five
latencies, however long the text; what is above it is the cost of the fan-out itself.

`multihop`: HotpotQA, 2WikiMultiHopQA and MuSiQue packed into documents of 50 paragraphs (or
`--paragraphs`). Sub_EM is the honest one: a reply that says there is no answer is never right.
Findings recall is the share of supporting paragraphs in which a verified finding lies; evidence
recall the share that lies wholly in what was put before the answer model.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.lead.latency import latency
from benchmarks.lead.multihop import DRIVERS, multihop
from hmars.errors import HmarsError


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks.lead", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    timed = commands.add_parser("latency", help="wall time against the number of windows")
    timed.add_argument("--windows", type=int, nargs="+", default=[100, 1000])
    timed.add_argument("--latency", type=float, default=2.0, help="seconds of every call")
    timed.set_defaults(run=latency)
    asked = commands.add_parser("multihop", help="single and lead on multi-hop questions")
    asked.add_argument("--data", type=Path, required=True, help="the folder that holds multihop/")
    asked.add_argument("--profile", default="extractive", help="a profile's name or file")
    asked.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    asked.add_argument("--limit", type=int, default=90, help="questions, spread over the sets")
    asked.add_argument("--paragraphs", type=int, default=50)
    asked.add_argument("--together", type=int, default=1, help="questions asked of one document")
    asked.add_argument("--at-once", type=int, default=1, help="questions asked side by side")
    asked.add_argument("--plain", action="store_true", help="index without a model: no cards of it")
    asked.add_argument("--sets", default="", help="with commas: hotpotqa, 2wiki, musique")
    asked.add_argument("--drivers", nargs="+", choices=DRIVERS, default=list(DRIVERS))
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--out", type=Path, help="add one line of JSON a question to this file")
    asked.add_argument("--resume", action="store_true", help="keep what --out has, ask the rest")
    asked.set_defaults(run=multihop)
    return top


def main() -> None:
    arguments = parser().parse_args()
    try:
        arguments.run(arguments)
    except HmarsError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
