"""From files of many formats to exact text with places a human can find.

`load` reads one file; `find_files` lists the files of folders and patterns. Loaders are looked up
by format and imported when a file needs them, so that a format costs nothing until it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from hmars.errors import InputError
from hmars.indexing.sources.detect import Format, detect, name_warning
from hmars.indexing.sources.files import InputFile, find_files, open_file
from hmars.model import SourceText

__all__ = ["Loader", "find_files", "load"]

Loader = Callable[[InputFile], SourceText]

_LOADERS: dict[Format, tuple[str, str]] = {
    "pdf": ("pdf", "load_pdf"),
    "docx": ("docx", "load_docx"),
    "pptx": ("pptx", "load_pptx"),
    "xlsx": ("sheets", "load_xlsx"),
    "epub": ("epub", "load_epub"),
    "odt": ("odt", "load_odt"),
    "rtf": ("rtf", "load_rtf"),
    "html": ("html", "load_html"),
    "eml": ("mail", "load_eml"),
    "json": ("records", "load_json"),
    "jsonl": ("records", "load_jsonl"),
    "delimited": ("sheets", "load_delimited"),
    "subtitles": ("subtitles", "load_subtitles"),
    "latex": ("markup", "load_latex"),
    "rst": ("markup", "load_rst"),
    "text": ("markup", "load_text"),
    "code": ("markup", "load_code"),
}


def load(path: Path, *, password: str | None = None) -> SourceText:
    """Read one file as exact text with marks. Content decides the format, then the suffix.

    Macros, links, embedded files, external entities and remote images are never opened. What a
    file may cost is bounded by `hmars.indexing.sources.limits`.

    Args:
        path: The file.
        password: Opens an encrypted PDF. It is neither stored nor shown.

    Raises:
        InputError: the file cannot be read as text; the sentence names it and the remedy.
        EmptyInputError: nothing in it but white space, or pages without a text layer.
        MissingExtraError: a parser of the `documents` extra is needed and not installed.
    """
    file = open_file(path, password)
    try:
        found = detect(file)
        source = _loader(found)(file)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply to be read: simplify it.") from None
    warning = name_warning(file, found)
    return replace(
        source,
        # The same file by whatever way it was named is the same document.
        source=os.path.normpath(source.source),
        warnings=(*source.warnings, warning) if warning else source.warnings,
    )


def _loader(found: Format) -> Loader:
    module, name = _LOADERS[found]
    loader: Loader = getattr(import_module(f"{__name__}.{module}"), name)
    return loader
