"""Read a turn of a tool-calling model: native calls, or the forms they take in plain text.

Servers without the right tool-call parser return the call as it was written. Qwen3.5 writes
`<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`, Qwen3 writes
JSON inside `<tool_call>`, and small models a bare or fenced JSON object with a name and arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from hmars.llm.contract import ChatReply, ToolCall

_BLOCK = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)\s*>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)\s*>(.*?)(?:</parameter>|\Z)", re.DOTALL)
_FENCE = re.compile(r"```[a-z_]*[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_ARGUMENTS = ("arguments", "parameters")


@dataclass(frozen=True, slots=True)
class Turn:
    """What a model did: `text` is what it wrote beside its calls."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    """Of the last `<answer>...</answer>`, in a turn without calls."""


def read_turn(reply: ChatReply, *, first_id: int = 1) -> Turn:
    """The calls of a turn, in order; ids are made up where the server gave none of its own."""
    if reply.tool_calls:
        calls = [(call.name, call.arguments) for call in reply.tool_calls]
        ids = [call.id for call in reply.tool_calls]
        if len(set(ids)) == len(ids) and not any(_made_up(name) for name in ids):
            return Turn(reply.text, reply.tool_calls)
        return Turn(reply.text, _numbered(calls, first_id))
    text, written = _written_calls(reply.text)
    if written:
        return Turn(text, _numbered(written, first_id))
    answers = _ANSWER.findall(reply.text)
    return Turn(reply.text, (), answers[-1].strip() or None if answers else None)


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The call's arguments; None where they are not a JSON object."""
    try:
        value: Any = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _made_up(name: str) -> bool:
    """Ids that are only unique inside one reply would repeat over the turns."""
    return not name or re.fullmatch(r"call_\d{1,3}", name) is not None


def _numbered(calls: list[tuple[str, str]], first: int) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(f"query_{first + at}", name, arguments)
        for at, (name, arguments) in enumerate(calls)
    )


def _written_calls(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What is left of the text, and the calls written in it."""
    for candidate in (text, text.replace("\\n", "\n")):
        if "<tool_call>" in candidate:
            calls = [call for block in _BLOCK.findall(candidate) for call in _in_block(block)]
            rest = _BLOCK.sub("", candidate)
        else:
            calls = list(_functions(candidate))
            rest = _FUNCTION.sub("", candidate)
        if calls:
            return rest.strip(), calls
    for block in (text, *_FENCE.findall(text)):
        calls = list(_from_json(block))
        if calls:
            return text.replace(block, "").strip("` \n"), calls
    return text, []


def _in_block(block: str) -> Iterator[tuple[str, str]]:
    return _functions(block) if "<function=" in block else _from_json(block)


def _functions(text: str) -> Iterator[tuple[str, str]]:
    for name, body in _FUNCTION.findall(text):
        values = {key: _value(value) for key, value in _PARAMETER.findall(body)}
        yield name, json.dumps(values, ensure_ascii=False)


def _value(text: str) -> str:
    """A parameter without the one line break on each side that the template puts there."""
    for edge in ("\n", "\\n"):
        text = text.removeprefix(edge).removesuffix(edge)
    return text.strip(" \t\r")


def _from_json(text: str) -> Iterator[tuple[str, str]]:
    """Calls as JSON: one or a list, arguments as an object or as the text of one."""
    try:
        value: Any = json.loads(text.strip(), strict=False)
    except (ValueError, RecursionError):
        return
    entries = cast(list[Any], value) if isinstance(value, list) else [value]
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        table = cast(dict[str, Any], entry)
        inner = table.get("function")
        if isinstance(inner, dict):
            table = cast(dict[str, Any], inner)
        name = table.get("name")
        arguments = next((table[key] for key in _ARGUMENTS if key in table), None)
        if isinstance(name, str) and arguments is not None:
            written = arguments if isinstance(arguments, str) else json.dumps(arguments)
            yield name, written
