"""What indexing a text and asking it once would take, without calling anybody."""

from __future__ import annotations

from pydantic import Field

from hmars.indexing.model_agents import CARD_TOKENS, MEMORY_TOKENS
from hmars.indexing.partition import Partition
from hmars.model import Frozen, Region, SourceText
from hmars.prompts import PromptLibrary, render_pages
from hmars.settings import Profile
from hmars.tokens import Tokenizer

CHAT_TEMPLATE_TOKENS = 12
"""What a chat template adds to a system and a user message."""
HINTS_TOKENS = 250
SELECTION_TOKENS = 120
ANSWER_TOKENS = 300
QUESTION_TOKENS = 30


class RoleEstimate(Frozen):
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Estimate(Frozen):
    """Calls and tokens by role: to index this text now, and for each question asked of it."""

    title: str
    characters: int
    tokens: int
    pages: int
    regions: int
    groups: int
    index: dict[str, RoleEstimate] = Field(default_factory=dict[str, RoleEstimate])
    question: dict[str, RoleEstimate] = Field(default_factory=dict[str, RoleEstimate])


def estimate(
    source: SourceText,
    parts: Partition,
    profile: Profile,
    prompts: PromptLibrary,
    tokenizer: Tokenizer,
    *,
    written: frozenset[int] = frozenset(),
) -> Estimate:
    """Count what would be sent; replies are taken at their usual length.

    Args:
        written: indexes of the regions whose cards are there already.
    """
    sizes = Estimate(
        title=source.title,
        characters=len(source.text),
        tokens=parts.tokens,
        pages=sum(len(region.pages) for region in parts.regions),
        regions=len(parts.regions),
        groups=len(parts.groups),
    )
    if profile.agents == "extractive":
        return sizes
    regions = [region for region in parts.regions if not region.blank]
    missing = [region for region in regions if region.index not in written]
    stale = [group for group in parts.groups if not written.issuperset(group.regions)]

    def fixed(name: str) -> int:
        prompt = prompts.get(name)
        return tokenizer.count(prompt.system) + tokenizer.count(prompt.user) + CHAT_TEMPLATE_TOKENS

    def rendered(region: Region) -> int:
        return tokenizer.count(render_pages(region.pages))

    pages_read = sum(rendered(region) for region in regions)
    index = {
        "card": RoleEstimate(
            calls=len(missing),
            prompt_tokens=sum(fixed("write_card") + rendered(region) for region in missing),
            completion_tokens=CARD_TOKENS * len(missing),
        ),
        "region": RoleEstimate(
            calls=len(stale),
            prompt_tokens=sum(
                fixed("write_regional_memory") + CARD_TOKENS * len(group.regions)
                for group in stale
            ),
            completion_tokens=MEMORY_TOKENS * len(stale),
        ),
    }
    question = {
        "broadcast": RoleEstimate(
            calls=len(parts.groups),
            prompt_tokens=len(parts.groups)
            * (fixed("broadcast_question") + MEMORY_TOKENS + QUESTION_TOKENS),
            completion_tokens=HINTS_TOKENS * len(parts.groups),
        ),
        "select": RoleEstimate(
            calls=len(regions),
            prompt_tokens=pages_read
            + len(regions) * (fixed("select_pages") + CARD_TOKENS + 3 * QUESTION_TOKENS),
            completion_tokens=SELECTION_TOKENS * len(regions),
        ),
        "answer": RoleEstimate(
            calls=1,
            prompt_tokens=fixed("answer_question")
            + QUESTION_TOKENS
            + min(profile.answer.max_prompt_tokens, parts.tokens),
            completion_tokens=ANSWER_TOKENS,
        ),
    }
    return sizes.model_copy(update={"index": index, "question": question})
