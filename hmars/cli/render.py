"""Turn results into text for people. JSON output prints the models themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hmars.indexing.estimate import RoleEstimate
from hmars.memory import Estimate
from hmars.model import (
    Answer,
    Citation,
    Document,
    Failure,
    IndexReport,
    Ledger,
    Round,
    Usage,
)

if TYPE_CHECKING:
    from hmars.llm.probe import Finding

LONGEST_SHOWN_QUOTE = 240


def answer_text(answer: Answer) -> str:
    return answer.answer


def proof_text(answer: Answer, titles: Mapping[str, str]) -> str:
    """Citations, ledger and cost below an answer."""
    parts: list[str] = []
    if answer.citations:
        parts.append("\n".join(_citation(citation, titles) for citation in answer.citations))
    parts.append(ledger_text(answer))
    return "\n\n".join(parts)


def _citation(citation: Citation, titles: Mapping[str, str]) -> str:
    title = titles.get(citation.document, citation.document)
    quote = shorten(citation.quote, LONGEST_SHOWN_QUOTE)
    place = f"{title}, {citation.label} (page {citation.page}, {citation.start}-{citation.end})"
    return f"  [{citation.number}] “{quote}”\n      {place}"


def shorten(text: str, limit: int) -> str:
    """On one line, its end cut off where it is too long to read there."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _failure_text(failure: Failure) -> str:
    parts = [failure.document] if failure.document else []
    parts += [f"region {failure.region}"] if failure.region else []
    parts += [f"group {failure.group}"] if failure.group else []
    place = f", {' '.join(parts)}" if parts else ""
    return f"{failure.stage} failed{place}: {failure.reason}"


def _round_lines(rounds: Sequence[Round]) -> list[str]:
    """What the lead asked in each round, and what came of it."""
    lines: list[str] = []
    for number, item in enumerate(rounds, start=1):
        asked = "; ".join(f"“{shorten(query, 100)}”" for query in item.queries)
        if asked:
            asked += f": {plural(len(item.findings), 'finding')}"
        note = shorten(item.note, 200)
        if asked or note:
            lines.append(f"  round {number}: {', '.join(part for part in (asked, note) if part)}")
    return lines


def ledger_text(answer: Answer) -> str:
    """One line that says what was read, one for each thing that was not, one for the cost."""
    ledger = answer.ledger
    lines = [_read_line(answer), *_round_lines(answer.rounds)]
    lines += [f"  {_failure_text(failure)}" for failure in ledger.failures]
    if ledger.regions_without_card:
        lines.append(
            f"  {plural(ledger.regions_without_card, 'region')} had no memory card yet: "
            "the index is unfinished, run `hmars index` again."
        )
    if ledger.pages_left_out:
        lines.append(
            f"  {plural(ledger.pages_left_out, 'selected page')} did not fit the answer prompt."
        )
    if ledger.rejected_quotes:
        lines.append(f"  {plural(ledger.rejected_quotes, 'quotation')} could not be verified.")
    lines += [f"  {text}" for text in ledger.notes]
    lines.append(cost_text(answer.usage, answer.seconds.total))
    return "\n".join(lines)


def _read_line(answer: Answer) -> str:
    ledger: Ledger = answer.ledger
    tokens = sum(span.tokens for span in answer.evidence)
    pages = len({(span.document, span.page) for span in answer.evidence})
    considered = ledger.regions - ledger.failed - ledger.truncated - ledger.skipped
    if ledger.read_whole:
        how = "read whole"
    else:
        how = f"{ledger.selected} selected, {ledger.abstained} abstained"
        how += "".join(
            f", {count} {name}"
            for count, name in (
                (ledger.failed, "failed"),
                (ledger.truncated, "truncated"),
                (ledger.skipped, "skipped"),
            )
            if count
        )
    return (
        f"Ledger: {considered} of {plural(ledger.regions, 'region')} considered ({how}); "
        f"evidence: {plural(pages, 'page')}, {tokens:,} tokens."
    )


def cost_text(usage: Mapping[str, Usage], seconds: float) -> str:
    if not usage:
        return f"Cost: no model calls; {seconds:.1f} s."
    parts: list[str] = []
    for role, cost in usage.items():
        parts.append(f"{role} {plural(cost.calls, 'call')} ({_spent(cost)})")
    return f"Cost: {'; '.join(parts)}; {seconds:.1f} s."


def _spent(cost: Usage) -> str:
    """Tokens of the calls, and the replies for which none had to be made."""
    kept = cost.paths.get("cache_hit", 0)
    said = [f"{plural(kept, 'reply')} kept from before"] if kept else []
    if cost.calls:
        cached = f", {cost.cached_tokens:,} cached" if cost.cached_tokens else ""
        tokens = f"{cost.prompt_tokens:,} tokens in{cached}, {cost.completion_tokens:,} out"
        said.insert(0, tokens)
    return "; ".join(said) or "nothing asked"


def report_text(report: IndexReport) -> str:
    """What `hmars index` says of one document."""
    cards = report.cards
    state = "unchanged" if report.unchanged else "indexed"
    lines = [
        f"{report.title}: {state} as {report.document}",
        f"  {report.characters:,} characters, {report.tokens:,} tokens in "
        f"{plural(report.pages, 'page')}, {plural(report.regions, 'region')}, "
        f"{plural(report.groups, 'group')}",
        f"  cards: {cards.written} written, {cards.reused} reused, {cards.degraded} degraded",
        "  " + cost_text(report.usage, report.seconds.total),
    ]
    lines += [f"  warning: {warning}" for warning in report.warnings]
    return "\n".join(lines)


def list_text(documents: Sequence[Document], namespace: str) -> str:
    if not documents:
        return f"Nothing is indexed in namespace '{namespace}'."
    width = max(len(document.id) for document in documents)
    lines: list[str] = []
    for document in documents:
        unfinished = document.cards_missing + document.cards_degraded
        state = "" if document.complete else f"  unfinished: {plural(unfinished, 'card')} to write"
        lines.append(
            f"{document.id:<{width}}  {document.tokens:>11,} tokens  "
            f"{document.regions:>4} regions  {document.updated[:16]}  {document.title}{state}"
        )
    return "\n".join(lines)


def estimate_text(estimate: Estimate) -> str:
    """Calls and tokens by role, to index now and for each question."""
    lines = [
        f"{estimate.title}: {estimate.characters:,} characters, {estimate.tokens:,} tokens in "
        f"{plural(estimate.pages, 'page')}, {plural(estimate.regions, 'region')}, "
        f"{plural(estimate.groups, 'group')}"
    ]
    if not estimate.index and not estimate.question:
        return lines[0] + "\n  no model calls: this profile quotes the text."
    for title, roles in (("to index", estimate.index), ("each question", estimate.question)):
        lines.append(f"  {title}:")
        lines += [
            f"    {role:<10} {role_estimate.calls:>6,} calls  "
            f"{role_estimate.prompt_tokens:>12,} tokens in  "
            f"{role_estimate.completion_tokens:>10,} out" + _known(role_estimate)
            for role, role_estimate in roles.items()
        ]
    return "\n".join([*lines, *_unlearned(estimate)])


def _unlearned(estimate: Estimate) -> list[str]:
    """How far to trust the length of replies, where no earlier run has shown it."""
    unknown = [
        role
        for roles in (estimate.index, estimate.question)
        for role, item in roles.items()
        if not item.learned
    ]
    if not unknown:
        return []
    index, question = (
        sum(item.longest_completion_tokens for item in roles.values())
        for roles in (estimate.index, estimate.question)
    )
    return [
        f"  Replies of {', '.join(unknown)} are taken at a usual length, as this store holds no "
        "earlier calls of these models.",
        f"  Replies that all ran to max_tokens would be {index:,} tokens out to index and "
        f"{question:,} for a question; one that is cut is asked for once more, with twice that.",
    ]


def _known(role: RoleEstimate) -> str:
    """Time and money, where they are known."""
    seconds = "" if role.seconds is None else f"  {role.seconds:>8,.1f} s"
    return seconds + ("" if role.cost is None else f"  cost {role.cost:.4f}")


def findings_text(findings: Sequence[Finding]) -> str:
    """What `hmars doctor` found, a block for each role."""
    if not findings:
        return "This profile has no models: nothing to check."
    return "\n\n".join(_finding_text(finding) for finding in findings)


def _finding_text(finding: Finding) -> str:
    lines = [f"{finding.role}: {finding.model} at {finding.url} (endpoint {finding.endpoint})"]
    if finding.problem:
        lines.append(f"  problem: {finding.problem}")
    speed = finding.tokens_per_s
    facts: list[tuple[str, str]] = [
        ("reachable", _yes(finding.reachable)),
        ("model known", _yes(finding.model_known)),
        ("context length", f"{finding.context_tokens:,}" if finding.context_tokens else "unknown"),
        ("structured replies", finding.structured or "unknown"),
        ("log probabilities", _yes(finding.logprobs)),
        ("tool calls", _yes(finding.tool_calls)),
        ("reports cached tokens", _yes(finding.reports_cached)),
        ("prefix cache works", _yes(finding.prefix_cache)),
        ("tokens per second", f"{speed:.1f}" if speed else "unknown"),
    ]
    lines += [f"  {name:<22} {value}" for name, value in facts]
    return "\n".join(lines)


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def plural(count: int, noun: str) -> str:
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith(("ry", "ly")) else f"{count:,} {noun}s"
