"""Means with bootstrap intervals, and differences between two systems on the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the percentile bootstrap interval around it (95 %)."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_interval(
    values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES
) -> Interval | None:
    """The mean over questions; None where there are none. Equal seeds give equal intervals."""
    if not values:
        return None
    sample = np.asarray(values, dtype=np.float64)
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    for number in range(resamples):  # one row at a time: resamples x questions may be large
        means[number] = sample[generator.integers(0, len(sample), len(sample))].mean()
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(sample.mean()), float(low), float(high), len(sample))


def paired_difference(
    first: Mapping[str, float], second: Mapping[str, float], *, seed: int = 0
) -> Interval | None:
    """Mean of `first - second` over the questions that both have."""
    shared = sorted(set(first) & set(second))
    return mean_interval([first[key] - second[key] for key in shared], seed=seed)
