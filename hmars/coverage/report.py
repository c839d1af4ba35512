"""The result of an analysis as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from hmars.coverage.analyse import CoverageRecord
from hmars.coverage.stats import Interval, mean_interval, paired_difference

LONGEST_QUESTION = 90


def summary(records: Sequence[CoverageRecord]) -> str:
    """Means with intervals for each system, differences, and what hmars missed. Markdown."""
    systems = list(dict.fromkeys(record.system for record in records))
    head = "| system | evidence recall | partly | precision | evidence tokens | seconds | failed |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for system in systems:
        mine = [record for record in records if record.system == system]
        scored = [record for record in mine if record.recall is not None]
        cells = (
            system,
            _shown(mean_interval([record.recall or 0.0 for record in scored])),
            _shown(mean_interval([record.partial or 0.0 for record in scored])),
            _shown(mean_interval([record.precision or 0.0 for record in scored])),
            f"{_mean([record.evidence_tokens for record in scored]):,.0f}",
            f"{_mean([record.seconds for record in mine]):.2f}",
            str(sum(record.error is not None for record in mine)),
        )
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "Recall: pieces of evidence wholly before the answer model; 95 % intervals."]
    lines += _differences(records, systems)
    lines += _missed(records)
    return "\n".join(lines)


def _differences(records: Sequence[CoverageRecord], systems: Sequence[str]) -> list[str]:
    recall = {
        system: {
            str(record.line): record.recall
            for record in records
            if record.system == system and record.recall is not None
        }
        for system in systems
    }
    lines: list[str] = []
    for system in systems[1:]:
        found = paired_difference(recall[systems[0]], recall[system])
        if found is not None:
            lines.append(f"{systems[0]} minus {system}, recall on the same questions: {found}")
    return ["", *lines] if lines else []


def _missed(records: Sequence[CoverageRecord]) -> list[str]:
    lines = [
        f"- line {record.line}: {_cut(record.question)}: "
        + (
            f"failed: {record.error}"
            if record.error
            else f"{len(record.missed)} of {record.gold} pieces not wholly passed on "
            f"({', '.join(map(str, record.missed))})"
        )
        for record in records
        if record.system == "hmars" and (record.missed or record.error)
    ]
    return ["", "Not covered by hmars:", "", *lines] if lines else ["", "hmars covered everything."]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_QUESTION else line[: LONGEST_QUESTION - 1] + "…"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _shown(found: Interval | None) -> str:
    return "" if found is None else str(found)
