"""Put document text into prompts as data (promise 8).

Delimiters carry a word derived from the hash of the text they enclose: a document cannot contain
the hash of itself, so no text can close or open a page, and the same region renders the same way
for every question (promise 6). Strings that chat templates read as control tokens are defused
with a zero-width joiner; the stored text is never touched, and quotation matching ignores it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from hmars.model import MemoryCard, Page, RegionalMemory

WORD_JOINER = "\u2060"

_CONTROL = re.compile(
    r"<(?=[|｜][^<>|｜\s]{1,60}[|｜]>"
    r"|/?(?:s|think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|pad|unk)>)"
    r"|\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\])"
)


def defuse(text: str) -> str:
    """The text with no string in it that a chat template or tokenizer takes for control."""
    return _CONTROL.sub(lambda match: match.group() + WORD_JOINER, text)


def one_line(text: str, limit: int = 200) -> str:
    """The text as one short line, for headers made of document or file names."""
    flat = " ".join(defuse(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def boundary(texts: Iterable[str]) -> str:
    """A word that these texts cannot contain by design: 8 hex digits of their hash."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8"))
        digest.update(b"\x00")
    return digest.hexdigest()[:8]


def render_pages(pages: Sequence[Page]) -> str:
    """Pages under headers with local numbers from 1; nothing depends on their place elsewhere."""
    mark = boundary(page.text for page in pages)
    return "\n".join(
        f"{_header(number, page, mark)}\n{defuse(page.text)}\n</page {number} {mark}>"
        for number, page in enumerate(pages, start=1)
    )


def _header(number: int, page: Page, mark: str) -> str:
    where = f" in: {one_line(page.context)}" if page.context else ""
    return f"<page {number} {mark}>{where}"


def render_card(card: MemoryCard) -> str:
    """A card as prompt text; what models wrote into it is data as well."""
    lines = [f"summary: {defuse(card.summary)}"]
    if card.topics:
        lines.append("topics: " + "; ".join(one_line(topic) for topic in card.topics))
    if card.entities:
        lines.append("entities: " + "; ".join(one_line(name) for name in card.entities))
    lines += [f"page {entry.page}: {one_line(entry.gist, 300)}" for entry in card.page_index]
    return "\n".join(lines)


def render_memory(memory: RegionalMemory) -> str:
    """A regional memory as prompt text; regions carry numbers local to the group."""
    lines = [f"summary: {defuse(memory.summary)}"]
    for entry in memory.submap:
        parts = [one_line(item) for item in (*entry.topics, *entry.entities)]
        lines.append(f"region {entry.region}: {'; '.join(parts)}")
    for reference in memory.crossrefs:
        regions = ", ".join(map(str, reference.regions))
        note = f": {one_line(reference.note, 300)}" if reference.note else ""
        lines.append(
            f"{reference.kind} of {one_line(reference.subject)} in regions {regions}{note}"
        )
    return "\n".join(lines)


def enclose(name: str, text: str) -> str:
    """Text between delimiters that it cannot contain."""
    mark = boundary([text])
    return f"<{name} {mark}>\n{text}\n</{name} {mark}>"
