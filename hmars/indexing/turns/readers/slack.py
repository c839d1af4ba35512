"""Slack exports: a folder or zip with a folder for each channel, or one file of a channel."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from hmars.indexing.turns.drafts import Draft, Notes
from hmars.indexing.turns.readers.fields import Json, as_list, as_map, id_of, join, maps, text_of
from hmars.indexing.turns.turn import TurnRole

_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def read_export(files: Mapping[str, bytes], notes: Notes) -> list[Draft]:
    """All channels of an export, each a session; `files` maps relative paths to contents."""
    names: dict[str, str] = {}
    drafts: list[Draft] = []
    lists = {path: _load(path, data, notes) for path, data in sorted(files.items())}
    for path, payload in lists.items():
        if PurePosixPath(path).name == "users.json":
            names.update(user_names(payload))
    for path, payload in lists.items():
        folder = PurePosixPath(path).parent.name
        if folder and looks_like_channel(payload):
            drafts += read_channel(payload, folder, names, notes, f"{path}, ")
    return drafts


def looks_like_channel(payload: object) -> bool:
    records = maps(payload)
    return bool(records) and "ts" in records[0] and records[0].get("type") == "message"


def read_channel(
    payload: object, channel: str | None, names: Mapping[str, str], notes: Notes, prefix: str = ""
) -> list[Draft]:
    """The messages of one channel file."""
    drafts: list[Draft] = []
    for number, item in enumerate(as_list(payload), start=1):
        where = f"{prefix}message {number}"
        message = as_map(item)
        if message is None:
            notes.leave_out("not an object", where)
            continue
        ts, thread = text_of(message.get("ts")), text_of(message.get("thread_ts"))
        text = _decode(text_of(message.get("text")), names)
        files = (f"(file: {_file_name(file)})" for file in maps(message.get("files")))
        quoted = (
            _decode(text_of(part.get("text")) or text_of(part.get("fallback")), names)
            for part in maps(message.get("attachments"))
        )
        drafts.append(
            Draft(
                speaker=_speaker(message, names),
                text=join(text, *quoted, *files),
                role=_role(message),
                time=ts or None,
                session=channel,
                id=_qualified(channel, ts),
                replies_to=_qualified(channel, thread) if thread != ts else None,
                where=where,
            )
        )
    return drafts


def user_names(payload: object) -> dict[str, str]:
    """From users.json: id to the name that people see."""
    names: dict[str, str] = {}
    for user in maps(payload):
        name = _shown_name(user)
        if (user_id := id_of(user.get("id"))) and name:
            names[user_id] = name
    return names


def _shown_name(user: Json) -> str:
    profile = as_map(user.get("profile")) or user
    candidates = (
        profile.get("display_name"),
        profile.get("real_name"),
        user.get("real_name"),
        user.get("name"),
    )
    return next((name for name in map(text_of, candidates) if name.strip()), "")


def _speaker(message: Json, names: Mapping[str, str]) -> str:
    user = text_of(message.get("user"))
    bot = as_map(message.get("bot_profile")) or {}
    return (
        names.get(user, "")
        or _shown_name(as_map(message.get("user_profile")) or {})
        or text_of(message.get("username"))
        or text_of(bot.get("name"))
        or user
        or text_of(message.get("bot_id"))
        or "unknown"
    )


def _role(message: Json) -> TurnRole:
    subtype = text_of(message.get("subtype"))
    if subtype == "bot_message" or message.get("bot_id"):
        return "other"
    if subtype in {"", "thread_broadcast", "file_share", "me_message"}:
        return "user"
    return "system"


def _qualified(channel: str | None, ts: str) -> str | None:
    """`ts` is unique in its channel only."""
    if not ts:
        return None
    return f"{channel}/{ts}" if channel else ts


def _file_name(file: Json) -> str:
    return text_of(file.get("name")) or text_of(file.get("title")) or "without name"


def _decode(text: str, names: Mapping[str, str]) -> str:
    """Slack's own encoding of mentions, links and angle brackets, undone."""

    def shown(match: re.Match[str]) -> str:
        sign, target, label = match[1], match[2], match[3] or ""
        if sign == "@":
            return f"@{names.get(target) or label or target}"
        if sign == "#":
            return f"#{label or target}"
        if sign == "!":
            return f"@{label.lstrip('@') or target}"
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(_LINK.sub(shown, text))


def _load(path: str, data: bytes, notes: Notes) -> object:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        notes.leave_out("not valid JSON", path)
        return None
