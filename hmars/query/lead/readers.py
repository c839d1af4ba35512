"""Readers that are asked once for each window and query: without thinking, or with it.

Instructions and window come first and do not depend on the question, so that a server's prefix
cache serves them in every later round and question (promise 6). The two differ only in how the
role `read` is served: `read.mode = "thinking"` turns thinking on there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, WithJsonSchema, field_validator

from hmars.llm.contract import ChatRequest, value_of
from hmars.prompts import PromptedModel, defuse, one_line, render_pages
from hmars.query.lead.agents import Claim, Reading, Window

Share = Annotated[Any, WithJsonSchema({"type": "number"})]
DEFAULT_CONFIDENCE = 0.5
ABSTENTIONS = frozenset({"", "unknown", "none", "null", "n/a", "not found", "no answer"})
"""What some readers write into the fields of a finding when they mean that there is none."""
NONE_YET = "(none yet)"
NO_HINT = "(nothing in particular)"


class ClaimReply(BaseModel):
    quote: str
    answer: str
    confidence: Share = DEFAULT_CONFIDENCE


class ReadReply(BaseModel):
    """What a reader must send; `{"findings": []}` is the abstention."""

    findings: list[ClaimReply]

    @field_validator("findings", mode="before")
    @classmethod
    def _abstention(cls, value: Any) -> Any:  # noqa: ANN401 - it is what a model sent
        """null, and one finding without its list, say what they mean."""
        if value is None:
            return []
        return [value] if isinstance(value, dict) else value


@dataclass(frozen=True)
class ModelReader:
    """One call a reading."""

    model: PromptedModel
    _kept: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """Windows as prompt text with their tokens, by agent: made once, read in every round."""

    async def read(self, reading: Reading, window: Window) -> Sequence[Claim]:
        """Raises: CallFailed, EndpointError, as `Reader.read`."""
        pages, tokens = self._rendered(window)
        changing = {
            "facts": render_facts(reading.facts),
            "hint": one_line(reading.hint, 1_000) or NO_HINT,
            "query": defuse(reading.query),
        }
        asked = self.model
        request = ChatRequest(
            role=asked.role,
            messages=asked.prompt.render(pages=pages, **changing),
            prompt=asked.prompt.ref,
            output=ReadReply,
            affinity=window.key,
            documents=(window.document,),
            prompt_tokens=tokens + asked.tokenizer.count("\n".join(changing.values())),
            prompt_tokens_exact=asked.tokenizer_exact,
        )
        return claims_of(value_of(await asked.model.complete(request), ReadReply).findings)

    def _rendered(self, window: Window) -> tuple[str, int]:
        """The window and the tokens of all that does not change with the query."""
        if window.agent not in self._kept:
            pages, prompt = render_pages(window.pages), self.model.prompt
            tokens = sum(map(self.model.tokenizer.count, (pages, prompt.system, prompt.user)))
            self._kept[window.agent] = (pages, tokens)
        return self._kept[window.agent]


def claims_of(replies: Sequence[ClaimReply]) -> list[Claim]:
    """What was found, most confident first. A finding that holds nothing is an abstention; an
    answer without a quotation stays, to be counted as one that is not verified."""
    claims = [
        Claim(entry.quote.strip(), one_line(entry.answer, 500), share(entry.confidence))
        for entry in replies
        if not (_empty(entry.quote) and _empty(entry.answer)) and not _says_unknown(entry.quote)
    ]
    return sorted(claims, key=lambda claim: -claim.confidence)


def _empty(text: str) -> bool:
    return text.strip(" .\n\"'").casefold() in ABSTENTIONS


def _says_unknown(quote: str) -> bool:
    """The whole quotation is the word; one that merely holds it is a quotation."""
    return quote.strip(" .\n\"'").casefold() == "unknown"


def render_facts(facts: Sequence[str]) -> str:
    return "\n".join(f"- {one_line(fact, 500)}" for fact in facts) or NONE_YET


def share(value: Any) -> float:  # noqa: ANN401 - it is what a model sent
    """A confidence as 0..1, the default where it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return DEFAULT_CONFIDENCE
    if number != number:
        return DEFAULT_CONFIDENCE
    return min(1.0, max(0.0, number / 100.0 if 1.0 < number <= 100.0 else number))
