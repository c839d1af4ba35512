"""The entity graph: which regions of a document speak of the same things.

A bipartite networkx graph over regions and entities, made from memory cards. It spans all groups,
so it suggests cross-references to each mid-agent and carries those *between* groups (S-HMARS keeps
cross-references inside one regional memory; neither paper has the others).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from hmars.grounding import entity_key
from hmars.lexical import STOP_WORDS, Terms, is_quantity, sentences
from hmars.model import CrossReference, CrossReferenceKind, DocumentIndex, MemoryCard

CAPS: Mapping[CrossReferenceKind, int] = {
    "shared_entity": 12,
    "repeated_constraint": 8,
    "temporal_update": 6,
}
"""How many references of each kind are suggested, most telling first."""
MOST_REGIONS_NAMED = 12
"""A reference that spans more regions names the first ones."""

_SAME_SUBJECT = 0.75
"""Share of terms (Jaccard) two statements must have in common to be about one thing."""
_FEWEST_TERMS = 4
_NUMBER = re.compile(r"\d[\d,.:/\-]*\d|\d")

Node = tuple[str, int | str]


def entity_graph(cards: Mapping[int, MemoryCard]) -> nx.Graph[Node]:
    """Regions `("region", number)` joined to the entities `("entity", key)` their cards name.

    Spellings of one name meet in one node (`grounding.entity_key`), whose `name` is the spelling
    that most cards use.
    """
    graph: nx.Graph[Node] = nx.Graph()
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number, card in sorted(cards.items()):
        graph.add_node(("region", number), kind="region")
        for name in card.entities:
            if key := entity_key(name):
                spellings[key][name] += 1
                graph.add_edge(("region", number), ("entity", key))
    for key, counts in spellings.items():
        graph.add_node(("entity", key), kind="entity", name=counts.most_common(1)[0][0])
    return graph


def candidates(cards: Sequence[MemoryCard]) -> list[CrossReference]:
    """Cross-references that the cards of one group suggest; regions count from 1 in the group."""
    return _capped(_references(dict(enumerate(cards, start=1))))


def across_groups(index: DocumentIndex) -> list[CrossReference]:
    """Cross-references between regions of different groups, with region numbers of the document.

    The note of a temporal update says where the new value stands: in a dialogue, who said it when.
    """
    group_of = {number: group.index for group in index.groups for number in group.regions}
    references = _capped(
        found
        for found in _references(index.cards)
        if len({group_of.get(number) for number in found.regions}) > 1
    )
    return [_with_place(reference, index) for reference in references]


def _with_place(reference: CrossReference, index: DocumentIndex) -> CrossReference:
    if reference.kind != "temporal_update":
        return reference
    new = _NUMBER.findall(reference.note.rpartition("→")[2])
    pages = index.regions[reference.regions[-1] - 1].pages
    holding = [page for page in pages if all(number in page.text for number in new)]
    place = (holding or pages)[0].context
    note = f"{reference.note} (the latter in: {place})" if place else reference.note
    return reference.model_copy(update={"note": note})


@dataclass(frozen=True, slots=True)
class _Found:
    kind: CrossReferenceKind
    subject: str
    regions: tuple[int, ...]
    note: str
    weight: float


def _capped(found: Iterator[_Found]) -> list[CrossReference]:
    kept: Counter[CrossReferenceKind] = Counter()
    references: list[CrossReference] = []
    for item in sorted(found, key=lambda item: (-item.weight, item.regions, item.subject)):
        if kept[item.kind] < CAPS[item.kind]:
            kept[item.kind] += 1
            references.append(
                CrossReference(
                    kind=item.kind,
                    subject=item.subject,
                    regions=item.regions[:MOST_REGIONS_NAMED],
                    note=item.note,
                )
            )
    return references


def _references(cards: Mapping[int, MemoryCard]) -> Iterator[_Found]:
    yield from _shared(cards)
    yield from _updates(cards)


def _shared(cards: Mapping[int, MemoryCard]) -> Iterator[_Found]:
    """Entities of several regions, the rarer the more telling; quantities are constraints."""
    graph = entity_graph(cards)
    most = len(cards) if len(cards) <= 3 else max(2, int(0.6 * len(cards)))
    for node, data in graph.nodes(data=True):
        if data["kind"] != "entity":
            continue
        regions = tuple(sorted(int(number) for _, number in graph[node]))
        if not 2 <= len(regions) <= most:
            continue
        name = str(data["name"])
        quantity = is_quantity(name)
        if not quantity and name.isnumeric():
            continue
        words = 1 + name.count(" ")
        rarity = math.log((1 + len(cards)) / len(regions))
        yield _Found(
            kind="repeated_constraint" if quantity else "shared_entity",
            subject=name,
            regions=regions,
            note="",
            weight=rarity * (1 + 0.3 * min(words, 3)),
        )


@dataclass(frozen=True, slots=True)
class _Statement:
    region: int
    text: str
    terms: frozenset[str]
    numbers: tuple[str, ...]


def _updates(cards: Mapping[int, MemoryCard]) -> Iterator[_Found]:
    """Statements that say the same of a later region with other numbers or dates."""
    statements = list(_statements(cards))
    frequency = Counter(term for statement in statements for term in statement.terms)
    by_subject: defaultdict[tuple[str, ...], list[_Statement]] = defaultdict(list)
    for statement in statements:
        rarest = sorted(statement.terms, key=lambda term: (frequency[term], term))
        # Statements on one subject share their rarest words; comparing all pairs would be
        # quadratic in the length of the document.
        subject = tuple(sorted(rarest[:2], key=lambda term: term))
        earlier = by_subject[subject]
        for old in reversed(earlier[-4:]):
            if old.region < statement.region and _changed(old, statement):
                yield _Found(
                    kind="temporal_update",
                    subject=_subject(statement),
                    regions=(old.region, statement.region),
                    note=f"{', '.join(old.numbers)} → {', '.join(statement.numbers)}",
                    weight=float(len(old.terms & statement.terms)),
                )
                break
        earlier.append(statement)


def _changed(old: _Statement, new: _Statement) -> bool:
    common = len(old.terms & new.terms) / len(old.terms | new.terms)
    same_form = len(old.numbers) == len(new.numbers)
    return common >= _SAME_SUBJECT and same_form and old.numbers != new.numbers


def _statements(cards: Mapping[int, MemoryCard]) -> Iterator[_Statement]:
    terms = Terms()
    for number, card in sorted(cards.items()):
        texts = [card.summary[start:end] for start, end in sentences(card.summary)]
        seen: set[frozenset[str]] = set()
        for text in (*texts, *(entry.gist for entry in card.page_index)):
            numbers = tuple(_NUMBER.findall(text))
            words = frozenset(
                term
                for term in terms.of(text)
                if term not in STOP_WORDS and not any(sign.isdigit() for sign in term)
            )
            if numbers and len(words) >= _FEWEST_TERMS and words not in seen:
                seen.add(words)
                yield _Statement(number, text, words, numbers)


def _subject(statement: _Statement) -> str:
    words = _NUMBER.sub(" ", statement.text).split()
    return " ".join(words[:8]).strip(" .,;:()[]")
