"""What a question asks for: how much each of its words counts, and whether it asks for a stretch.

A question is often a form around what it is about ("Highlight the parts of this contract related to
"Change of Control""). Words that tell what to do with the evidence count less than those that tell
which evidence, and what stands in quotation marks counts more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hmars.lexical import Terms

QUOTED = 3.0
"""What a word in quotation marks counts, against the others of its question."""
GENERIC = 0.3
"""What a word counts that may stand in any question, against the others."""

GENERIC_STEMS = frozenset(
    """
    accord answer articl book call chapter contain defin describ descript document exact exampl
    explain express fact file find follow general includ inform know list mention name note
    number occur page paragraph part particular possibl provid question refer relat
    section sort specif state statement stated text titl true type usual way word write
    """.split()  # noqa: SIM905
)
"""Stems that a question may hold without asking for them."""
_TASK_STEMS = frozenset(
    """
    attitud bring brought chat comprehens convers discuss highlight look opinion order overview
    review said summar summari talk tell think thought want
    """.split()  # noqa: SIM905
)
"""Further stems that tell what to do with the evidence, or that it is talk."""

_QUOTATION = re.compile(r"[\"“„«「]([^\"“”„«»「」]{2,80})[\"”“»」]")
_STRETCH = re.compile(
    r"\b(?:summar\w*|discuss\w*|opinions?|think|thoughts?|talk\w*|conversations?|debat\w*|views?"
    r"|feel|attitudes?|meeting|overview|decisions?|decided|agree\w*)\b",
    re.IGNORECASE,
)
_PLEASE = re.compile(r"\b(?:can|could|would|will) you (?:please )?\w+", re.IGNORECASE)
_OF_THE_ASSISTANT = re.compile(
    r"\b(?:assistant|your|you (?:\w+ )?(?:told|sa(?:id|y)|suggest\w*|recommend\w*|g[ai]ve"
    r"|provid\w*|propos\w*|mention\w*|expla\w*|advi\w*|help\w*|list\w*))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Asked:
    """A question as the ranking sees it."""

    content: tuple[str, ...]
    """The distinct terms that carry its meaning, in order."""
    weights: Mapping[str, float]
    """What each of them counts."""
    stretch: bool
    """It asks what was discussed or thought: its evidence is a stretch of talk, not a sentence."""
    of_assistant: bool
    """It asks for what an assistant said ("What did you suggest?")."""


def asked_of(question: str, terms: Terms) -> Asked:
    """Read a question. One of nothing but generic words gives them all full weight."""
    content = tuple(terms.content(question))
    quoted = {term for text in _QUOTATION.findall(question) for term in terms.of(text)}
    telling = any(not _generic(term) for term in content)
    weights = {
        term: QUOTED if term in quoted else GENERIC if telling and _generic(term) else 1.0
        for term in content
    }
    return Asked(
        content=content,
        weights=weights,
        stretch=bool(_STRETCH.search(question)),
        of_assistant=bool(_OF_THE_ASSISTANT.search(_PLEASE.sub("", question))),
    )


def _generic(term: str) -> bool:
    return term in GENERIC_STEMS or term in _TASK_STEMS
