"""What indexing a text and asking it once would take, without calling anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import Field

from hmars.graph import candidates as suggested_references
from hmars.indexing.extractive import fallback_card
from hmars.indexing.model_agents import CARD_TOKENS, MEMORY_TOKENS, candidate_lines
from hmars.indexing.partition import Partition, partition
from hmars.indexing.read import read_source
from hmars.llm.budget import cost_of
from hmars.model import Frozen, Region, Role, SourceText, Usage
from hmars.prompts import PromptLibrary, render_card, render_pages
from hmars.settings import Profile
from hmars.store import UsageRow
from hmars.tokens import Tokenizer

CHAT_TEMPLATE_TOKENS = 12
"""What a chat template adds to a system and a user message."""
HINTS_TOKENS = 250
SELECTION_TOKENS = 120
ANSWER_TOKENS = 300
QUESTION_TOKENS = 30
REASK_TOKENS = 300
"""What a second request adds: the reason, how the first reply began, the schema."""
CARD_IN_PROMPT = 0.85
"""Of the tokens a card was written in, as JSON, what it takes in a prompt."""
LONGEST_CARD, LONGEST_MEMORY = 600, 1_200
"""More than a card and a regional memory usually take in a prompt, however long the reply was."""
CARD_MARKS = 24
"""The lines around a card in a prompt."""
CARD_OF_ONE_PAGE = 0.6
"""The same without its lines on single pages."""
GUIDANCE_TOKENS = 3 * QUESTION_TOKENS
"""Question, interpretation and hint as a region is told them."""


class RoleEstimate(Frozen):
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    longest_completion_tokens: int = 0
    """If every reply ran to `max_tokens`, and none was asked for again."""
    learned: bool = False
    """Replies are taken at the length, and re-asks at the rate, of earlier runs of this store."""
    seconds: float | None = None
    """From the speed measured in earlier runs of this store; None where there were none."""
    cost: float | None = None
    """Without any cache, in the money of the profile's prices; None where it names none."""


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


@dataclass(frozen=True, slots=True)
class Measured:
    """What earlier calls of one role and model were like."""

    calls: int
    reasks: int
    failed: int
    completion_tokens: int
    seconds: float
    tokens: int

    @property
    def reply_tokens(self) -> int:
        return round(self.completion_tokens / self.calls)

    @property
    def attempts(self) -> float:
        """Calls for each reply that was wanted: a model that is often asked again costs more."""
        return self.calls / max(1, self.calls - self.reasks)

    @property
    def failing(self) -> float:
        """The share of replies that could not be had at all."""
        return min(1.0, self.failed / max(1, self.calls - self.reasks))


def measured(history: Sequence[UsageRow], profile: Profile) -> dict[str, Measured]:
    """The history by role, of the models that the profile has now and of calls that were made."""
    models = {str(role): settings.model for role, settings in profile.roles.items()}
    found: dict[str, Measured] = {}
    for row in history:
        if row.usage.calls > row.usage.retries and models.get(row.role) == row.model:
            usage, known = row.usage, found.get(row.role, Measured(0, 0, 0, 0, 0.0, 0))
            found[row.role] = Measured(
                known.calls + usage.calls - usage.retries,
                known.reasks + usage.reasks,
                known.failed + row.failed,
                known.completion_tokens + usage.completion_tokens,
                known.seconds + row.seconds,
                known.tokens + usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens,
            )
    return found


def estimate_file(
    source: str | Path | SourceText,
    password: str | None,
    profile: Profile,
    prompts: PromptLibrary,
    tokenizer: Tokenizer,
    history: Sequence[UsageRow],
) -> Estimate:
    """`estimate` of a file or text that is not partitioned yet.

    Raises:
        InputError, EmptyInputError: the file cannot be read, or holds nothing.
    """
    text = read_source(source, password=password)
    parts = partition(text, tokenizer, profile.partition, "")
    return estimate(text, parts, profile, prompts, tokenizer, history=history)


def estimate(
    source: SourceText,
    parts: Partition,
    profile: Profile,
    prompts: PromptLibrary,
    tokenizer: Tokenizer,
    *,
    written: frozenset[int] = frozenset(),
    history: Sequence[UsageRow] = (),
) -> Estimate:
    """Count what would be sent; replies are taken at the length they had, else at a usual one.

    Args:
        written: indexes of the regions whose cards are there already.
        history: of earlier calls, for the length of replies and for speed.
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
    count = _Counting(parts, profile, prompts, tokenizer, measured(history, profile))
    return sizes.model_copy(
        update={"index": count.index(written), "question": count.question(parts.tokens)}
    )


@dataclass(frozen=True)
class _Counting:
    parts: Partition
    profile: Profile
    prompts: PromptLibrary
    tokenizer: Tokenizer
    measured: dict[str, Measured]

    @property
    def regions(self) -> list[Region]:
        return [region for region in self.parts.regions if not region.blank]

    def index(self, written: frozenset[int]) -> dict[str, RoleEstimate]:
        missing = [region for region in self.regions if region.index not in written]
        stale = [group for group in self.parts.groups if not written.issuperset(group.regions)]
        cards = sum(len(group.regions) for group in stale)
        return {
            "card": self._role(
                "card",
                len(missing),
                len(missing) * self._fixed("write_card")
                + sum(self._count(render_pages(region.pages)) for region in missing),
                self._reply("card", CARD_TOKENS),
            ),
            "region": self._role(
                "region",
                len(stale),
                len(stale) * self._fixed("write_regional_memory") + cards * self._card,
                self._reply("region", MEMORY_TOKENS),
            ),
        }

    def question(self, tokens: int) -> dict[str, RoleEstimate]:
        groups = len(self.parts.groups)
        memory = min(self._reply("region", MEMORY_TOKENS), LONGEST_MEMORY) * CARD_IN_PROMPT
        evidence = min(self.profile.answer.max_prompt_tokens, tokens)
        return {
            "broadcast": self._role(
                "broadcast",
                groups,
                groups * (self._fixed("broadcast_question") + round(memory) + QUESTION_TOKENS),
                self._reply("broadcast", HINTS_TOKENS),
            ),
            "select": self._select(),
            "answer": self._role(
                "answer",
                1,
                self._fixed("answer_question") + QUESTION_TOKENS + evidence,
                self._reply("answer", ANSWER_TOKENS),
            ),
        }

    def _select(self) -> RoleEstimate:
        card = self._card
        if self.profile.select.mode == "pointwise":
            pages = [page for region in self.regions for page in region.pages if page.text.strip()]
            fixed = self._fixed("score_page") + round(card * CARD_OF_ONE_PAGE) + GUIDANCE_TOKENS
            prompt = sum(self._count(render_pages([page])) for page in pages) + fixed * len(pages)
            return self._role("select", len(pages), prompt, 1)
        prompt = sum(self._count(render_pages(region.pages)) for region in self.regions)
        beside = round(card * CARD_IN_PROMPT) + GUIDANCE_TOKENS
        prompt += len(self.regions) * (self._fixed("select_pages") + beside)
        reply = self._reply("select", SELECTION_TOKENS)
        return self._role("select", len(self.regions), prompt, reply)

    @cached_property
    def _card(self) -> int:
        """Tokens of a card, as JSON. Where the model's replies failed, deterministic cards stand in
        for them, which are as long as the text wants; those of the first group show how long."""
        usual = min(self._reply("card", CARD_TOKENS), LONGEST_CARD)
        known = self.measured.get("card")
        if known is None or not known.failed or not self.regions:
            return usual
        first = [region for region in self.regions if region.index in self.parts.groups[0].regions]
        cards = [fallback_card(region, "") for region in first or self.regions[:1]]
        joined = [*map(render_card, cards), candidate_lines(suggested_references(cards))]
        fallback = sum(map(self._count, joined)) / len(cards) + CARD_MARKS
        return round((1.0 - known.failing) * usual + known.failing * fallback)

    def _role(self, role: Role, wanted: int, prompt: int, reply: int) -> RoleEstimate:
        """`wanted` replies; earlier runs tell how many calls that takes."""
        settings = self.profile.roles[role]
        known = self.measured.get(role)
        attempts = known.attempts if known else 1.0
        calls = round(wanted * attempts)
        prompt = round(prompt * attempts) + (calls - wanted) * REASK_TOKENS
        usage = Usage(prompt_tokens=prompt, completion_tokens=calls * reply)
        seconds = None
        if known is not None and known.tokens:
            # Calls in flight share the speed that each of them saw.
            at_once = max(1, min(calls, self.profile.endpoints[settings.endpoint].in_flight))
            seconds = (prompt + calls * reply) * known.seconds / known.tokens / at_once
        return RoleEstimate(
            calls=calls,
            prompt_tokens=prompt,
            completion_tokens=calls * reply,
            longest_completion_tokens=wanted * settings.max_tokens,
            learned=known is not None,
            seconds=None if seconds is None else round(seconds, 1),
            cost=cost_of(usage, settings.price) if settings.price else None,
        )

    def _reply(self, role: Role, usual: int) -> int:
        known = self.measured.get(role)
        longest = self.profile.roles[role].max_tokens
        return min(usual, longest) if known is None else known.reply_tokens

    def _fixed(self, name: str) -> int:
        prompt = self.prompts.get(name)
        return self._count(prompt.system) + self._count(prompt.user) + CHAT_TEMPLATE_TOKENS

    def _count(self, text: str) -> int:
        return self.tokenizer.count(text)
