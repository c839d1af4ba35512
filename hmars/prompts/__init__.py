"""Prompts: one Markdown file each, versioned and hashed; loading, overriding and rendering them."""

from hmars.prompts.load import Prompt, PromptLibrary
from hmars.prompts.prompted import PromptedModel
from hmars.prompts.render import (
    boundary,
    defuse,
    enclose,
    one_line,
    render_card,
    render_memory,
    render_pages,
)

__all__ = [
    "Prompt",
    "PromptLibrary",
    "PromptedModel",
    "boundary",
    "defuse",
    "enclose",
    "one_line",
    "render_card",
    "render_memory",
    "render_pages",
]
