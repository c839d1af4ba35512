"""What a file is: by its first bytes, then by its suffix."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Literal

from hmars.errors import InputError
from hmars.indexing.sources.files import InputFile

Format = Literal[
    "pdf", "docx", "pptx", "xlsx", "epub", "odt", "rtf", "html", "eml", "json", "jsonl",
    "delimited", "subtitles", "latex", "rst", "text", "code",
]  # fmt: skip

NAMES: dict[Format, str] = {
    "pdf": "PDF",
    "docx": "a Word document",
    "pptx": "a PowerPoint presentation",
    "xlsx": "an Excel workbook",
    "epub": "an EPUB book",
    "odt": "an OpenDocument text",
    "rtf": "RTF",
}
"""Formats that their content alone decides."""

SUFFIXES: dict[str, Format] = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".docm": "docx",
    ".dotx": "docx",
    ".pptx": "pptx",
    ".pptm": "pptx",
    ".ppsx": "pptx",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".epub": "epub",
    ".odt": "odt",
    ".rtf": "rtf",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".eml": "eml",
    ".json": "json",
    ".geojson": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "delimited",
    ".tsv": "delimited",
    ".vtt": "subtitles",
    ".srt": "subtitles",
    ".tex": "latex",
    ".ltx": "latex",
    ".rst": "rst",
    **dict.fromkeys(("", ".txt", ".text", ".md", ".markdown", ".mdx", ".asc"), "text"),
}
"""Any other suffix is read as code: exact text, named by lines, `#` is not a heading."""

_REFUSED = (
    (b"\x89PNG", "a PNG image: run OCR first"),
    (b"\xff\xd8\xff", "a JPEG image: run OCR first"),
    (b"GIF8", "a GIF image: run OCR first"),
    (b"II*\x00", "a TIFF image: run OCR first"),
    (b"MM\x00*", "a TIFF image: run OCR first"),
    (b"BM", "a bitmap image: run OCR first"),
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    (b"Rar!", "a RAR archive: unpack it first"),
    (b"BZh", "a bzip2 archive: unpack it first"),
    (b"\xfd7zXZ", "an xz archive: unpack it first"),
    (b"\x7fELF", "a program, not a document"),
    (b"MZ\x90\x00", "a program, not a document"),
    (b"SQLite format 3\x00", "a database: export the text first"),
    (b"ID3", "a sound file: transcribe it first"),
    (b"OggS", "a sound or video file: transcribe it first"),
    (b"RIFF", "a sound, image or video file: not text"),
    (b"%!PS", "PostScript: convert it to PDF first"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_OFFICE = "EncryptedPackage".encode("utf-16-le")
_OLE_SCAN = 1 << 20
_PDF_START = 1024
_BINARY_BM = re.compile(rb"BM.{4}\x00\x00\x00\x00", re.DOTALL)
_HTML = re.compile(
    r"^\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.I | re.S
)
_ARTICLE = re.compile(r"^\s*(?:<\?xml[^>]*>\s*)?<!DOCTYPE\s+article\b[^>]*JATS[^>]*>", re.I | re.S)


def detect(file: InputFile) -> Format:
    """The format of a file.

    Raises:
        InputError: an encrypted or old Office file, an archive, an image, or a file that claims
            to be a format its content does not have.
    """
    found = _by_content(file)
    claimed = SUFFIXES.get(file.path.suffix.lower(), "code")
    if found is None and claimed in NAMES:
        raise InputError(
            f"{file.path} claims to be {NAMES[claimed]} by its name but is not: "
            "give the right file, or name it for what it is."
        )
    return found or claimed


def name_warning(file: InputFile, found: Format) -> str | None:
    """A sentence where the name says something else than the content."""
    claimed = SUFFIXES.get(file.path.suffix.lower())
    if claimed and found in NAMES and claimed != found:
        return f"Named {file.path.suffix} but is {NAMES[found]}: read as that."
    return None


def _by_content(file: InputFile) -> Format | None:
    head = file.head
    if b"%PDF-" in head[:_PDF_START]:
        return "pdf"
    if head.startswith(b"PK\x03\x04") or head.startswith(b"PK\x05\x06"):
        return _by_entries(file)
    if head.lstrip().startswith(b"{\\rtf"):
        return "rtf"
    if head.startswith(_OLE):
        raise _old_office(file)
    for magic, what in _REFUSED:
        if head.startswith(magic) and (magic != b"BM" or _BINARY_BM.match(head)):
            raise InputError(f"{file.path} is {what}.")
    looks = _text_of(head)
    claimed = SUFFIXES.get(file.path.suffix.lower())
    if claimed in (None, "text", "html") and (_HTML.match(looks) or _ARTICLE.match(looks)):
        return "html"
    return None


def _text_of(head: bytes) -> str:
    for bom, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if head.startswith(bom):
            return head[2:].decode(encoding, "ignore")
    return head.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").decode("latin-1")


def _by_entries(file: InputFile) -> Format:
    """Tell zip containers apart by what every one of their kind holds."""
    try:
        with zipfile.ZipFile(file.path) as zipped:
            names = set(zipped.namelist())
            kind = _mimetype(zipped, names)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(
            f"{file.path} is damaged: its container cannot be opened ({error}); get it again."
        ) from None
    found = _office(names) or {
        "application/epub+zip": "epub",
        "application/vnd.oasis.opendocument.text": "odt",
    }.get(kind)
    if found is None and "META-INF/container.xml" in names:
        found = "epub"
    if found is None:
        what = "an OpenDocument file of another kind" if "opendocument" in kind else "an archive"
        raise InputError(f"{file.path} is {what}, not a document: unpack or convert it first.")
    return _format(found)


def _office(names: set[str]) -> Format | None:
    if "[Content_Types].xml" in names or "_rels/.rels" in names:
        if any(name.startswith("word/") for name in names):
            return "docx"
        if any(name.startswith("ppt/") for name in names):
            return "pptx"
        if any(name.startswith("xl/") and name.endswith(".xml") for name in names):
            return "xlsx"
    return None


def _format(name: str) -> Format:
    return next(known for known in NAMES if known == name)


def _mimetype(zipped: zipfile.ZipFile, names: set[str]) -> str:
    if "mimetype" not in names or zipped.getinfo("mimetype").file_size > 200:
        return ""
    return zipped.read("mimetype").decode("ascii", "replace").strip()


def _old_office(file: InputFile) -> InputError:
    with Path(file.path).open("rb") as stream:
        data = file.head + stream.read(_OLE_SCAN)
    if _ENCRYPTED_OFFICE in data:
        return InputError(
            f"{file.path} is an encrypted Office file: open it, remove its password and save it."
        )
    return InputError(f"{file.path} is an old Office file: save it as .docx, .xlsx or .pptx first.")
