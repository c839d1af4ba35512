"""Which agents answer a question, by profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from hmars.graph import across_groups
from hmars.llm.contract import ChatModel
from hmars.model import CrossReference, Role
from hmars.prompts import PromptedModel, PromptLibrary
from hmars.query.agents import QueryAgents, Scope
from hmars.query.model_agents import ListwiseSelector, ModelAnswerer, ModelBroadcaster
from hmars.query.passages import LexicalDivider
from hmars.query.pointwise import Cutter, PointwiseSelector
from hmars.query.ranking import LexicalIndex
from hmars.settings import Profile
from hmars.tokens import Tokenizer


def model_query_agents(
    profile: Profile,
    models: Callable[[Role], ChatModel],
    prompts: PromptLibrary,
    tokenizer: Tokenizer,
    scope: Scope,
    index: Callable[[], LexicalIndex] | None = None,
) -> QueryAgents:
    """Agents that ask models, for one scope.

    `index` gives the scope's passages where they are kept; without it they are ranked anew.
    """
    index = index or cache(lambda: LexicalIndex(scope, tokenizer))

    def prompted(role: Role, name: str) -> PromptedModel:
        # Another family's tokenizer may count very differently: the reader is often another family.
        exact = profile.tokenizer.exact and role != "answer"
        return PromptedModel(role, models(role), prompts.get(name), tokenizer, exact)

    return QueryAgents(
        broadcaster=ModelBroadcaster(
            prompted("broadcast", "broadcast_question"), links=links_between_groups(scope)
        ),
        selector=(
            PointwiseSelector(prompted("select", "score_page"))
            if profile.select.mode == "pointwise"
            else ListwiseSelector(prompted("select", "select_pages"))
        ),
        answerer=ModelAnswerer(prompted("answer", "answer_question")),
        cut=(
            Cutter(profile.select.gap, profile.select.least)
            if profile.select.mode == "pointwise"
            else None
        ),
        divide=LexicalDivider(index),
    )


def links_between_groups(scope: Scope) -> dict[tuple[str, int], Sequence[CrossReference]]:
    """What the entity graph knows beyond each group, for its mid-agent: neither paper has this."""
    links: dict[tuple[str, int], list[CrossReference]] = {}
    for index in scope.indexes:
        group_of = {number: group.index for group in index.groups for number in group.regions}
        for reference in across_groups(index):
            for group in sorted({group_of[number] for number in reference.regions}):
                links.setdefault((index.document.id, group), []).append(reference)
    return dict(links)
