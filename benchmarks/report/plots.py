"""Line charts as SVG written by hand: three kinds of lines need no plotting library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from benchmarks.report.tables import Chart, Line

Place = Callable[[float, float], tuple[float, float]]
WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 200, 18, 52
COLOURS = (
    "#1b6ca8", "#c8553d", "#2f8f5b", "#8a5fb5", "#b8860b", "#4a4a4a", "#d1478f", "#3aa6a6",
    "#7a8b00", "#a0522d",
)  # fmt: skip


def svg(chart: Chart) -> str:
    """The chart with intervals as whiskers, a legend, and axes that begin at zero."""
    xs = [x for line in chart.lines for x, _ in line.points]
    if not xs:
        return ""
    low, high = (0.0, max(xs)) if not chart.ticks else (min(xs), max(xs))
    high = high if high > low else low + 1
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (x - low) / (high - low) * inner_width,
            TOP + (1 - y) * inner_height,
        )

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.title)}" '
        'xmlns="http://www.w3.org/2000/svg">'
    ]
    for step in range(6):
        _, y = place(low, step / 5)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{step / 5:.1f}</text>'
        )
    ticks = chart.ticks or tuple((x, f"{x / 1000:.0f}K") for x in _round_steps(high))
    for x, label in ticks:
        at, _ = place(x, 0)
        parts.append(
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
            f"{escape(label)}</text>"
        )
    middle = LEFT + inner_width / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(chart.x)}</text>'
    )
    for number, line in enumerate(chart.lines):
        parts += _line(line, COLOURS[number % len(COLOURS)], number, place)
    parts.append("</svg>")
    return "\n".join(parts)


def _line(line: Line, colour: str, number: int, place: Place) -> Sequence[str]:
    points = [
        (place(x, found.mean), place(x, found.low), place(x, found.high))
        for x, found in line.points
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for (x, y), _, _ in points)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for (x, y), (_, low), (_, high) in points:
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour}" '
            'opacity="0.45"/>'
        )
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')
    at = TOP + 8 + number * 20
    parts.append(
        f'<rect x="{WIDTH - RIGHT + 18}" y="{at - 5}" width="14" height="4" fill="{colour}"/>'
    )
    parts.append(f'<text x="{WIDTH - RIGHT + 40}" y="{at}">{escape(line.name)}</text>')
    return parts


def _round_steps(high: float) -> list[float]:
    step = next((size for size in (1_000, 2_000, 5_000, 10_000) if high / size <= 8), high / 5)
    return [step * number for number in range(int(high / step) + 1)]
