"""Facebook Messenger and Instagram (message_1.json), old and end-to-end encrypted form."""

from __future__ import annotations

from hmars.indexing.turns.drafts import Draft, Notes
from hmars.indexing.turns.readers.fields import (
    Json,
    as_list,
    as_map,
    first_key,
    join,
    maps,
    text_of,
)

_MEDIA = ("photos", "videos", "audio_files", "files", "gifs", "media")


def read_thread(payload: Json, notes: Notes) -> list[Draft]:
    """Messages of one thread, oldest first (the files have the newest first)."""
    session = repaired(text_of(first_key(payload, ("title", "threadName")))) or None
    drafts: list[Draft] = []
    stamps: list[float] = []
    for number, item in enumerate(as_list(payload.get("messages")), start=1):
        where = f"message {number}"
        message = as_map(item)
        if message is None:
            notes.leave_out("not an object", where)
            continue
        time = first_key(message, ("timestamp_ms", "timestamp"))
        if isinstance(time, (int, float)):
            stamps.append(time)
        drafts.append(
            Draft(
                speaker=repaired(text_of(first_key(message, ("sender_name", "senderName"))))
                or "unknown",
                text=_text(message),
                time=time,
                session=session,
                where=where,
            )
        )
    newest_first = len(stamps) > 1 and stamps[0] > stamps[-1]
    return drafts[::-1] if newest_first else drafts


def _text(message: Json) -> str:
    content = repaired(text_of(first_key(message, ("content", "text"))))
    share = as_map(message.get("share")) or {}
    media = (
        f"({kind.removesuffix('s').replace('_', ' ')}: {_file_name(item)})"
        for kind in _MEDIA
        for item in maps(message.get(kind))
    )
    sticker = "(sticker)" if as_map(message.get("sticker")) else ""
    return join(content, repaired(text_of(share.get("link"))), *media, sticker)


def _file_name(item: Json) -> str:
    return repaired(text_of(item.get("uri"))).rsplit("/", 1)[-1] or "without name"


def repaired(text: str) -> str:
    """Undo Facebook's encoding, which writes each byte of UTF-8 as a character of its own."""
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
