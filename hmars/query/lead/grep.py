"""A reader that searches its region (DCI in S-PARSER 4.4): for exact names, numbers and code.

It never sees its region whole: it searches it by regular expression and opens line ranges, over at
most `steps` turns, and reports findings at the end. Patterns come from a model, so each search has
a time limit and ends in words that say so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import regex
from pydantic import BaseModel, Field

from hmars.errors import CallFailed
from hmars.llm.contract import ChatModel, ToolCall, value_of
from hmars.llm.jsontext import NoJson, find_json
from hmars.llm.shape import WrongShape, fit
from hmars.prompts import Prompt, defuse, one_line
from hmars.query.lead.agents import Claim, Reading, Window
from hmars.query.lead.dialogue import Dialogue
from hmars.query.lead.observe import error_text
from hmars.query.lead.readers import (
    NO_HINT,
    ClaimReply,
    ReadReply,
    claims_of,
    render_facts,
)
from hmars.query.lead.turns import arguments_of, read_turn
from hmars.tokens import Tokenizer

SEARCH_SECONDS = 0.25
"""Of one search over all lines; other readers wait meanwhile."""
MOST_MATCHES = 20
MOST_LINES = 60
LONGEST_LINE = 600
LAST = 'This was the last look. Report now: {"findings": [...]}.'


def _tool(name: str, description: str, arguments: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in arguments.items()},
                "required": list(arguments),
                "additionalProperties": False,
            },
        },
    }


SEARCH_TOOLS = (
    _tool("search", "Lines that match a regular expression.", {"pattern": "string"}),
    _tool("open", "The lines from first to last.", {"first": "integer", "last": "integer"}),
)


class SearchAction(BaseModel):
    """What a searching reader must send where tool calls do not work."""

    action: Literal["search", "open", "report"]
    pattern: str = ""
    first: int = 0
    last: int = 0
    findings: list[ClaimReply] = Field(default_factory=list[ClaimReply])


@dataclass(frozen=True)
class Lines:
    """A window by lines, numbered from 1."""

    lines: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Lines:
        return cls(tuple(text.splitlines()))

    def search(self, pattern: str) -> str:
        """Matching lines with their numbers, or why there are none."""
        try:
            compiled = regex.compile(pattern, regex.IGNORECASE)
            end = time.monotonic() + SEARCH_SECONDS
            found = [
                number
                for number, line in enumerate(self.lines, start=1)
                if compiled.search(line, timeout=max(0.001, end - time.monotonic()))
            ]
        except regex.error as error:
            return error_text(f"The pattern is not a regular expression: {error}.")
        except TimeoutError:
            return error_text("The pattern takes too long: use a simpler one.")
        if not found:
            return "No line matches."
        shown = "\n".join(self._line(number) for number in found[:MOST_MATCHES])
        more = len(found) - MOST_MATCHES
        return f"{shown}\n({more} more lines match: narrow the pattern)" if more > 0 else shown

    def open(self, first: int, last: int) -> str:
        """The lines of a range, cut to what one look may show."""
        first, last = max(1, first), min(last, len(self.lines))
        if first > last:
            return error_text(f"There are lines 1 to {len(self.lines)}.")
        end = min(last, first + MOST_LINES - 1)
        shown = "\n".join(self._line(number) for number in range(first, end + 1))
        return f"{shown}\n(cut after {MOST_LINES} lines)" if end < last else shown

    def _line(self, number: int) -> str:
        line = self.lines[number - 1]
        cut = line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " …(cut)"
        return f"{number}: {defuse(cut)}"


@dataclass(frozen=True)
class GrepReader:
    """Several short turns a reading."""

    model: ChatModel
    prompt: Prompt
    tokenizer: Tokenizer
    steps: int
    with_tools: bool = True
    """False: turns under a schema, for endpoints whose tool calls do not work."""

    async def read(self, reading: Reading, window: Window) -> Sequence[Claim]:
        """Raises: CallFailed, EndpointError, as `Reader.read`."""
        lines = Lines.of(window.text)
        dialogue = Dialogue(
            role="read",
            model=self.model,
            prompt=self.prompt.ref,
            opening=self.prompt.render(
                place=f"{len(lines.lines)} lines, it begins: {one_line(window.text[:300])}",
                facts=render_facts(reading.facts),
                hint=one_line(reading.hint, 1_000) or NO_HINT,
                query=defuse(reading.query),
            ),
            tokenizer=self.tokenizer,
            affinity=window.key,
            documents=(window.document,),
        )
        for step in range(1, self.steps + 1):
            claims = await (
                self._tool_turn(dialogue, lines)
                if self.with_tools
                else self._schema_turn(dialogue, lines)
            )
            if claims is not None:
                return claims
            if step == self.steps - 1:
                dialogue.tell(LAST, "hint")
        raise CallFailed(
            f"A searching reader made {self.steps} turns without a report: raise read.grep_steps, "
            "or use read.mode = 'direct'.",
            problem="invalid_reply",
            role="read",
        )

    async def _tool_turn(self, dialogue: Dialogue, lines: Lines) -> list[Claim] | None:
        """Its report, or None where it looked around."""
        reply = await dialogue.send(tools=SEARCH_TOOLS)
        turn = read_turn(reply, first_id=len(dialogue.entries))
        dialogue.say(turn.text, turn.calls, reasoning=reply.reasoning)
        if not turn.calls:
            try:
                report = fit(find_json(turn.text).value, ReadReply).value
            except (NoJson, WrongShape) as error:
                dialogue.tell(f"Search, open, or report as JSON: {error}.", "hint")
                return None
            assert isinstance(report, ReadReply)
            return claims_of(report.findings)
        for call in turn.calls:
            dialogue.result(call, _looked(call, lines))
        return None

    async def _schema_turn(self, dialogue: Dialogue, lines: Lines) -> list[Claim] | None:
        reply = await dialogue.send(output=SearchAction)
        action = value_of(reply, SearchAction)
        dialogue.say(action.model_dump_json(exclude_defaults=True), reasoning=reply.reasoning)
        if action.action == "report":
            return claims_of(action.findings)
        seen = (
            lines.search(action.pattern)
            if action.action == "search"
            else lines.open(action.first, action.last)
        )
        dialogue.tell(seen, "observation")
        return None


def _looked(call: ToolCall, lines: Lines) -> str:
    """What a tool call shows, or what is wrong with it."""
    arguments = arguments_of(call)
    if arguments is None:
        return error_text("The arguments must be a JSON object.")
    if call.name == "search":
        pattern = arguments.get("pattern")
        if not isinstance(pattern, str) or not pattern:
            return error_text("The argument 'pattern' is missing or is not a string.")
        return lines.search(pattern)
    if call.name == "open":
        first, last = (_number(arguments.get(key)) for key in ("first", "last"))
        if first is None or last is None:
            return error_text("The arguments 'first' and 'last' must be whole numbers.")
        return lines.open(first, last)
    return error_text(f"There is no tool named {call.name!r}: use search or open.")


def _number(value: Any) -> int | None:  # noqa: ANN401 - it is what a model sent
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,7}\s*", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
