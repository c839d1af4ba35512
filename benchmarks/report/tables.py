"""From records to tables: means with intervals, paired differences, scores by what was varied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.records import Record
from hmars.coverage import Interval, mean_interval, paired_difference

VARIED = ("paragraphs", "words", "position", "order", "distance")
MAIN = ("judge", "accuracy", "sub_em", "named", "abstained", "recall")
"""The measure of a question that stands for it in plots: the first that it has."""
ANSWER = (
    "recall",
    "recall_nearly",
    "recall_partial",
    "precision",
    "em",
    "f1",
    "sub_em",
    "sub_em_paper",
    "named",
    "accuracy",
    "judge",
    "abstained",
)
Value = Callable[[Record], float | None]


@dataclass(frozen=True)
class Table:
    """Cells are text already; the first column names the row."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Line:
    """One line of a plot: a system's points with their intervals."""

    name: str
    points: tuple[tuple[float, Interval], ...]


@dataclass(frozen=True)
class Chart:
    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...] = ()
    """Named places of the x axis; empty takes numbers."""


def score(record: Record, measure: str) -> float | None:
    found = record.get("scores", {}).get(measure)
    return None if found is None else float(found)


def main_score(record: Record) -> float | None:
    """The measure that stands for the question."""
    return next((value for name in MAIN if (value := score(record, name)) is not None), None)


def systems_of(records: Iterable[Record]) -> list[str]:
    return list(dict.fromkeys(str(record["system"]) for record in records))


def budgets_of(records: Iterable[Record]) -> list[int]:
    """Budgets of a retrieval-only run; empty for a run with answers."""
    found = {
        int(name.split("@")[1])
        for record in records
        for name in record.get("scores", {})
        if name.startswith("recall@")
    }
    return sorted(found)


def interval(records: Iterable[Record], value: Value) -> Interval | None:
    return mean_interval([found for record in records if (found := value(record)) is not None])


def cell(found: Interval | None) -> str:
    return "" if found is None else str(found)


def short(found: Interval | None) -> str:
    return "" if found is None else f"{found.mean:.3f}"


# ------------------------------------------------------------------ evidence at fixed budgets


def budget_table(records: Sequence[Record], title: str) -> Table:
    """Recall of every system at every budget."""
    budgets = budgets_of(records)
    rows = [
        (
            system,
            *(cell(interval(mine, _at("recall", budget))) for budget in budgets),
            short(interval(mine, _at("precision", budgets[-1]))),
            short(interval(mine, lambda record: record.get("seconds"))),
            str(len(mine)),
        )
        for system, mine in _by_system(records)
    ]
    head = ("system", *(f"recall at {budget:,}" for budget in budgets))
    return Table(
        title,
        (*head, f"precision at {budgets[-1]:,}", "seconds", "questions"),
        tuple(rows),
        "Whole gold units in the evidence; 95 % bootstrap intervals over questions.",
    )


def set_table(records: Sequence[Record], value: Callable[[int | None], Value]) -> Table:
    """One row a set, one column a system, or the other way round where there are more systems;
    with budgets, all of them in a cell."""
    budgets = budgets_of(records)
    names = systems_of(records)
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(str(record["set"]) for record in records):
        inside = [record for record in records if record["set"] == name]
        cells: list[str] = []
        for system in names:
            mine = [record for record in inside if record["system"] == system]
            if budgets:
                found = [short(interval(mine, value(budget))) for budget in budgets]
                cells.append(" / ".join(found) if any(found) else "")
            else:
                cells.append(cell(interval(mine, value(None))))
        count = len({record["case"] for record in inside})
        rows.append((name, str(count), *cells))
    what = (
        "Recall at " + " / ".join(f"{budget:,}" for budget in budgets)
        if budgets
        else "The measure of each question: " + ", ".join(MAIN)
    )
    table = (("set", "questions", *names), *rows)
    if len(names) > len(rows):
        table = tuple(zip(*table, strict=True))
    return Table("By data set", table[0], tuple(table[1:]), what)


def difference_table(records: Sequence[Record], base: str, measures: Mapping[str, Value]) -> Table:
    """`base` minus every other system on the questions both have."""
    rows: list[tuple[str, ...]] = []
    values = {
        system: {
            name: {
                str(record["case"]): found
                for record in mine
                if (found := value(record)) is not None
            }
            for name, value in measures.items()
        }
        for system, mine in _by_system(records)
    }
    for system in systems_of(records):
        if system != base:
            cells = (
                cell(paired_difference(values[base][name], values[system][name]))
                for name in measures
            )
            rows.append((system, *cells))
    return Table(
        f"{base} minus the other, paired",
        ("other system", *measures),
        tuple(rows),
        "On the questions that both answered; an interval without 0 is a difference.",
    )


def recall_at(budget: int | None) -> Value:
    return _at("recall", budget) if budget else main_score


def _at(measure: str, budget: int | None) -> Value:
    name = measure if budget is None else f"{measure}@{budget}"
    return lambda record: score(record, name)


# ------------------------------------------------------------------ answers


def answer_table(records: Sequence[Record]) -> Table:
    """Every measure that any question has, one row a system."""
    measures = [
        name for name in ANSWER if any(score(record, name) is not None for record in records)
    ]
    rows: list[tuple[str, ...]] = []
    for system, mine in _by_system(records):
        failed = sum(bool(record.get("error")) for record in mine)
        unscored = sum(
            name in record.get("scores", {}) and record["scores"][name] is None
            for record in mine
            for name in measures
        )
        rows.append(
            (
                system,
                str(len(mine)),
                str(failed),
                str(unscored),
                *(cell(interval(mine, _at(name, None))) for name in measures),
            )
        )
    head = ("system", "questions", "failed", "unscored", *measures)
    note = (
        "An empty cell: the system passes on no source text, or has no such questions. Means are "
        "over questions that did not fail; the differences below, over those where neither did."
    )
    return Table("Evidence and answers", head, tuple(rows), note)


def cost_table(records: Sequence[Record]) -> Table:
    """What a question took, and what building took, in means."""
    roles = sorted(
        {role for record in records for role in {**record.get("usage", {}), **_built(record)}}
    )
    rows: list[tuple[str, ...]] = []
    for system, mine in _by_system(records):
        cells = [
            _mean(mine, lambda record: record.get("evidence_tokens")),
            _mean(mine, lambda record: record.get("prompt_tokens")),
            _mean(mine, lambda record: record.get("seconds"), "{:.2f}"),
            _mean(mine, lambda record: record.get("flops"), "{:.2g}"),
        ]
        cells += [_role(mine, role, "usage") for role in roles]
        built = [record for record in mine if "build_seconds" in record]
        cells.append(_mean(built, lambda record: record["build_seconds"], "{:.2f}"))
        cells.append(
            "; ".join(
                f"{role} {_role(built, role, 'build_usage')}"
                for role in roles
                if _role(built, role, "build_usage")
            )
        )
        rows.append((system, *cells))
    head = (
        "system", "evidence tokens", "answer prompt tokens", "seconds", "FLOPs",
        *(f"{role}: calls, tokens" for role in roles), "build seconds", "build calls, tokens",
    )  # fmt: skip
    note = (
        "Means a question; building a document, a mean over documents. FLOPs: 2 x parameters x "
        "tokens over all roles, where the models' sizes are known."
    )
    return Table("Cost", head, tuple(rows), note)


def _built(record: Record) -> Record:
    return record.get("build_usage", {})


def _mean(records: Sequence[Record], value: Value, form: str = "{:,.0f}") -> str:
    found = [float(number) for record in records if (number := value(record)) is not None]
    return form.format(sum(found) / len(found)) if found else ""


def _role(records: Sequence[Record], role: str, key: str) -> str:
    """Mean calls and mean tokens of prompt and reply."""
    spent = [record[key][role] for record in records if role in record.get(key, {})]
    if not spent:
        return ""
    count = len(records)
    calls = sum(usage.get("calls", 0) for usage in spent) / count
    tokens = sum(
        usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0) for usage in spent
    )
    return f"{calls:.1f}, {tokens / count:,.0f}"


# ------------------------------------------------------------------ what was varied


def varied_tables(records: Sequence[Record]) -> list[Table]:
    """The main measure by length, position, order and distance, where they were varied."""
    tables: list[Table] = []
    names = systems_of(records)
    for label in VARIED:
        values = _values(records, label)
        if len(values) < 2:
            continue
        rows = [
            (
                value,
                *(
                    cell(interval(_with(records, label, value, system), _any_score))
                    for system in names
                ),
            )
            for value in values
        ]
        tables.append(Table(f"By {label}", (label, *names), tuple(rows)))
    return tables


def charts(records: Sequence[Record]) -> list[Chart]:
    """Recall against tokens, and the main measure against what was varied."""
    found: list[Chart] = []
    budgets = budgets_of(records)
    if budgets:
        found.append(_cost_chart(records, budgets))
    for label in VARIED:
        values = _values(records, label)
        if len(values) < 2:
            continue
        lines = tuple(
            Line(
                system,
                tuple(
                    (float(number), measured)
                    for number, value in enumerate(values)
                    if (measured := interval(_with(records, label, value, system), _any_score))
                ),
            )
            for system in systems_of(records)
        )
        ticks = tuple((float(number), value) for number, value in enumerate(values))
        found.append(Chart(f"Score by {label}", label, "score", lines, ticks))
    return found


def _cost_chart(records: Sequence[Record], budgets: Sequence[int]) -> Chart:
    lines: list[Line] = []
    for system, mine in _by_system(records):
        points: list[tuple[float, Interval]] = []
        for budget in budgets:
            tokens = interval(mine, _at("tokens", budget))
            recall = interval(mine, _at("recall", budget))
            if tokens and recall:
                points.append((tokens.mean, recall))
        lines.append(Line(system, tuple(points)))
    return Chart("Recall against cost", "prompt tokens (mean)", "recall", tuple(lines))


def _any_score(record: Record) -> float | None:
    budgets = budgets_of([record])
    return score(record, f"recall@{budgets[0]}") if budgets else main_score(record)


def _values(records: Sequence[Record], label: str) -> list[str]:
    found = {str(record["labels"][label]) for record in records if label in record["labels"]}
    return sorted(found, key=lambda value: (int("".join(filter(str.isdigit, value)) or 0), value))


def _with(records: Sequence[Record], label: str, value: str, system: str) -> list[Record]:
    return [
        record
        for record in records
        if record["system"] == system and record["labels"].get(label) == value
    ]


def _by_system(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    grouped: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        grouped[str(record["system"])].append(record)
    return list(grouped.items())
