"""Small documents of many formats, written byte by byte for the tests of `sources`."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
PAD = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")

Placed = tuple[float, float, str]
"""x and y from the lower left corner in points, and the text."""


@dataclass(frozen=True)
class PdfPage:
    """Text at places; `to_unicode` stands for a broken font map."""

    texts: Sequence[Placed] = ()
    size: float = 10
    rotate: int = 0
    matrix: str = ""
    image: bool = False
    extra: Sequence[str] = field(default_factory=list[str])


def lines(texts: Sequence[str], x: float = 72, top: float = 700, step: float = 14) -> list[Placed]:
    return [(x, top - place * step, text) for place, text in enumerate(texts)]


def pdf(
    pages: Sequence[PdfPage],
    *,
    password: str | None = None,
    to_unicode: str = "",
    outline: Sequence[tuple[str, int]] = (),
) -> bytes:
    """A PDF file with one font. `outline` gives bookmarks as (title, page from 0)."""
    objects: dict[int, bytes] = {}
    count = len(pages)
    first = 10
    kids = " ".join(f"{first + 2 * place} 0 R" for place in range(count))
    objects[2] = f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode()
    unicode_map = " /ToUnicode 4 0 R" if to_unicode else ""
    objects[3] = (
        f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica{unicode_map} "
        "/Encoding /WinAnsiEncoding >>"
    ).encode()
    if to_unicode:
        objects[4] = _stream(_cmap(to_unicode))
    for place, page in enumerate(pages):
        number = first + 2 * place
        rotate = f" /Rotate {page.rotate}" if page.rotate else ""
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]{rotate} "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {number + 1} 0 R >>"
        ).encode()
        objects[number + 1] = _stream(_content(page))
    last = first + 2 * count
    root = _outline(objects, outline, first, last)
    objects[1] = f"<< /Type /Catalog /Pages 2 0 R{root} >>".encode()
    return _file(objects, password)


def _content(page: PdfPage) -> bytes:
    parts = [
        f"BT /F1 {page.size} Tf {page.matrix or '1 0 0 1'} {x} {y} Tm ({_escaped(text)}) Tj ET"
        for x, y, text in page.texts
    ]
    if page.image:
        parts.append("0.8 g 72 72 400 600 re f")
    return "\n".join([*parts, *page.extra]).encode("latin-1")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _cmap(pairs: str) -> bytes:
    head = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap "
    space = "1 begincodespacerange <00> <FF> endcodespacerange "
    count = len(pairs.split("\n"))
    chars = f"{count} beginbfchar\n{pairs}\nendbfchar endcmap end end"
    return (head + space + chars).encode()


def _outline(
    objects: dict[int, bytes], outline: Sequence[tuple[str, int]], first: int, last: int
) -> str:
    if not outline:
        return ""
    for place, (title, page) in enumerate(outline):
        following = f" /Next {last + place + 2} 0 R" if place + 1 < len(outline) else ""
        objects[last + place + 1] = (
            f"<< /Title ({title}) /Parent {last} 0 R /Dest [{first + 2 * page} 0 R /Fit]"
            f"{following} >>"
        ).encode()
    objects[last] = (
        f"<< /Type /Outlines /First {last + 1} 0 R /Last {last + len(outline)} 0 R "
        f"/Count {len(outline)} >>"
    ).encode()
    return f" /Outlines {last} 0 R"


def _stream(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def _file(objects: Mapping[int, bytes], password: str | None) -> bytes:
    identity = hashlib.md5(b"tests").digest()
    key = owner = b""
    if password is not None:
        padded = (password.encode("latin-1") + PAD)[:32]
        owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
        seed = padded + owner + (-4 & 0xFFFFFFFF).to_bytes(4, "little") + identity
        key = hashlib.md5(seed).digest()[:5]
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places: dict[int, int] = {}
    for number in sorted(objects):
        places[number] = out.tell()
        body = objects[number]
        if key and b"stream\n" in body:
            body = _encrypted(body, key, number)
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    trailer = "/Root 1 0 R"
    if password is not None:
        user = _rc4(key, PAD)
        number = max(objects) + 1
        places[number] = out.tell()
        out.write(
            f"{number} 0 obj\n<< /Filter /Standard /V 1 /R 2 /P -4 /O <{owner.hex()}> "
            f"/U <{user.hex()}> >>\nendobj\n".encode()
        )
        trailer += f" /Encrypt {number} 0 R /ID [<{identity.hex()}> <{identity.hex()}>]"
    start, size = out.tell(), max(places) + 1
    table = [
        f"{places[n]:010d} 00000 n \n" if n in places else "0000000000 65535 f \n"
        for n in range(size)
    ]
    out.write(f"xref\n0 {size}\n{''.join(table)}trailer\n".encode())
    out.write(f"<< /Size {size} {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


def _encrypted(body: bytes, key: bytes, number: int) -> bytes:
    head, _, rest = body.partition(b"stream\n")
    data = rest.removesuffix(b"\nendstream")
    salted = hashlib.md5(key + number.to_bytes(3, "little") + b"\0\0").digest()[:10]
    return head + b"stream\n" + _rc4(salted, data) + b"\nendstream"


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    out = bytearray()
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


# ---------------------------------------------------------------- zip containers


def zipped(entries: Mapping[str, str | bytes], stored: Sequence[str] = ()) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            kind = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(name, content, compress_type=kind)
    return out.getvalue()


def paragraph(text: str, style: str = "", properties: str = "") -> str:
    link = f'<w:pStyle w:val="{style}"/>' if style else ""
    run = f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'
    return f"<w:p><w:pPr>{link}{properties}</w:pPr>{run}</w:p>"


def docx(body: str, parts: Mapping[str, str] | None = None) -> bytes:
    """A Word file; `parts` are further parts by name under `word/`, linked by their kind."""
    further = dict(parts or {})
    kinds = {name: name.removesuffix(".xml").rstrip("0123456789") for name in further}
    links = "".join(
        f'<Relationship Id="r{place}" Type="http://x/{kinds[name]}" Target="{name}"/>'
        for place, name in enumerate(further)
    )
    entries: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": (
            '<Relationships><Relationship Id="r1" Type="http://x/officeDocument" '
            'Target="word/document.xml"/></Relationships>'
        ),
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": f"<Relationships>{links}</Relationships>",
    }
    return zipped(entries | {f"word/{name}": text for name, text in further.items()})


STYLES = (
    f"<w:styles {W}>"
    '<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Mine"><w:name w:val="My heading"/><w:basedOn w:val="H2"/></w:style>'
    "</w:styles>"
)


def epub(
    chapters: Mapping[str, str],
    spine: Sequence[str],
    *,
    extra: Mapping[str, str | bytes] | None = None,
    items: str = "",
) -> bytes:
    """An EPUB whose files stand in the order of `chapters` and are read in that of `spine`."""
    manifest = "".join(
        f'<item id="{name}" href="text/{name}.xhtml" media-type="application/xhtml+xml"/>'
        for name in [*chapters, *(set(spine) - set(chapters))]
    )
    references = "".join(f'<itemref idref="{name}"/>' for name in spine)
    entries: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
        ),
        "OEBPS/book.opf": (
            "<package><metadata><title>Tide Notes</title></metadata>"
            f"<manifest>{manifest}{items}</manifest><spine>{references}</spine></package>"
        ),
    }
    texts = {
        f"OEBPS/text/{name}.xhtml": f"<html><body>{text}</body></html>"
        for name, text in chapters.items()
    }
    return zipped(entries | texts | dict(extra or {}), stored=["mimetype"])
