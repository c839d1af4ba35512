"""Telegram Desktop's result.json: one chat, or all chats of an account (a session each)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hmars.indexing.turns.drafts import Draft, Notes
from hmars.indexing.turns.readers.fields import Json, as_list, as_map, id_of, join, maps, text_of
from hmars.indexing.turns.times import Stamp

_FARTHEST_OFFSET = timedelta(hours=14)


def read_result(payload: Json, notes: Notes) -> list[Draft]:
    chats = as_map(payload.get("chats"))
    if chats is None:
        return _read_chat(payload, notes)
    return [draft for chat in maps(chats.get("list")) for draft in _read_chat(chat, notes)]


def _read_chat(chat: Json, notes: Notes) -> list[Draft]:
    chat_id = id_of(chat.get("id"))
    session = text_of(chat.get("name")) or chat_id
    drafts: list[Draft] = []
    for number, item in enumerate(as_list(chat.get("messages")), start=1):
        where = f"message {number}" + (f" of '{session}'" if session else "")
        message = as_map(item)
        if message is None:
            notes.leave_out("not an object", where)
            continue
        service = message.get("type") == "service"
        drafts.append(
            Draft(
                speaker=_speaker(message),
                text=_service_text(message) if service else _text(message),
                role="system" if service else "user",
                time=_time(message),
                session=session,
                id=_qualified(chat_id, message.get("id")),
                replies_to=_qualified(chat_id, message.get("reply_to_message_id")),
                where=where,
            )
        )
    return drafts


def _speaker(message: Json) -> str:
    name = text_of(message.get("from")) or text_of(message.get("actor"))
    return name or id_of(message.get("from_id")) or id_of(message.get("actor_id")) or "unknown"


def _qualified(chat_id: str | None, message_id: object) -> str | None:
    """Message numbers are unique in their chat only."""
    found = id_of(message_id)
    return f"{chat_id}/{found}" if chat_id and found else found


def _plain(value: object) -> str:
    """Text is a string or a list of strings and marked-up parts."""
    if isinstance(value, str):
        return value
    parts = (part if isinstance(part, str) else _entity(part) for part in as_list(value))
    return "".join(parts)


def _entity(part: object) -> str:
    return text_of((as_map(part) or {}).get("text"))


def _text(message: Json) -> str:
    text = _plain(message.get("text")) or _plain(message.get("text_entities"))
    origin = text_of(message.get("forwarded_from"))
    poll = as_map(message.get("poll")) or {}
    answers = (f"- {text_of(answer.get('text'))}" for answer in maps(poll.get("answers")))
    question = _plain(poll.get("question"))
    return join(
        f"(forwarded from {origin})" if origin else "",
        text,
        f"(poll) {question}" if question else "",
        *answers,
        _media(message),
    )


def _media(message: Json) -> str:
    emoji = text_of(message.get("sticker_emoji"))
    kind = text_of(message.get("media_type")).replace("_", " ")
    if not kind and "photo" in message:
        kind = "photo"
    if not kind and "file" in message:
        kind = "file"
    name = text_of(message.get("file_name"))
    detail = emoji or name
    if not kind:
        return ""
    return f"({kind}: {detail})" if detail else f"({kind})"


def _service_text(message: Json) -> str:
    action = text_of(message.get("action")).replace("_", " ")
    members = ", ".join(filter(None, map(text_of, as_list(message.get("members")))))
    details = filter(None, (text_of(message.get("title")), members))
    note = ": ".join((action, *details)) if action else ""
    return join(_plain(message.get("text")), f"({note})" if note else "")


def _time(message: Json) -> object:
    """Newer exports give the local time and the instant; their difference is the offset."""
    local, unix = message.get("date"), message.get("date_unixtime")
    if not isinstance(local, str):
        return unix
    try:
        wall = datetime.fromisoformat(local)
        if wall.utcoffset() is not None or unix is None:
            return local
        offset = timedelta(
            minutes=round((wall - datetime(1970, 1, 1)).total_seconds() / 60 - float(unix) / 60)  # noqa: DTZ001
        )
    except (ValueError, TypeError, OverflowError):
        return local
    if abs(offset) > _FARTHEST_OFFSET:
        return unix
    return Stamp(original=local, wall=wall.replace(tzinfo=timezone(offset)))
