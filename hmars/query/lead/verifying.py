"""Is a quotation about what the question means? Answers the failure S-PARSER reports: a finding on
a namesake wins, because readers do not see what is known and the lead does not see the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from hmars.prompts import PromptedModel, defuse, one_line, render_pages
from hmars.query.lead.agents import Check, Checked
from hmars.query.lead.readers import render_facts


class VerifyReply(BaseModel):
    """What the verifying reader must send."""

    about: str
    verdict: Literal["match", "mismatch", "unclear"]
    why: str = ""


@dataclass(frozen=True)
class ModelVerifier:
    """A reader that sees the quotation in its page, the question, the query and the facts."""

    model: PromptedModel

    async def check(self, check: Check) -> Checked:
        """Raises: CallFailed, EndpointError, as `Verifier.check`."""
        pages = render_pages([check.page])
        reply = await self.model.ask(
            VerifyReply,
            affinity=f"{check.finding.document}:{check.page.index}",
            documents=(check.finding.document,),
            page=pages,
            facts=render_facts(check.facts),
            question=defuse(check.question),
            query=defuse(check.finding.query),
            quote=defuse(" ".join(check.finding.quote.split())),
            answer=one_line(check.finding.answer, 500),
        )
        return Checked(reply.verdict, one_line(reply.about), one_line(reply.why, 300))
