"""Discord as exported by DiscordChatExporter: JSON or CSV of one channel."""

from __future__ import annotations

import csv
import io

from hmars.indexing.turns.drafts import Draft, Notes
from hmars.indexing.turns.readers.fields import Json, as_list, as_map, id_of, join, maps, text_of
from hmars.indexing.turns.turn import TurnRole

_CSV_COLUMNS = frozenset({"Author", "Date", "Content"})


def read_json(payload: Json, notes: Notes) -> list[Draft]:
    channel = as_map(payload.get("channel")) or {}
    session = text_of(channel.get("name")) or None
    drafts: list[Draft] = []
    for number, item in enumerate(as_list(payload.get("messages")), start=1):
        where = f"message {number}"
        message = as_map(item)
        if message is None:
            notes.leave_out("not an object", where)
            continue
        author = as_map(message.get("author")) or {}
        reference = as_map(message.get("reference")) or {}
        drafts.append(
            Draft(
                speaker=text_of(author.get("nickname")) or text_of(author.get("name")) or "unknown",
                text=_text(message),
                role=_role(message, author),
                time=message.get("timestamp"),
                session=session,
                id=id_of(message.get("id")),
                replies_to=id_of(reference.get("messageId")),
                where=where,
            )
        )
    return drafts


def _text(message: Json) -> str:
    files = (
        f"(attachment: {text_of(file.get('fileName')) or 'without name'})"
        for file in maps(message.get("attachments"))
    )
    stickers = (
        f"(sticker: {text_of(sticker.get('name'))})" for sticker in maps(message.get("stickers"))
    )
    embeds = (
        join(text_of(embed.get("title")), text_of(embed.get("description")))
        for embed in maps(message.get("embeds"))
    )
    return join(text_of(message.get("content")), *embeds, *files, *stickers)


def _role(message: Json, author: Json) -> TurnRole:
    if message.get("type") not in {None, "Default", "Reply"}:
        return "system"
    return "other" if author.get("isBot") is True else "user"


def looks_like_csv(text: str) -> bool:
    first = text.split("\n", 1)[0]
    return any(set(row) >= _CSV_COLUMNS for row in csv.reader([first]))


def read_csv(text: str, notes: Notes) -> list[Draft]:
    drafts: list[Draft] = []
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            where = f"line {reader.line_num}"
            if None in row or row.get("Content") is None:
                notes.note("with too many or too few columns", where)
            attachments = (
                f"(attachment: {url.rsplit('/', 1)[-1]})"
                for url in (row.get("Attachments") or "").split(",")
                if url.strip()
            )
            drafts.append(
                Draft(
                    speaker=_author(row.get("Author") or ""),
                    text=join(row.get("Content") or "", *attachments),
                    time=row.get("Date") or None,
                    where=where,
                )
            )
    except csv.Error as error:
        notes.leave_out(f"as is all after it: {error}", f"line {reader.line_num}")
    return drafts


def _author(name: str) -> str:
    """Old exports end the name with a four-digit tag."""
    stem, sign, tag = name.rpartition("#")
    return stem if sign and len(tag) == 4 and tag.isdigit() else name
