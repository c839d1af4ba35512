"""Suites by name. Each reads `--data`, or generates its documents from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from benchmarks.suites.base import Bundle, Loader, Options, spread_cases
from benchmarks.suites.filters import broad
from benchmarks.suites.sets import (
    beam,
    contract_nli,
    cuad,
    cumulative,
    financebench,
    lihua,
    locomo,
    longbench,
    longmemeval,
    memdaily,
    multihop,
    qasper,
    qmsum,
    realmem,
    ruler,
)
from hmars.errors import ConfigError

BREADTH: dict[str, Loader] = {
    "cuad": cuad.load,
    "contract_nli": contract_nli.load,
    "qmsum": qmsum.load,
    "memdaily": memdaily.load,
    "beam": beam.load,
    "locomo": locomo.load,
    "realmem": realmem.load,
}
DIALOGUE: dict[str, Loader] = {
    "locomo": locomo.load,
    "longmemeval": longmemeval.load,
    "realmem": realmem.load,
    "beam": beam.load,
    "lihua_world": lihua.load,
}
ABSTENTION: dict[str, Loader] = {
    "locomo": locomo.load,
    "beam": beam.load,
    "contract_nli": contract_nli.load,
    "lihua_world": lihua.load,
}


def names() -> list[str]:
    return sorted(SUITES)


def load(name: str, options: Options) -> Iterator[Bundle]:
    """The documents and questions of a suite, lazily where a document is large.

    Raises:
        ConfigError: no such suite, no data folder, or no such set in the suite.
    """
    if name not in SUITES:
        raise ConfigError(f"There is no suite '{name}': use one of {', '.join(names())}.")
    return SUITES[name](options)


def _members(options: Options, table: dict[str, Loader]) -> Iterator[Bundle]:
    """Whole sets one after another; the limit is applied by who calls."""
    unknown = sorted(set(options.sets) - set(table))
    if unknown:
        raise ConfigError(f"This suite has no set '{unknown[0]}': use {', '.join(table)}.")
    for name, loader in table.items():
        if not options.sets or name in options.sets:
            yield from loader(replace(options, limit=None))


def _breadth(options: Options) -> Iterator[Bundle]:
    """At least four gold units of which plain BM25 finds at most half (S-HMARS App. A.1).

    For ContractNLI the filter looks at the agreement alone, though it is asked in a pack.
    """
    options = replace(options, extra={**options.extra, "least_units": "4"})
    wanted = not options.sets or "contract_nli" in options.sets
    alone = _agreements(options) if wanted else set[str]()
    found: list[Bundle] = []
    for bundle in _members(options, BREADTH):
        if bundle.document.id.startswith("contract_nli/"):
            cases = tuple(case for case in bundle.cases if case.id in alone)
            kept = Bundle(bundle.document, cases, bundle.units)
        else:
            kept = broad(bundle)
        if kept.cases:
            found.append(kept)
    return iter(spread_cases(found, options))


def _agreements(options: Options) -> set[str]:
    single = replace(options, extra={**options.extra, "pack": "1"})
    return {case.id for bundle in contract_nli.load(single) for case in broad(bundle).cases}


def _plain(options: Options, table: dict[str, Loader]) -> Iterator[Bundle]:
    kept = (
        replace(bundle, cases=tuple(case for case in bundle.cases if case.scoring != "abstain"))
        for bundle in _members(options, table)
    )
    return _limited((bundle for bundle in kept if bundle.cases), options)


def _limited(bundles: Iterator[Bundle], options: Options) -> Iterator[Bundle]:
    """All of them one by one, or, where there is a limit, a choice that needs all of them first."""
    if options.limit is None:
        return bundles
    return iter(spread_cases(list(bundles), options))


def _abstention(options: Options) -> Iterator[Bundle]:
    """Unanswerable questions, and as many answerable ones of the same documents beside them."""
    mixed: list[Bundle] = []
    for bundle in _members(options, ABSTENTION):
        without = [case for case in bundle.cases if case.scoring == "abstain"]
        answerable = [case for case in bundle.cases if case.scoring != "abstain" and case.gold]
        paired = [
            replace(case, set=f"{case.set} (answerable)") for case in answerable[: len(without)]
        ]
        if without:
            mixed.append(replace(bundle, cases=(*without, *paired)))
    return iter(spread_cases(mixed, options))


def _single(options: Options, name: str, loader: Loader) -> Iterator[Bundle]:
    return _plain(options, {name: loader})


SUITES: dict[str, Loader] = {
    "multihop": multihop.load,
    "multihop-position": partial(multihop.load, control="position"),
    "multihop-order": partial(multihop.load, control="order"),
    "multihop-distance": partial(multihop.load, control="distance"),
    "evidence-breadth": _breadth,
    "longbench-v2": partial(_single, name="longbench_v2", loader=longbench.load),
    "dialogue": partial(_plain, table=DIALOGUE),
    "financebench": partial(_single, name="financebench", loader=financebench.load),
    "qasper": partial(_single, name="qasper", loader=qasper.load),
    "abstention": _abstention,
    "ruler": ruler.load,
    "cumulative": cumulative.load,
}
