"""Mail messages: headers a reader looks at, the body, names of attachments (never opened)."""

from __future__ import annotations

from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import EmailMessage
from typing import TypeAlias, cast

from hmars.errors import InputError
from hmars.indexing.sources.builder import TextBuilder, one_line
from hmars.indexing.sources.files import InputFile
from hmars.indexing.sources.html import add_blocks, read_html
from hmars.indexing.sources.reading import read_text
from hmars.indexing.text_source import decode
from hmars.model import SourceText

_SHOWN = ("Subject", "From", "To", "Cc", "Date")
_MAX_DEPTH = 10
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")

Mail: TypeAlias = "EmailMessage[str, str]"


def load_eml(file: InputFile) -> SourceText:
    """One message, and those that it carries."""
    message: Mail = message_from_bytes(_as_utf8(file), policy=policy.default)
    if not message.keys():
        raise InputError(f"{file.path} is not a mail message: it has no header lines.")
    builder = TextBuilder(file.path, _header(message, "Subject"))
    _add_message(builder, message, 1)
    return builder.build()


def _as_utf8(file: InputFile) -> bytes:
    """The bytes of the message; one saved as UTF-16 by an editor is written anew."""
    data = file.read()
    return read_text(file).text.encode() if data.startswith(_WIDE_MARKS) else data


def _add_message(builder: TextBuilder, message: Mail, depth: int) -> None:
    subject = _header(message, "Subject")
    if subject:
        builder.chapter(subject, depth)
    lines = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
    builder.block("\n".join(lines))
    body = message.get_body(("plain", "html")) if depth == 1 or not message.is_multipart() else None
    if body is not None:
        _add_body(builder, cast("Mail", body))
    names: list[str] = []
    for part in message.walk():
        if part is message or part is body:
            continue
        if part.get_content_type() == "message/rfc822":
            _add_carried(builder, part, depth)
        elif part.is_attachment() or part.get_filename():
            names.append(f"{part.get_filename() or 'unnamed'} ({part.get_content_type()})")
    if names:
        builder.block(f"Attachments, not opened: {', '.join(names)}")


def _add_carried(builder: TextBuilder, part: Mail, depth: int) -> None:
    payload = cast(object, part.get_payload())
    inner = cast(list[object], payload)[0] if isinstance(payload, list) and payload else None
    if isinstance(inner, EmailMessage) and depth < _MAX_DEPTH:
        _add_message(builder, cast("Mail", inner), depth + 1)


def _add_body(builder: TextBuilder, body: Mail) -> None:
    text = _content(builder, body)
    if body.get_content_subtype() == "html":
        add_blocks(builder, read_html(text).blocks, below=1)
    else:
        builder.block(text.replace("\r\n", "\n"))


def _content(builder: TextBuilder, body: Mail) -> str:
    try:
        return str(body.get_content())
    except (LookupError, UnicodeError, MessageError):
        builder.warn("The declared encoding of the body is wrong: it was recognised by its bytes.")
    payload = body.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else str(payload).encode("utf-8", "replace")
    return decode(data, str(builder.path)).text


def _header(message: Mail, name: str) -> str:
    try:
        return one_line(str(message.get(name) or ""))
    except (LookupError, ValueError, MessageError, IndexError, AttributeError):
        # The parser of the standard library fails on some malformed addresses and dates.
        raw = [value for key, value in message.raw_items() if key.lower() == name.lower()]
        return one_line(str(raw[0])) if raw else ""
