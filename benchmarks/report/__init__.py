"""The report of one or several runs: Markdown, HTML, and a page for each question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.records import Lines, Record, RunFolder, read_manifest
from benchmarks.report.pages import index_page, page_name, question_page
from benchmarks.report.tables import (
    Table,
    answer_table,
    budget_table,
    budgets_of,
    charts,
    cost_table,
    difference_table,
    main_score,
    recall_at,
    set_table,
    systems_of,
    varied_tables,
)
from hmars.errors import ConfigError

BASE = "hmars"
"""The system that others are compared with, where it is among them."""
NAMED = 4
"""More systems than this are counted in the title."""


def write_report(folders: Sequence[Path], out: Path) -> list[Path]:
    """Write `report.md`, `index.html` and a page for each question under `out`.

    Runs of one suite are put together; of a question in several of them the last record counts.

    Raises:
        ConfigError: a folder holds no run, or the runs are of different suites or kinds.
    """
    manifests = [read_manifest(folder) for folder in folders]
    if len({manifest["suite"] for manifest in manifests}) > 1:
        raise ConfigError("A report is about one suite: give the folders of one at a time.")
    records = _records(folders, [name for one in manifests for name in one["systems"]])
    if not records:
        raise ConfigError(f"{folders[0]} has no records yet: the run has just begun.")
    tables = tables_of(records)
    names = systems_of(records)
    many = len(names) > NAMED
    title = f"{manifests[0]['suite']}: {f'{len(names)} systems' if many else ', '.join(names)}"
    facts = _facts(manifests, records)
    by_case: dict[str, list[Record]] = {}
    for record in records:
        by_case.setdefault(record["case"], []).append(record)
    out.mkdir(parents=True, exist_ok=True)
    (out / "q").mkdir(exist_ok=True)
    markdown = out / "report.md"
    markdown.write_text(to_markdown(title, facts, tables), encoding="utf-8")
    page = out / "index.html"
    plots = charts(records)
    page.write_text(
        index_page(title, facts, tables, plots, list(by_case.values())), encoding="utf-8"
    )
    for case, found in by_case.items():
        text = _text(folders, str(found[0]["document"]))
        (out / page_name(case)).write_text(question_page(found, text), encoding="utf-8")
    return [markdown, page]


def tables_of(records: Sequence[Record]) -> list[Table]:
    """All tables that the records give."""
    names = systems_of(records)
    base = BASE if BASE in names else names[0]
    budgets = budgets_of(records)
    if budgets:
        measures = {f"recall at {budget:,}": recall_at(budget) for budget in budgets}
        tables = [budget_table(records, "Evidence recall at equal prompt budgets")]
    else:
        measures = {"score": main_score}
        tables = [answer_table(records), cost_table(records)]
    if len(names) > 1:
        tables.append(difference_table(records, base, measures))
    tables.append(set_table(records, recall_at))
    return [*tables, *varied_tables(records)]


def to_markdown(title: str, facts: Sequence[tuple[str, str]], tables: Sequence[Table]) -> str:
    parts = [f"# {title}\n"]
    parts += [f"- {name}: {value}" for name, value in facts]
    for table in tables:
        parts.append(f"\n## {table.title}\n\n{markdown_table(table)}")
        if table.note:
            parts.append(f"\n{table.note}")
    return "\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    rows = [table.head, tuple("---" for _ in table.head), *table.rows]
    return "\n".join(
        "| " + " | ".join(value.replace("|", "\\|") for value in row) + " |" for row in rows
    )


def _records(folders: Sequence[Path], order: Sequence[str]) -> list[Record]:
    """The last record of each question, systems in the order they were named in."""
    last: dict[tuple[str, str], Record] = {}
    for folder in folders:
        for record in Lines(RunFolder(folder).records).read():
            last[record["system"], record["case"]] = record
    place = {name: at for at, name in reversed(list(enumerate(order)))}
    return sorted(last.values(), key=lambda record: place.get(record["system"], len(order)))


def _facts(manifests: Sequence[Record], records: Sequence[Record]) -> list[tuple[str, str]]:
    first = manifests[0]
    options = {key: value for key, value in first["options"].items() if value}
    models = first["models"] or {"all roles": "none (deterministic agents)"}
    return [
        ("date", ", ".join(str(manifest["date"]) for manifest in manifests)),
        ("commit", ", ".join(sorted({name for one in manifests for name in one["commits"]}))),
        ("command", "; ".join(f"python -m benchmarks {one['command']}" for one in manifests)),
        ("profile", str(first["profile"]["name"])),
        ("models", ", ".join(f"{role}: {name}" for role, name in models.items())),
        ("tokenizer", str(first["tokenizer"])),
        ("embeddings", str(first["embeddings"] or "none")),
        ("options", json.dumps(options) if options else "none"),
        ("data", str(first.get("data_sha256", "unfinished run"))[:16]),
        ("questions", str(len({record["case"] for record in records}))),
    ]


def _text(folders: Sequence[Path], document: str) -> str | None:
    for folder in folders:
        path = RunFolder(folder).document(document)
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                return file.read()
    return None
