"""From bytes or a string to exact text, with the headings that a reader would go by."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

import charset_normalizer

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.headings import headings
from hmars.model import DocumentKind, Mark, SourceText, is_blank

__all__ = ["Decoded", "clean", "decode", "headings", "is_blank", "text_source"]

SAMPLE = 1 << 16
"""Bytes that are enough to tell an encoding."""
TOLERATED_CONTROL = 0.05
"""Share of control characters in text; random bytes have about 0.1."""
TOLERATED = 0.02
"""Share of damaged characters up to which a text still counts as UTF-8 and not as another."""

_BYTE_ORDER_MARKS = (  # the longer first: UTF-32-LE begins like UTF-16-LE
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY_STARTS = (
    b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"BZh",
    b"7z\xbc\xaf", b"\xfd7zXZ", b"Rar!", b"\x7fELF", b"MZ\x90", b"SQLite format 3\x00",
    b"\xd0\xcf\x11\xe0", b"GGUF", b"RIFF", b"OggS", b"fLaC", b"ID3", b"\x00asm", b"PAR1",
)  # fmt: skip
_NEVER_WITHOUT_MARK = ["utf_7", "utf_16", "utf_16_le", "utf_16_be", "utf_32"]
_COMMON = "cp1252"
_LIKE_COMMON = frozenset({"cp1250", "cp1254", "cp1257", "cp1258", "latin_1", "hp_roman8"})
"""Where the detector often lands with short texts of Western Europe."""
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b"))
_KOREAN_ESCAPE = b"\x1b$)C"
"""Stands at the start of ISO-2022-KR, whose shift characters look like those of a binary file."""
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text exactly as it stands in the file, without the byte order mark."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes, name: str) -> Decoded:
    """Read bytes as text: by byte order mark, as UTF-8, or in the encoding that fits best.

    Line ends and NUL stay. Any encoding but UTF-8 or one with a byte order mark is a guess and
    said in a warning.

    Raises:
        InputError: the bytes are no text, or in no encoding that can be told.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decode_as(data[len(mark) :], encoding, name)
    if data.startswith(_BINARY_STARTS):
        raise _binary(name)
    wide = _wide_encoding(data)
    if wide:
        return _decode_as(data, wide, name, f"{name} was read as {wide}, by its zero bytes.")
    head = data[:SAMPLE]
    if head.lstrip().startswith(_KOREAN_ESCAPE):
        return _decode_as(data, "iso2022_kr", name, f"{name} was read as iso2022_kr.")
    if len(head) - len(head.translate(None, _CONTROL)) > len(head) * TOLERATED_CONTROL:
        raise _binary(name)
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        return _damaged_utf8(data, name) or _detected(data, name)


def _decode_as(data: bytes, encoding: str, name: str, warning: str = "") -> Decoded:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not valid {encoding} at byte {error.start}; save it again as UTF-8."
        ) from None
    return Decoded(text, encoding, (warning,) if warning else ())


def _binary(name: str) -> InputError:
    return InputError(f"{name} is a binary file, not text; convert it to a text file first.")


def _wide_encoding(data: bytes) -> str | None:
    """UTF-16 without a byte order mark: nearly every other byte of Latin text is zero."""
    head = data[: SAMPLE & ~1]
    if len(head) < 4 or len(data) % 2:
        return None
    even, odd = head[::2], head[1::2]
    zeros_even, zeros_odd = even.count(0) / len(even), odd.count(0) / len(odd)
    if zeros_odd > 0.7 and zeros_even < 0.1:
        return "utf-16-le"
    if zeros_even > 0.7 and zeros_odd < 0.1:
        return "utf-16-be"
    return None


def _damaged_utf8(data: bytes, name: str) -> Decoded | None:
    """UTF-8 with a few broken places, such as a file cut off inside a character."""
    text = data.decode("utf-8", "replace")
    damaged = text.count("\ufffd") - data.count("\ufffd".encode())
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    intact = beyond_ascii - text.count("\ufffd")
    if not intact or damaged > max(1, intact * TOLERATED):
        return None
    warning = f"{name} is UTF-8 with {damaged} damaged places, which were replaced by U+FFFD."
    return Decoded(text, "utf-8", (warning,))


def _detected(data: bytes, name: str) -> Decoded:
    for encoding in _likely_encodings(_telling_sample(data)):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return Decoded(text, encoding, (f"{name} is not UTF-8 and was read as {encoding}.",))
    raise InputError(f"The encoding of {name} cannot be told; save it as UTF-8.")


def _likely_encodings(sample: bytes) -> list[str]:
    """Best first. Of the alphabets of Europe that fit alike, the common one; it also comes last."""
    matches = list(charset_normalizer.from_bytes(sample, cp_exclusion=_NEVER_WITHOUT_MARK))
    likely = [match.encoding for match in matches]
    beyond_ascii = len(sample) - len(sample.decode("ascii", "ignore"))
    unsure = matches and not matches[0].coherence and beyond_ascii < len(sample) * 0.3
    if unsure or (matches and matches[0].encoding in _LIKE_COMMON):
        likely.insert(0, _COMMON)
    return [*likely, _COMMON]


def _telling_sample(data: bytes) -> bytes:
    """Whole lines with bytes beyond ASCII: the others fit every encoding."""
    sample: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            sample.append(line[:SAMPLE])
            size += len(line)
        if size >= SAMPLE:
            break
    return b"".join(sample)


def clean(text: str) -> tuple[str, tuple[str, ...]]:
    """Join surrogate pairs and replace lone surrogates, which no file and no model can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        joined = _SURROGATE_PAIR.sub(_join_pair, text)
        cleaned, lone = _LONE_SURROGATE.subn("\ufffd", joined)
        if not lone:
            return cleaned, ()
        return cleaned, (f"{lone} unpaired surrogates were replaced by U+FFFD.",)
    return text, ()


def _join_pair(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def text_source(
    data: str | bytes,
    source: str,
    title: str,
    *,
    kind: DocumentKind = "text",
    marks: Sequence[Mark] | None = None,
) -> SourceText:
    """Exact text with its headings as marks, unless other marks are given.

    Raises:
        EmptyInputError: there is nothing in it but white space.
        InputError: the bytes are not text.
    """
    decoded = decode(data, source) if isinstance(data, bytes) else Decoded(data, "str")
    text, warnings = clean(decoded.text)
    if is_blank(text):
        raise EmptyInputError(f"{source} is empty: there is no text in it but white space.")
    found = headings(text) if marks is None else tuple(sorted(marks, key=lambda mark: mark.start))
    return SourceText(text, source, title, kind, found, (*decoded.warnings, *warnings))
