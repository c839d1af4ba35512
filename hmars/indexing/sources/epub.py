"""EPUB: the chapters in the order of the spine."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.sources.archive import (
    Archive,
    DamagedPartError,
    child,
    descendants,
    local,
    open_archive,
    resolve,
)
from hmars.indexing.sources.builder import TextBuilder, one_line
from hmars.indexing.sources.files import InputFile
from hmars.indexing.sources.html import add_blocks, read_html
from hmars.indexing.sources.reading import read_markup
from hmars.model import SourceText

_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


def load_epub(file: InputFile) -> SourceText:
    """Chapters in reading order; the navigation page is left out, a broken chapter is named.

    Raises:
        InputError: not a readable EPUB, or protected against copying.
    """
    with open_archive(file.path, "EPUB book") as archive:
        _refuse_protection(archive, file)
        package = archive_package(archive)
        opf = archive.tree(package)
        builder = TextBuilder(file.path, _title(opf))
        titles = _chapter_titles(archive, opf, posixpath.dirname(package))
        broken = 0
        for name in _spine(opf, posixpath.dirname(package)):
            try:
                _add_chapter(builder, archive, name, titles.get(name, ""))
            except DamagedPartError as error:
                broken += 1
                builder.warn(f"A chapter was left out: {error}.")
        if builder.blank and broken:
            raise InputError(f"{file.path} is a damaged EPUB book: no chapter can be read.")
        if builder.blank:
            raise EmptyInputError(f"{file.path} holds no text (chapters of images need OCR).")
        return builder.build()


def archive_package(archive: Archive) -> str:
    """Where the container says its package document is."""
    container = archive.tree("META-INF/container.xml")
    for rootfile in descendants(container, lambda name: name == "rootfile"):
        if path := rootfile.get("full-path"):
            return path
    raise DamagedPartError("'META-INF/container.xml' names no package")


def _refuse_protection(archive: Archive, file: InputFile) -> None:
    if "META-INF/encryption.xml" not in archive:
        return
    tree = archive.tree("META-INF/encryption.xml")
    methods = [
        item.get("Algorithm", "")
        for item in descendants(tree, lambda name: name == "EncryptionMethod")
    ]
    if any(method and method not in _FONT_ALGORITHMS for method in methods):
        raise InputError(f"{file.path} is protected against copying (DRM): it cannot be read.")


def _manifest(opf: Element, folder: str) -> Iterator[tuple[str, str, str, str]]:
    """Id, entry name, properties and media type of each item."""
    for item in descendants(opf, lambda name: name == "item"):
        name = resolve(folder, item.get("href", ""))
        yield item.get("id", ""), name, item.get("properties", ""), item.get("media-type", "")


def _spine(opf: Element, folder: str) -> Iterator[str]:
    items = {key: (name, props, kind) for key, name, props, kind in _manifest(opf, folder)}
    for reference in descendants(opf, lambda name: name == "itemref"):
        name, props, kind = items.get(reference.get("idref", ""), ("", "", ""))
        if not name or "nav" in props.split():
            continue
        if kind in ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", ""):
            yield name


def _add_chapter(builder: TextBuilder, archive: Archive, name: str, title: str) -> None:
    reader = read_html(read_markup(archive.read(name), builder.path).text)
    blocks = [block for block in reader.blocks if block.text.strip()]
    if not blocks:
        return
    if title and all(block.kind != "heading" for block in blocks[:3]):
        builder.chapter(title)
    add_blocks(builder, blocks)


def _title(opf: Element) -> str:
    metadata = child(opf, "metadata")
    if metadata is None:
        return ""
    return next((one_line(item.text or "") for item in metadata if local(item) == "title"), "")


def _chapter_titles(archive: Archive, opf: Element, folder: str) -> dict[str, str]:
    """Titles from the older table of contents (NCX), by entry name."""
    titles: dict[str, str] = {}
    for _, name, _, kind in _manifest(opf, folder):
        if kind != "application/x-dtbncx+xml":
            continue
        try:
            tree = archive.tree(name)
        except DamagedPartError:
            continue  # titles are an extra: chapters have headings of their own
        for point in descendants(tree, lambda item: item == "navPoint"):
            content = child(point, "content")
            label = child(point, "navLabel")
            if content is not None and label is not None:
                target = resolve(posixpath.dirname(name), content.get("src", ""))
                titles.setdefault(target, one_line("".join(label.itertext())))
    return titles
