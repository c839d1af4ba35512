"""Pointwise selection: one call a page, one token, a score from what the model nearly said.

Listwise selection (S-HMARS eq. 6) asks a model to name the pages of a region, which small models
cannot do; they can tell better from worse, though, where only the difference log P(yes) - log P(no)
counts and not which of the two they say. So pages are ranked by it over the whole scope.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hmars.errors import CallFailed, EndpointError
from hmars.fanout import fan_out
from hmars.llm.contract import ChatReply
from hmars.model import MemoryCard, Page, Region
from hmars.prompts import PromptedModel, boundary, enclose, one_line, render_card, render_pages
from hmars.query.agents import Guidance, RegionSelection, SelectedPage

ALTERNATIVES = 20
"""Of the first token; the most that common servers give."""
AROUND = " \t\r\n\"'`*_.,:;!?()[]▁Ġ\u2060"
"""What may stand around the word inside its token."""
AT_ONCE = 64
"""Pages of one region asked together; the endpoint's limiter decides how many go out."""


@dataclass(frozen=True, slots=True)
class PageScore:
    """`log_odds` is log P(yes) - log P(no); `floored` where one of them was not offered."""

    log_odds: float
    floored: bool = False

    @property
    def share(self) -> float:
        """P(yes) against P(no) as a number in 0..1: comparable wherever the page stands."""
        return 1.0 / (1.0 + math.exp(-max(-700.0, min(700.0, self.log_odds))))


def page_score(alternatives: Sequence[tuple[str, float]]) -> PageScore | None:
    """Score from (token, log probability) pairs; None where neither word is among them.

    A word that is missing is at most as probable as the least probable one that is there.
    """
    floor = min((value for _, value in alternatives), default=0.0)
    yes = _together(alternatives, "yes")
    no = _together(alternatives, "no")
    if yes is None and no is None:
        return None
    return PageScore(
        (floor if yes is None else yes) - (floor if no is None else no), yes is None or no is None
    )


def _together(alternatives: Sequence[tuple[str, float]], word: str) -> float | None:
    """The log probability of a word in all its spellings."""
    values = [value for token, value in alternatives if token.strip(AROUND).casefold() == word]
    if not values:
        return None
    most = max(values)
    return most + math.log(sum(math.exp(value - most) for value in values))


@dataclass(frozen=True)
class PointwiseSelector:
    """A sub-agent that judges each of its pages alone and gives a score to every one."""

    model: PromptedModel

    async def select(
        self, question: str, region: Region, card: MemoryCard | None, guidance: Guidance
    ) -> RegionSelection:
        """All pages with text, with their confidence; `Cutter` decides which of them count.

        Raises:
            CallFailed: one of the pages could not be scored; the message names it.
            EndpointError: the endpoint gives no log probabilities, or no call can succeed.
        """
        notes = enclose("card", _notes(card))

        async def score(page: Page) -> PageScore:
            try:
                reply = await self.model.first_token(
                    ALTERNATIVES,
                    affinity=region.key,
                    documents=(region.document,),
                    mark=boundary([page.text]),
                    card=notes,
                    page=render_pages([page]),
                    question=question,
                    interpretation=one_line(guidance.interpretation, 1_000),
                    hint=one_line(guidance.hint, 500),
                )
                return self._read(reply)
            except CallFailed as error:
                raise CallFailed(
                    f"page {page.index}: {error}",
                    problem=error.problem,
                    role=error.role,
                    usage=error.usage,
                    attempts=error.attempts,
                ) from None

        pages = [page for page in region.pages if page.text.strip()]
        # The first page warms what all prompts begin with; then the rest at once. A line with
        # the page's mark stands before the card: llama.cpp gives the kept state of one prompt away
        # to any other that shares a quarter of it, and with the card in front neighbouring pages
        # did, so that they had to be read again for every question.
        scores = [await score(page) for page in pages[:1]]
        scores += await fan_out(pages[1:], score, workers=AT_ONCE)
        return RegionSelection(
            pages=tuple(
                SelectedPage(page, found.share) for page, found in zip(pages, scores, strict=True)
            ),
            floored=sum(found.floored for found in scores),
        )

    def _read(self, reply: ChatReply) -> PageScore:
        alternatives = reply.extra.get("top_logprobs")
        if not alternatives:
            raise EndpointError(
                "The endpoint of role 'select' returns no log probabilities, which "
                "select.mode = 'pointwise' lives on: set select.mode = 'listwise', or use a "
                "server that has them (vLLM, llama.cpp).",
                problem="bad_request",
                role="select",
            )
        found = page_score(alternatives)
        if found is None:
            raise CallFailed(
                f"the model of role 'select' began with {alternatives[0][0]!r} and had neither "
                "yes nor no among its alternatives (a thinking model must be asked not to think)",
                problem="invalid_reply",
                role="select",
            )
        return found


def _notes(card: MemoryCard | None) -> str:
    """The card without its lines on single pages: the page itself is there."""
    return render_card(card.model_copy(update={"page_index": ()})) if card else "(not written yet)"


@dataclass(frozen=True)
class Cutter:
    """Which of the scored pages count: the best of the whole scope, down to a gap.

    A page counts while it is at most `gap` log-odds below the best page of the scope and above
    `least` log-odds. Where such pages hold more than the evidence budget, their passages compete
    for it. A region none of whose pages counts has abstained.
    """

    gap: float
    least: float

    def __call__(
        self, selections: Mapping[tuple[str, int], RegionSelection]
    ) -> dict[tuple[str, int], RegionSelection]:
        odds = [_log_odds(it.confidence) for found in selections.values() for it in found.pages]
        floor = max(self.least, max(odds, default=0.0) - self.gap)
        return {
            key: replace(
                found,
                pages=tuple(it for it in found.pages if _log_odds(it.confidence) >= floor),
            )
            for key, found in selections.items()
        }


def _log_odds(share: float) -> float:
    return math.log(max(share, 1e-300)) - math.log(max(1.0 - share, 1e-300))
