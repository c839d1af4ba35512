"""Captions and transcripts: WebVTT, SubRip (SRT) and SBV.

Cue times are offsets into the recording. Neighbouring cues of one speaker become one turn, of at
most about `_TURN_CHARACTERS` and without a pause of `_PAUSE_S`, as a cue is often half a sentence.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hmars.indexing.turns.drafts import Draft, Notes
from hmars.indexing.turns.times import Stamp

_TURN_CHARACTERS = 600
_PAUSE_S = 5.0
_ROLLING_SHARE = 0.3

_CLOCK = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_ARROW = re.compile(r"^\s*(?P<start>\S+)\s+-->\s+(?P<end>\S+)")
_SBV = re.compile(r"^\s*(?P<start>\d+:\w+:\w+\.\w+),(?P<end>\d+:\w+:\w+\.\w+)\s*$")
_VALID = re.compile(rf"^{_CLOCK}$")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|</?\d[\d:.]*>|\{\\[^{}]*\}")
_NAMED = re.compile(r"^(?:>>\s*)?(?P<name>[^\W\d_][^:<>]{0,40}):\s+(?P<text>\S.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Cue:
    line: int
    stamp: str | None
    start: float | None
    end: float | None
    lines: tuple[str, ...]
    speaker: str = ""


def looks_like_captions(text: str) -> bool:
    head = text[:5_000]
    lines = head.split("\n")
    return head.startswith("WEBVTT") or any(_ARROW.match(ln) or _SBV.match(ln) for ln in lines)


def read_captions(text: str, notes: Notes) -> list[Draft]:
    cues = [part for cue in _cues(text, notes) for part in _voices(cue)]
    cues = _unrolled(cues, notes)
    return _joined(_named(cues))


def _cues(text: str, notes: Notes) -> Iterator[_Cue]:
    """Blocks between blank lines; a block may hold several timing lines (rolling captions)."""
    for start, block in _blocks(text):
        if start == 1 and block[0].startswith("WEBVTT"):
            block, start = _after_header(block), start
        if not block or re.match(r"(NOTE|STYLE|REGION)\b", block[0]):
            continue
        yield from _block_cues(start, block, notes)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    block: list[str] = []
    first = 1
    for number, line in enumerate([*text.replace("\r\n", "\n").split("\n"), ""], start=1):
        if line:
            if not block:
                first = number
            block.append(line)
        elif block:
            yield first, block
            block = []


def _after_header(block: list[str]) -> list[str]:
    """The header ends at a blank line; some writers forget it, so a timing line ends it too."""
    timed = (index for index, line in enumerate(block) if _timing(line))
    index = next(timed, None)
    return [] if index is None else block[index:]


def _timing(line: str) -> re.Match[str] | None:
    return _ARROW.match(line) or _SBV.match(line)


def _block_cues(start: int, block: list[str], notes: Notes) -> Iterator[_Cue]:
    timed = [index for index, line in enumerate(block) if _timing(line)]
    if not timed:
        lines = block[1:] if block[0].strip().isdigit() else block
        if any(line.strip() for line in lines):
            notes.note("is a caption without a cue time", f"line {start}")
            yield _Cue(start, None, None, None, tuple(lines))
        else:
            notes.leave_out("a cue number alone", f"line {start}")
        return
    for position, (index, until) in enumerate(pairwise([*timed, len(block)])):
        line = start + index
        match = _timing(block[index])
        assert match is not None
        if index + 1 == until:
            notes.leave_out("a cue without text", f"line {line}")
            continue
        if position == 0 and index > 1:
            notes.leave_out("text before a cue time", f"line {start}")
        begin, end = _seconds(match["start"]), _seconds(match["end"])
        yield _Cue(line, match["start"], begin, end, tuple(block[index + 1 : until]))


def _seconds(clock: str) -> float | None:
    if not _VALID.match(clock):
        return None
    whole, fraction = re.split("[.,]", clock)
    total = 0
    for part in whole.split(":"):
        total = total * 60 + int(part)
    return total + float(f"0.{fraction}")


def _voices(cue: _Cue) -> Iterator[_Cue]:
    """A cue with `<v Name>` tags is one part for each voice, without tags and entities."""
    pieces = _VOICE.split("\n".join(cue.lines))
    for speaker, text in zip(["", *pieces[1::2]], pieces[0::2], strict=True):
        plain = html.unescape(_TAG.sub("", text))
        lines = tuple(line for line in plain.split("\n") if line.strip())
        if lines:
            yield replace(cue, lines=lines, speaker=html.unescape(speaker).strip())


def _unrolled(cues: Sequence[_Cue], notes: Notes) -> list[_Cue]:
    """Rolling captions show each line again above the next one: keep its first showing.

    Only where a good part of the file does so, for people do say the same thing twice.
    """
    repeats = sum(later.lines[0] == earlier.lines[-1] for earlier, later in pairwise(cues))
    if repeats < 2 or repeats < _ROLLING_SHARE * (len(cues) - 1):
        return list(cues)
    kept: list[_Cue] = []
    shown: tuple[str, ...] = ()
    for cue in cues:
        overlap = next(
            (size for size in range(len(cue.lines), 0, -1) if shown[-size:] == cue.lines[:size]), 0
        )
        for _ in range(overlap):
            notes.note("of rolling captions shown again, taken once", f"line {cue.line}")
        if overlap < len(cue.lines):
            kept.append(replace(cue, lines=cue.lines[overlap:]))
        shown = cue.lines
    return kept


def _named(cues: Sequence[_Cue]) -> list[_Cue]:
    """Take "NAME: text" for a speaker where the name is in capitals, marked `>>`, or recurs."""
    matches = [None if cue.speaker else _NAMED.match("\n".join(cue.lines)) for cue in cues]
    counts = Counter(match["name"] for match in matches if match)
    named: list[_Cue] = []
    for cue, match in zip(cues, matches, strict=True):
        if match and (
            counts[match["name"]] > 1 or match["name"].isupper() or match[0].startswith(">>")
        ):
            lines = tuple(match["text"].split("\n"))
            cue = replace(cue, speaker=match["name"].strip(), lines=lines)
        named.append(cue)
    return named


def _joined(cues: Sequence[_Cue]) -> list[Draft]:
    runs: list[list[_Cue]] = []
    for cue in cues:
        if runs and _continues(runs[-1], cue):
            runs[-1].append(cue)
        else:
            runs.append([cue])
    return [_draft(run) for run in runs]


def _continues(run: Sequence[_Cue], cue: _Cue) -> bool:
    last = run[-1]
    size = sum(len(line) for part in run for line in part.lines)
    return (
        last.speaker == cue.speaker
        and size < _TURN_CHARACTERS
        and last.end is not None
        and cue.start is not None
        and cue.start - last.end < _PAUSE_S
    )


def _draft(run: Sequence[_Cue]) -> Draft:
    first = run[0]
    stamp = None if first.stamp is None else Stamp(original=first.stamp, offset_s=first.start)
    text = "\n".join(line for cue in run for line in cue.lines)
    return Draft(first.speaker or "unknown", text, time=stamp, where=f"line {first.line}")
