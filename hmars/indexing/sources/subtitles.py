"""Subtitles (WebVTT, SubRip): what is said, with the time it is said as the place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hmars.indexing.sources.builder import TextBuilder, one_line
from hmars.indexing.sources.files import InputFile
from hmars.indexing.sources.reading import read_text
from hmars.indexing.text_source import text_source
from hmars.model import SourceText

_TIMES = re.compile(r"^\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}\s*-->\s*[\d:.,]+")
_VOICE = re.compile(r"<v(?:\.[^ <>]*)?\s+([^<>]+)>")
_TAG = re.compile(r"</?[a-zA-Z0-9.:][^<>]*>|\{\\[^{}]*\}")
_BLANK = re.compile(r"\n[ \t]*\n")


def load_subtitles(file: InputFile) -> SourceText:
    """One line a cue; lines that a rolling caption repeats are written once."""
    read = read_text(file)
    text = read.text.replace("\r\n", "\n").replace("\r", "\n")
    builder = TextBuilder(file.path)
    for warning in read.warnings:
        builder.warn(warning)
    before: list[str] = []
    for time, lines in _cues(text):
        fresh = [line for line in lines if line not in before]
        before = lines
        if fresh:
            builder.place(time)
            builder.block(" ".join(fresh), end="\n")
    if builder.blank and text.strip():
        found = text_source(text, str(file.path.absolute()), file.path.name)
        warning = "No subtitle times found: kept as plain text."
        return replace(found, warnings=(*read.warnings, *found.warnings, warning))
    return builder.build()


def _cues(text: str) -> Iterator[tuple[str, list[str]]]:
    for block in _BLANK.split(text):
        lines = block.strip("\n").split("\n")
        for place, line in enumerate(lines[:2]):
            times = _TIMES.match(line)
            if times:
                hours, minutes, seconds = times.groups()
                said = [_plain(item) for item in lines[place + 1 :]]
                label = f"{int(hours or 0):02d}:{int(minutes):02d}:{seconds}"
                yield label, [item for item in said if item]
                break


def _plain(line: str) -> str:
    return one_line(_TAG.sub("", _VOICE.sub(lambda match: f"{match[1].strip()}: ", line)))
