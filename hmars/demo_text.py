"""A real text that every Python carries: its language reference, as `help()` shows it."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from hmars.errors import InputError
from hmars.model import SourceText

TITLE = "The Python Language Reference"
SOURCE = "python:pydoc_data.topics"


def language_reference() -> SourceText:
    """The topics in their own order, each under a heading, about 117,000 tokens.

    Raises:
        InputError: this Python was built without them.
    """
    from hmars.indexing.text_source import text_source

    try:
        module = import_module("pydoc_data.topics")
    except ModuleNotFoundError:
        raise InputError(
            "This Python lacks the module pydoc_data.topics that the demo reads: "
            "use another Python, or index a file of your own with `hmars index FILE`."
        ) from None
    topics = cast(dict[str, str], module.topics)
    text = "\n\n".join(f"# {name}\n\n{body.strip()}" for name, body in topics.items())
    return text_source(text + "\n", source=SOURCE, title=TITLE)
