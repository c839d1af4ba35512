"""A user's own questions: one JSON object a line, with the evidence that an answer needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hmars.coverage.spans import GoldUnit, Span
from hmars.errors import InputError
from hmars.grounding import Grounder


class Place(BaseModel):
    """Where a piece of evidence is: offsets, a quotation, or a turn of a dialogue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=1)
    quote: str | None = None
    turn: str | int | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Place:
        ways = (self.start is not None or self.end is not None, self.quote, self.turn is not None)
        if sum(map(bool, ways)) != 1:
            raise ValueError("give either start and end, or quote, or turn")
        if ways[0] and (self.start is None or self.end is None or self.start >= self.end):
            raise ValueError("start must be below end, and both are needed")
        return self


class Question(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    document: str | None = None
    """Indexed already: id, title or path."""
    path: str | None = None
    """A file, relative to the questions' file; indexed for this analysis only."""
    question: str = Field(min_length=1)
    answer: str | None = None
    evidence: tuple[Place, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_document(self) -> Question:
        if (self.document is None) == (self.path is None):
            raise ValueError("give either document or path")
        return self


@dataclass(frozen=True)
class Asked:
    """A question with its line in the file."""

    line: int
    question: Question

    @property
    def where(self) -> str:
        return f"line {self.line}"


def read_questions(file: Path) -> list[Asked]:
    """All questions of a JSON Lines file.

    Raises:
        InputError: the file cannot be read, is empty, or a line is not such a question; the
            sentence names the line.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from None
    found: list[Asked] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(Asked(number, Question.model_validate_json(line)))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            key = ".".join(str(part) for part in first["loc"])
            message = str(first["msg"]).removeprefix("Value error, ")
            place = f"{file}, line {number}" + (f", {key}" if key else "")
            raise InputError(f"{place}: {message}; see docs/coverage.md.") from None
    if not found:
        raise InputError(f"{file} holds no questions; see docs/coverage.md for the format.")
    return found


def by_document(asked: Sequence[Asked]) -> Mapping[tuple[str, str], list[Asked]]:
    """Questions together that are about one document, by kind of naming and name."""
    grouped: defaultdict[tuple[str, str], list[Asked]] = defaultdict(list)
    for item in asked:
        named = item.question
        key = ("path", named.path) if named.path is not None else ("document", named.document or "")
        grouped[key].append(item)
    return grouped


class Locator:
    """Finds the gold spans of questions in one text."""

    def __init__(self, text: str, title: str, turns: Mapping[str, Span]) -> None:
        """`turns` is by turn id; numbers from 1 name turns in their order as well."""
        self._text = text
        self._title = title
        self._turns = turns
        self._order = list(turns.values())
        self._grounder = Grounder(text)

    def gold(self, asked: Asked) -> tuple[GoldUnit, ...]:
        """One unit for each piece of evidence.

        Raises:
            InputError: offsets beyond the text, a quotation that is not in it, no such turn.
        """
        return tuple(GoldUnit(self._places(asked, place)) for place in asked.question.evidence)

    def _places(self, asked: Asked, place: Place) -> tuple[Span, ...]:
        if place.start is not None and place.end is not None:
            if place.end > len(self._text):
                raise InputError(
                    f"{asked.where}: the evidence ends at {place.end}, and {self._title} has "
                    f"{len(self._text)} characters."
                )
            return ((place.start, place.end),)
        if place.quote:
            return self._quoted(asked, place.quote)
        return (self._turn(asked, place.turn if place.turn is not None else ""),)

    def _quoted(self, asked: Asked, quote: str) -> tuple[Span, ...]:
        places: list[Span] = []
        at = self._text.find(quote)
        while at >= 0:
            places.append((at, at + len(quote)))
            at = self._text.find(quote, at + len(quote))
        if places:
            return tuple(places)
        close = self._grounder.find(quote)
        if close is None:
            raise InputError(
                f"{asked.where}: the quotation '{quote[:60]}' is not in {self._title}; copy it "
                "from the text as hmars shows it (hmars show)."
            )
        return (close,)

    def _turn(self, asked: Asked, turn: str | int) -> Span:
        found = self._turns.get(str(turn))
        if found is None and isinstance(turn, int) and 1 <= turn <= len(self._order):
            found = self._order[turn - 1]
        if found is None:
            have = f"{len(self._order)} turns" if self._order else "no turns"
            raise InputError(f"{asked.where}: there is no turn {turn}; {self._title} has {have}.")
        return found
