"""The report as HTML: an index with tables and plots, and one page for each question."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.records import Record
from benchmarks.report.plots import svg
from benchmarks.report.tables import Chart, Table
from hmars.coverage.spans import Span, overlap, trimmed, union

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1500px; margin: 2rem auto; padding: 0 1rem;
  color: #1c1c1c; background: #fff; }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0 .3rem; }
.wide { overflow-x: auto; }
.wide tr > :first-child { position: sticky; left: 0; background: #fff; }
p, pre, summary { max-width: 1100px; }
.facts th, .facts td { white-space: normal; border-bottom: 1px solid #ddd; vertical-align: top; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #ddd;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th { border-bottom: 2px solid #888; }
caption, .note { color: #666; font-size: 13px; text-align: left; }
svg { width: 100%; max-width: 760px; font: 12px system-ui, sans-serif; }
svg text { fill: #333; } svg .grid { stroke: #ddd; }
details { margin: .4rem 0; } summary { cursor: pointer; }
pre { white-space: pre-wrap; font: 13px/1.45 ui-monospace, monospace; background: #f6f6f6;
  padding: .6rem; border-radius: 4px; }
mark { background: #cdebd0; } .missing { background: #f8d7d0; }
@media (prefers-color-scheme: dark) {
  body, .wide tr > :first-child { background: #16181b; }
  body { color: #e4e4e4; } pre { background: #22262a; }
  th, td { border-color: #3a3f44; } svg text { fill: #ccc; } svg .grid { stroke: #3a3f44; }
  mark { background: #24502c; color: inherit; } .missing { background: #5a2a22; }
  .note { color: #999; }
  a { color: #7fb4e0; }
}
"""
LONGEST_SPAN = 1_500


def page_name(case: str) -> str:
    return f"q/{hashlib.sha256(case.encode()).hexdigest()[:16]}.html"


def index_page(
    title: str,
    facts: Sequence[tuple[str, str]],
    tables: Sequence[Table],
    charts: Sequence[Chart],
    cases: Sequence[Sequence[Record]],
) -> str:
    body = [f"<h1>{escape(title)}</h1>", _facts(facts)]
    for chart in charts:
        body += [f"<h2>{escape(chart.title)}</h2>", svg(chart)]
    body += [_table(table) for table in tables]
    body.append("<h2>Questions</h2>")
    rows = "".join(
        f'<tr><td><a href="{page_name(records[0]["case"])}">{escape(records[0]["case"])}</a></td>'
        f"<td>{escape(records[0]['set'])}</td><td>{escape(records[0]['kind'])}</td></tr>"
        for records in cases
    )
    body.append(f"<div class=wide><table><tr><th>question<th>set<th>kind</tr>{rows}</table></div>")
    return _page(title, "\n".join(body))


def question_page(records: Sequence[Record], text: str | None) -> str:
    """The question, its gold with what was missed by whom, and every system's answer."""
    first = records[0]
    body = [
        '<p><a href="../index.html">all questions</a></p>',
        f"<h1>{escape(first['case'])}</h1>",
        f"<p>{escape(first['question'])}</p>",
    ]
    if first["answers"]:
        body.append(f"<p><b>Gold answer</b>: {escape(' | '.join(first['answers']))}</p>")
    if text is not None and first["gold"]:
        body += _gold(first, records, text)
    body += [_answered(record, text) for record in records]
    return _page(first["case"], "\n".join(body))


def _gold(first: Record, records: Sequence[Record], text: str) -> list[str]:
    parts = ["<h2>Gold evidence</h2>"]
    passed = {
        record["system"]: union((part[0], part[1]) for part in record.get("evidence") or ())
        for record in records
    }
    for number, places in enumerate(first["gold"], start=1):
        start, end = trimmed(text, (places[0][0], places[0][1]))
        marks: list[str] = []
        for system, evidence in passed.items():
            share = max(_share(text, (low, high), evidence) for low, high in places)
            kind = "" if share == 1.0 else ' class="missing"'
            marks.append(f"<mark{kind}>{escape(system)} {share:.0%}</mark>")
        quote = escape(_cut(text[start:end]))
        place = f"{number}. characters {start}-{end} {' '.join(marks)}"
        parts.append(f"<p>{place}</p><pre>{quote}</pre>")
    return parts


def _share(text: str, place: Span, evidence: Sequence[Span]) -> float:
    start, end = trimmed(text, place)
    return overlap((start, end), evidence) / max(1, end - start)


def _answered(record: Record, text: str | None) -> str:
    parts = [f"<h2>{escape(record['system'])}</h2>"]
    if record.get("error"):
        return parts[0] + f"<p class=missing>failed: {escape(record['error'])}</p>"
    if record.get("answer"):
        parts.append(f"<pre>{escape(record['answer'])}</pre>")
    parts.append(_scores(record))
    cost = {
        "evidence tokens": f"{record.get('evidence_tokens', 0):,}",
        "seconds": f"{record.get('seconds', 0):.2f}",
        **{role: str(usage) for role, usage in record.get("usage", {}).items()},
    }
    parts.append(_pairs(cost))
    parts += [f"<p class=note>{escape(note)}</p>" for note in record.get("notes", ())]
    if text is not None and record.get("evidence"):
        parts.append(_evidence(record, text))
    return "\n".join(parts)


def _scores(record: Record) -> str:
    """In one line; with budgets, one row a budget."""
    found: dict[str, dict[str, str]] = {}
    for name, value in record["scores"].items():
        measure, _, budget = name.partition("@")
        shown = "unscored" if value is None else f"{value:,.0f}" if value > 1 else f"{value:.3g}"
        found.setdefault(budget, {})[measure] = shown
    if "" in found or not found:
        line = found.get("", {})
        return _pairs({**line, "judge says": record["judge"]} if record.get("judge") else line)
    names = list(dict.fromkeys(name for row in found.values() for name in row))
    rows = tuple(
        (f"{int(budget):,}", *(row.get(name, "") for name in names))
        for budget, row in found.items()
    )
    return _rows(("budget", *names), rows)


def _evidence(record: Record, text: str) -> str:
    spans = "".join(
        f"<p>characters {part[0]}-{part[1]}, {part[2]} tokens, score {part[3]:.3f}</p>"
        f"<pre>{escape(_cut(text[part[0] : part[1]]))}</pre>"
        for part in record["evidence"]
    )
    count = len(record["evidence"])
    return f"<details><summary>Evidence passed: {count} spans</summary>{spans}</details>"


def _cut(text: str) -> str:
    if len(text) <= LONGEST_SPAN:
        return text
    return f"{text[:LONGEST_SPAN]}\n[... {len(text) - LONGEST_SPAN} more characters]"


def _pairs(values: Mapping[str, str]) -> str:
    shown = " · ".join(f"{escape(name)}: {escape(value)}" for name, value in values.items())
    return f"<p class=note>{shown}</p>"


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}<td>{escape(value)}</tr>" for name, value in facts)
    return f"<table class=facts>{rows}</table>"


def _table(table: Table) -> str:
    body = _rows(table.head, table.rows)
    return f"<h2>{escape(table.title)}</h2>{body}<p class=note>{escape(table.note)}</p>"


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(name)}" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) + "</tr>" for row in rows
    )
    return f"<div class=wide><table><tr>{top}</tr>{body}</table></div>"


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>{body}</html>\n"
    )
