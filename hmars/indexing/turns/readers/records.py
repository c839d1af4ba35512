"""Plain turns and OpenAI-style messages, as JSON Lines, as a list or inside an object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hmars.indexing.turns.drafts import Draft, Notes
from hmars.indexing.turns.readers.fields import (
    Json,
    as_list,
    as_map,
    first_key,
    id_of,
    join,
    maps,
    text_of,
)
from hmars.indexing.turns.turn import TurnRole

_SPEAKER = ("speaker", "name", "author", "sender", "from")
_TEXT = ("text", "content", "message", "body")
_TIME = ("time", "ts", "timestamp", "date", "created_at", "create_time")
_SESSION = ("session", "session_id", "thread", "conversation")
_ID = ("id", "turn_id", "message_id")


def read_lines(text: str, notes: Notes) -> list[Draft]:
    """JSON Lines: a turn a line, or a whole list of messages a line (then a session each)."""
    drafts: list[Draft] = []
    # Not splitlines: a JSON string may hold U+2028, which is no line end here.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            record = as_map(json.loads(line))
        except (ValueError, RecursionError):
            notes.leave_out("not valid JSON", where)
            continue
        if record is None:
            notes.leave_out("not a JSON object", where)
        elif "messages" in record:
            session = id_of(first_key(record, (*_SESSION, *_ID))) or str(number)
            drafts += read_records(as_list(record["messages"]), notes, session, f"{where}, ")
        else:
            drafts += _draft(record, notes, None, where)
    return drafts


def read_records(
    records: Sequence[object], notes: Notes, session: str | None = None, prefix: str = ""
) -> list[Draft]:
    """Turns as a list of objects with `speaker` or `role`, and `text` or `content`."""
    drafts: list[Draft] = []
    for number, item in enumerate(records, start=1):
        where = f"{prefix}turn {number}"
        record = as_map(item)
        if record is None:
            notes.leave_out("not an object", where)
        else:
            drafts += _draft(record, notes, session, where)
    return drafts


def _draft(record: Json, notes: Notes, session: str | None, where: str) -> list[Draft]:
    content = first_key(record, _TEXT)
    text = join(content_text(content), _tool_calls(record))
    if not text:
        known = content is None or isinstance(content, (str, list))
        notes.leave_out("without text" if known else "with a text that is not a string", where)
        return []
    speaker = text_of(first_key(record, _SPEAKER))
    role = role_of(record.get("role"), speaker, notes, where)
    if not speaker:
        speaker = text_of(record.get("role"))
    if not speaker:
        notes.note("without a speaker, shown as unknown", where)
    return [
        Draft(
            speaker=speaker or "unknown",
            text=text,
            role=role,
            time=first_key(record, _TIME),
            session=id_of(first_key(record, _SESSION)) or session,
            id=id_of(first_key(record, _ID)),
            replies_to=id_of(record.get("replies_to")),
            where=where,
        )
    ]


def role_of(value: object, speaker: str, notes: Notes, where: str) -> TurnRole:
    """The role as written, else as the speaker's name says, else `user`."""
    if value is None:
        return _known_roles().get(speaker.strip().casefold(), "user")
    role = _known_roles().get(value.strip().casefold()) if isinstance(value, str) else None
    if role is None:
        notes.note("with an unknown role, read as other", where)
        return "other"
    return role


def _known_roles() -> Mapping[str, TurnRole]:
    return {
        "user": "user",
        "human": "user",
        "assistant": "assistant",
        "ai": "assistant",
        "bot": "assistant",
        "model": "assistant",
        "system": "system",
        "developer": "system",
        "tool": "other",
        "function": "other",
        "other": "other",
    }


def content_text(content: object) -> str:
    """The text of a message: a string, or parts of which the texts are joined by line ends."""
    if isinstance(content, str):
        return content
    return join(*(_part_text(part) for part in as_list(content)))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    record = as_map(part)
    if record is None:
        return ""
    for key in ("text", "transcript", "refusal"):
        if isinstance(record.get(key), str):
            return str(record[key])
    if record.get("type") == "tool_use":
        return _call(record.get("name"), record.get("input"))
    if record.get("type") == "tool_result":
        return content_text(record.get("content"))
    kind = text_of(record.get("type")) or text_of(record.get("content_type"))
    return f"({kind.removesuffix('_url').replace('_', ' ')})" if kind else ""


def _tool_calls(record: Json) -> str:
    calls = (as_map(call.get("function")) or {} for call in maps(record.get("tool_calls")))
    return join(*(_call(call.get("name"), call.get("arguments")) for call in calls))


def _call(name: object, arguments: object) -> str:
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"(calls {text_of(name) or 'a tool'}: {shown})"
