"""What is about to be stored of a document, hashed and checked before a transaction begins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hmars.model import Group, Region, SourceText
from hmars.store.keys import digest, group_key


@dataclass(frozen=True)
class DocumentPlan:
    """A document as its loader and partition made it."""

    source: SourceText
    regions: Sequence[Region]
    groups: Sequence[Group]
    tokenizer: str
    tokens: int
    settings: Mapping[str, Any]

    def check(self) -> None:
        """Refuse a partition that is not exactly the text (promise 1).

        Raises:
            ValueError: the regions do not tile the text, or a group names a region that is not
                there. Both are mistakes of the caller, not of a user.
        """
        text, position = self.source.text, 0
        for region in self.regions:
            for page in region.pages:
                if page.start != position or text[page.start : page.end] != page.text:
                    raise ValueError(f"page {page.index} does not continue the text at {position}")
                position = page.end
        if not self.regions or position != len(text):
            raise ValueError(f"the pages end at {position} of {len(text)} characters")
        known = {region.index for region in self.regions}
        named = [index for group in self.groups for index in group.regions]
        if not known.issuperset(named) or len(set(named)) != len(named):
            raise ValueError("a group names a region that does not exist, or two share one")

    @cached_property
    def content_hash(self) -> str:
        return hashlib.sha256(self.source.text.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def faces(self) -> tuple[str, ...]:
        """By region: a hash of what may change without its text: labels and token counts."""
        return tuple(
            digest(part for page in region.pages for part in (page.label, str(page.tokens)))
            for region in self.regions
        )

    @cached_property
    def group_keys(self) -> tuple[str, ...]:
        """Content address of each group, in the order of `groups`."""
        by_index = {region.index: region for region in self.regions}
        return tuple(
            group_key([by_index[index] for index in group.regions]) for group in self.groups
        )

    @cached_property
    def structure_hash(self) -> str:
        shape = [region.key for region in self.regions]
        joined = [f"{group.index}:{group.regions}" for group in self.groups]
        return digest((*shape, "", *self.faces, "", *joined))

    def columns(self) -> dict[str, Any]:
        """The row of the document, but for its identity and history."""
        return {
            "title": self.source.title,
            "kind": self.source.kind,
            "content_hash": self.content_hash,
            "structure_hash": self.structure_hash,
            "characters": len(self.source.text),
            "tokens": self.tokens,
            "page_count": sum(len(region.pages) for region in self.regions),
            "region_count": len(self.regions),
            "group_count": len(self.groups),
            "tokenizer": self.tokenizer,
            "settings": json.dumps(self.settings, sort_keys=True, ensure_ascii=False),
            "warnings": json.dumps(self.source.warnings, ensure_ascii=False),
        }
