"""What one outcome scores on one case; the judge where the profile has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel

from benchmarks import metrics
from benchmarks.bench import Bench, Outcome
from benchmarks.suites.base import Case
from hmars.coverage import Span, coverage
from hmars.errors import CallFailed
from hmars.model import Usage
from hmars.settings import Profile

Scores = dict[str, float | None]
"""By measure; None where it could not be scored, which is never the same as wrong."""

Measure = Callable[[str, Sequence[str]], float]
_BY_SCORING: Mapping[str, Mapping[str, Measure]] = {
    "short": {
        "em": metrics.exact_match,
        "f1": metrics.f1,
        "sub_em": metrics.sub_em,
        "sub_em_paper": metrics.sub_em_paper,
    },
    "all": {"named": metrics.named_share},
    "letter": {"accuracy": lambda text, answers: metrics.letter_accuracy(text, answers[0])},
}


class Judgement(BaseModel):
    """What a judge must send."""

    justification: str
    correct: bool


def evidence_scores(text: str, case: Case, passed: Sequence[Span] | None) -> Scores:
    """Recall and precision; nothing where no gold is marked or no source text is passed on."""
    if not case.gold or passed is None:
        return {}
    found = coverage(text, case.gold, passed)
    return {
        "recall": found.recall,
        "recall_nearly": found.nearly,
        "recall_partial": found.partial,
        "recall_characters": found.characters,
        "precision": found.precision,
    }


def answer_scores(case: Case, outcome: Outcome) -> Scores:
    """Measures of the answer's text that need no model."""
    if not outcome.text and not outcome.abstained:
        return {}
    if case.scoring == "abstain":
        silent = outcome.abstained or metrics.is_no_answer(outcome.text)
        return {"abstained": float(silent)}
    if not case.answers or case.scoring not in _BY_SCORING:
        return {}
    measures = _BY_SCORING[case.scoring]
    return {name: measure(outcome.text, case.answers) for name, measure in measures.items()}


async def judged(
    bench: Bench, case: Case, outcome: Outcome
) -> tuple[Scores, str, Mapping[str, Usage]]:
    """The judge's verdict, its justification, and what it cost.

    A reply that cannot be read leaves the question unscored, with the reason.
    """
    wanted = case.scoring in ("judge", "short") and case.answers
    if not wanted or not outcome.text or bench.stack is None or "judge" not in bench.profile.roles:
        return {}, "", {}
    spending = bench.spending()
    try:
        verdict = await spending.fill(
            "judge",
            Judgement,
            "judge_answer",
            question=case.question,
            gold="\n".join(case.answers),
            prediction=outcome.text,
        )
    except CallFailed as error:
        return {"judge": None}, f"unscored: {error}", spending.usage
    return {"judge": float(verdict.correct)}, verdict.justification, spending.usage


def role_sizes(profile: Profile, told: Mapping[str, float]) -> dict[str, float | None]:
    """Parameters of the model of each role, where they are known."""
    return {
        role: metrics.parameters(settings.model, told) for role, settings in profile.roles.items()
    }
