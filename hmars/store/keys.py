"""Content addresses and document ids."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence

from hmars.model import Region

SLUG_LENGTH = 40
SHORTEST_HASH = 6


def digest(parts: Iterable[str]) -> str:
    """SHA-256 of the parts in order; ('ab', 'c') and ('a', 'bc') differ."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big"))
        hashed.update(data)
    return hashed.hexdigest()


def card_key(author: str, region_key: str) -> str:
    """Address of the card that `author` writes for a region with this `Region.key`."""
    return digest(("card", author, region_key))


def memory_key(author: str, inputs: Sequence[str]) -> str:
    """Address of the regional memory that `author` writes from these inputs, in this order.

    The inputs must hold everything the agent is shown (cards and candidate cross-references as
    JSON), so that a card that is written anew makes the memory above it stale.
    """
    return digest(("memory", author, *inputs))


def group_key(regions: Sequence[Region]) -> str:
    """Content address of a group: equal for equal regions in equal order."""
    return digest(("group", *(region.key for region in regions)))


def source_key(source: str) -> str:
    return digest(("source", source))


def document_ids(namespace: str, source: str, title: str) -> Iterable[str]:
    """Candidates for the id of a new document, shortest first: `war-and-peace-3fa9c1`."""
    slug = _slug(title) or "document"
    hashed = digest(("document", namespace, source))
    for length in range(SHORTEST_HASH, len(hashed) + 1):
        yield f"{slug}-{hashed[:length]}"


def _slug(title: str) -> str:
    """Letters, marks and digits of any script, in lower case, joined by hyphens."""
    plain = unicodedata.normalize("NFKC", title).lower()
    kept = "".join(char if unicodedata.category(char)[0] in "LMN" else "-" for char in plain)
    slug = re.sub("-+", "-", kept).strip("-")
    if len(slug) <= SLUG_LENGTH:
        return slug
    cut = slug[: SLUG_LENGTH + 1].rpartition("-")[0]
    return cut or slug[:SLUG_LENGTH]
