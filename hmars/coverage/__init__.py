"""How much of the evidence a question needs reached the answering model, and at what price."""

from __future__ import annotations

from hmars.coverage.spans import Coverage, GoldUnit, Span, coverage
from hmars.coverage.stats import Interval, mean_interval, paired_difference

__all__ = [
    "Coverage",
    "GoldUnit",
    "Interval",
    "Span",
    "coverage",
    "mean_interval",
    "paired_difference",
]
