"""What the driver asks of a lead, of its readers and of its verifier, and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hmars.llm.contract import Message, PromptRef
from hmars.model import Finding, Page, Region, Verdict
from hmars.query.agents import Answerer, QueryAgents
from hmars.settings import LeadSettings

EntryKind = Literal["prompt", "lead", "observation", "hint"]


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive whole pages of one region, bound to one reader for the whole question."""

    agent: int
    """From 1 in reading order of the scope; shown to the lead as `agent_N`."""
    document: str
    region: int
    pages: tuple[Page, ...]
    text: str
    key: str
    """Content address: equal windows are routed to the same replica, whatever the question."""

    @property
    def start(self) -> int:
        return self.pages[0].start

    @classmethod
    def over(cls, agent: int, region: Region, pages: tuple[Page, ...]) -> Window:
        part = Region(region.document, region.index, pages)
        return cls(agent, region.document, region.index, pages, part.text, part.key)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader is asked, beside its window."""

    query: str
    hint: str = ""
    """What the mid-agent of the region says to look for."""
    facts: tuple[str, ...] = ()
    """What has been found so far, one line each."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding as a reader gives it: the quotation is not verified yet."""

    quote: str
    answer: str
    confidence: float


class Reader(Protocol):
    async def read(self, reading: Reading, window: Window) -> Sequence[Claim]:
        """Find what answers the query in the window; nothing is an abstention.

        Raises:
            CallFailed: the window was not read.
            EndpointError: no window can be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """A quotation to be checked against what the question means."""

    question: str
    finding: Finding
    page: Page
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    verdict: Verdict
    about: str = ""
    """Whom or what the passage is about."""
    why: str = ""


class Verifier(Protocol):
    async def check(self, check: Check) -> Checked:
        """Raises: as `Reader.read`."""
        ...


# ---------------------------------------------------------------- leading


@dataclass(frozen=True, slots=True)
class QueryCall:
    """One call of a turn: a query, or what is wrong with it."""

    query: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One turn of the lead. `answer` counts only without calls; with neither it is invalid."""

    calls: tuple[QueryCall, ...] = ()
    answer: str | None = None
    problem: str = ""
    """What is wrong with a turn that is neither."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the lead is told of one call."""

    text: str
    findings: tuple[Finding, ...] = ()
    """Those that are in the text."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message of the conversation with the lead, and whose words it holds."""

    message: Message
    kind: EntryKind
    invalid: bool = False
    """Of a turn of the lead that could not be used."""


class Lead(Protocol):
    """One question's lead: decides, is told what came of it, decides again.

    It sees the question and findings, never the text itself.
    """

    @property
    def entries(self) -> Sequence[Entry]: ...

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def prompt(self) -> PromptRef | None: ...

    @property
    def tokens(self) -> int:
        """Of the conversation so far, without the next turn."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What a reader of the ledger should know of how the lead was driven."""
        ...

    async def decide(self) -> Decision:
        """The next turn.

        Raises:
            CallFailed: there is none, and asking again will not help.
            EndpointError: as the contract of models.
        """
        ...

    def observe(self, observations: Sequence[Observation]) -> None:
        """Take the results of the last decision's calls, in their order."""
        ...

    def tell(self, text: str, *, kind: EntryKind = "hint") -> None:
        """Take a word from the driver."""
        ...


@dataclass(frozen=True)
class LeadAgents:
    """The agents of one question."""

    lead: Lead
    reader: Reader
    answerer: Callable[[str], Answerer]
    """Takes the lead's conclusion as a draft, empty where there is none."""
    verifier: Verifier | None = None
    guide: QueryAgents | None = None
    """Whose mid-agents read each query first and give hints; None: no hints."""
    window_tokens: int | None = None
    """None: a whole region is one window."""


@dataclass(frozen=True)
class LeadAskSettings:
    """What a question needs of a profile; tokens are those of the declared tokenizer."""

    max_evidence_tokens: int
    lead: LeadSettings = field(default_factory=LeadSettings)
    workers: int = 16
