"""`read_turns`: a chat export of any known format to turns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pydantic import NonNegativeInt

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.turns.drafts import Draft, Notes, finish
from hmars.indexing.turns.files import decode, folder_files, read_bytes, zip_files
from hmars.indexing.turns.readers import (
    captions,
    chatgpt,
    chatlines,
    discord,
    messenger,
    records,
    slack,
    telegram,
)
from hmars.indexing.turns.readers.chatlines import DateOrder
from hmars.indexing.turns.readers.fields import Json, as_list, as_map, maps
from hmars.indexing.turns.times import Zone, find_zone
from hmars.indexing.turns.turn import Turn
from hmars.model import Frozen

TurnFormat = Literal[
    "jsonl", "messages", "chatgpt", "slack", "discord", "discord-csv", "telegram", "messenger",
    "whatsapp", "captions",
]  # fmt: skip
_TEXT_FORMATS = frozenset({"jsonl", "discord-csv", "whatsapp", "captions"})


class TurnFile(Frozen):
    """The turns of one file in its own order, and what was left out or assumed."""

    turns: tuple[Turn, ...]
    warnings: tuple[str, ...] = ()
    format: TurnFormat
    left_out: NonNegativeInt = 0
    """Entries that became no turn; `warnings` says why."""


def read_turns(
    source: Path | str | bytes,
    *,
    name: str | None = None,
    zone: str | None = None,
    format: TurnFormat | None = None,
    date_order: DateOrder | None = None,
) -> TurnFile:
    """Read a chat export; `docs/dialogues.md` lists the formats.

    Args:
        source: a path (a folder or zip for Slack) or the bytes of a file.
        name: what to call it in messages; by default the path.
        zone: the conversation's declared zone, for times without an offset; None takes UTC.
        format: None finds it from the content.
        date_order: of a WhatsApp text, where the file alone does not tell.

    Raises:
        InputError: unreadable, of no known format, or damaged as a whole. A damaged *entry* is
            left out, counted and named in `warnings`.
        EmptyInputError: not a single turn in it.
        ConfigError: no such zone or format.
    """
    if format is not None and format not in get_args(TurnFormat):
        known = ", ".join(get_args(TurnFormat))
        raise InputError(f"There is no chat format '{format}': use one of {known}.")
    found_zone = find_zone(zone)
    notes = Notes()
    title = name or (Path(source).name if not isinstance(source, bytes) else "The input")
    found, drafts = _read(source, title, format, date_order, notes)
    return _file(found, drafts, found_zone, notes, title)


def make_turns(
    items: Sequence[Turn | Mapping[str, Any]], *, name: str = "The turns", zone: str | None = None
) -> TurnFile:
    """Turns given in Python: `Turn` objects pass, mappings are read like lines of JSONL.

    Raises:
        InputError: an item is neither.
        ConfigError: no such zone.
    """
    notes = Notes()
    found_zone = find_zone(zone)
    mappings: list[Mapping[str, Any]] = []
    for number, item in enumerate(items, start=1):
        if not isinstance(cast(object, item), (Turn, Mapping)):
            raise InputError(f"Item {number} of {name} is neither a Turn nor a mapping.")
        if not isinstance(item, Turn):
            mappings.append(dict(item))
    if len(mappings) not in {0, len(items)}:
        raise InputError(f"{name} mix Turn objects and mappings: give one kind.")
    if not mappings:
        return TurnFile(turns=tuple(cast("Sequence[Turn]", items)), format="jsonl")
    turns = finish(records.read_records(mappings, notes), found_zone, notes)
    return TurnFile(
        turns=turns, warnings=notes.sentences(name), format="jsonl", left_out=notes.left_out
    )


def _file(found: TurnFormat, drafts: list[Draft], zone: Zone, notes: Notes, name: str) -> TurnFile:
    turns = finish(drafts, zone, notes)
    warnings = notes.sentences(name)
    if not turns:
        because = f" ({warnings[0].removeprefix(f'{name}: ')[:-1]})" if warnings else ""
        raise EmptyInputError(f"{name} has no turns in it{because}.")
    return TurnFile(turns=turns, warnings=warnings, format=found, left_out=notes.left_out)


def _read(
    source: Path | str | bytes,
    name: str,
    wanted: TurnFormat | None,
    order: DateOrder | None,
    notes: Notes,
) -> tuple[TurnFormat, list[Draft]]:
    channel = None
    if isinstance(source, bytes):
        data = source
    else:
        path = Path(source)
        if path.is_dir():
            return "slack", _slack_export(folder_files(path), name, notes)
        data, channel = read_bytes(path), _channel_of(path)
    if data.startswith(b"PK\x03\x04"):
        return _read_zip(data, name, order, notes)
    text = decode(data, notes)
    if not text.strip():
        raise EmptyInputError(f"{name} has no turns in it.")
    if wanted in _TEXT_FORMATS:
        return _read_text(text, wanted, order, notes)
    return _read_any(text, name, wanted, order, notes, channel)


def _channel_of(path: Path) -> str | None:
    """Slack's files of a day lie in a folder named after the channel."""
    is_day = re.fullmatch(r"\d{4}-\d{2}-\d{2}\.json", path.name)
    return path.absolute().parent.name if is_day else None


def _read_zip(
    data: bytes, name: str, order: DateOrder | None, notes: Notes
) -> tuple[TurnFormat, list[Draft]]:
    files = zip_files(data, name)
    texts = [path for path in files if path.lower().endswith(".txt")]
    if len(texts) == 1 and not any(path.endswith("users.json") for path in files):
        return _read_any(decode(files[texts[0]], notes), name, None, order, notes, None)
    return "slack", _slack_export(files, name, notes)


def _slack_export(files: Mapping[str, bytes], name: str, notes: Notes) -> list[Draft]:
    drafts = slack.read_export(files, notes)
    if not drafts:
        raise InputError(
            f"{name} is not a Slack export: it has no folder of a channel with messages in it. "
            "Other formats are read one file at a time."
        )
    return drafts


def _read_any(
    text: str,
    name: str,
    wanted: TurnFormat | None,
    order: DateOrder | None,
    notes: Notes,
    channel: str | None,
) -> tuple[TurnFormat, list[Draft]]:
    if text.lstrip()[:1] in {"{", "["} and not chatlines.looks_like_chat(text):
        try:
            payload: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            if wanted is None and _looks_like_lines(text):
                return "jsonl", records.read_lines(text, notes)
            raise InputError(f"{name} is not valid JSON: {error}.") from None
        found = wanted or _json_format(payload)
        if found is None:
            raise InputError(
                f"{name} is JSON of no known chat format: its turns need 'speaker' or 'role', "
                "and 'text' or 'content'."
            )
        return found, _read_json(payload, found, notes, channel)
    if wanted is not None:
        raise InputError(f"{name} is not JSON, so it cannot be read as '{wanted}'.")
    found = _text_format(text)
    if found is None:
        raise InputError(
            f"{name} is no known chat format: give turns as JSON Lines "
            '({"speaker": ..., "text": ..., "time": ...}), or say which format it is.'
        )
    return _read_text(text, found, order, notes)


def _text_format(text: str) -> TurnFormat | None:
    if captions.looks_like_captions(text):
        return "captions"
    if chatlines.looks_like_chat(text):
        return "whatsapp"
    if discord.looks_like_csv(text):
        return "discord-csv"
    return "jsonl" if _looks_like_lines(text) else None


def _read_text(
    text: str, found: TurnFormat | None, order: DateOrder | None, notes: Notes
) -> tuple[TurnFormat, list[Draft]]:
    if found == "whatsapp":
        return found, chatlines.read_chat(text, notes, order)
    if found == "captions":
        return found, captions.read_captions(text, notes)
    if found == "discord-csv":
        return found, discord.read_csv(text, notes)
    return "jsonl", records.read_lines(text, notes)


def _looks_like_lines(text: str) -> bool:
    """Is one of the first lines a JSON object? (The very first may be the broken one.)"""
    lines = [line for line in text[:1_000_000].split("\n") if line.strip()]
    for line in lines[:5]:
        try:
            if as_map(json.loads(line)) is not None:
                return True
        except (ValueError, RecursionError):
            continue
    return False


def _json_format(payload: object) -> TurnFormat | None:
    record = as_map(payload)
    if record is None:
        return _list_format(maps(payload))
    if "mapping" in record or "conversations" in record:
        return "chatgpt"
    if as_map(record.get("chats")) is not None:
        return "telegram"
    messages = maps(record.get("messages"))
    if messages:
        return _message_format(messages)
    if maps(record.get("turns")):
        return "messages"
    return "jsonl" if _is_record(record) else None


def _list_format(items: list[Json]) -> TurnFormat | None:
    if not items:
        return None
    if "mapping" in items[0]:
        return "chatgpt"
    if slack.looks_like_channel(items):
        return "slack"
    return "messages" if any(map(_is_record, items)) else None


def _message_format(messages: list[Json]) -> TurnFormat | None:
    first = messages[0]
    if as_map(first.get("author")) is not None and "timestamp" in first:
        return "discord"
    if "sender_name" in first or "senderName" in first:
        return "messenger"
    if first.get("type") in {"message", "service"} and (
        "date" in first or "date_unixtime" in first
    ):
        return "telegram"
    return "messages" if any(map(_is_record, messages)) else None


def _is_record(record: Json) -> bool:
    said = {"text", "content", "message", "body", "tool_calls"} & record.keys()
    return bool(said) and bool({"speaker", "role", "name", "author", "sender"} & record.keys())


def _read_json(
    payload: object, found: TurnFormat, notes: Notes, channel: str | None
) -> list[Draft]:
    record = as_map(payload) or {}
    if found == "chatgpt":
        return chatgpt.read_conversations(payload, notes)
    if found == "slack":
        return slack.read_channel(payload, channel, {}, notes)
    if found == "discord":
        return discord.read_json(record, notes)
    if found == "telegram":
        return telegram.read_result(record, notes)
    if found == "messenger":
        return messenger.read_thread(record, notes)
    if found == "jsonl":
        return records.read_records([record], notes)
    listed = as_list(payload) or as_list(record.get("messages")) or as_list(record.get("turns"))
    return records.read_records(listed, notes)
