"""Answers questions for one open memory: the agents of its profile, the driver that was chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from hmars.llm.contract import ChatModel
from hmars.model import Answer, Role, Usage
from hmars.prompts import PromptLibrary
from hmars.query.agents import OnText, Scope
from hmars.query.consider import OnProgress
from hmars.query.extractive import ExtractiveMemory
from hmars.query.family import model_query_agents
from hmars.query.lead import LeadMemory, ask_with_lead, lead_roles
from hmars.query.pipeline import AskSettings, ask
from hmars.settings import Profile
from hmars.tokens import Tokenizer

Driver = Literal["single", "lead"]
SINGLE: tuple[Role, ...] = ("broadcast", "select", "answer")


@dataclass(frozen=True)
class Call:
    """What belongs to one question and not to the memory it is asked of."""

    models: Callable[[Role], ChatModel] | None
    """None: the profile has no models."""
    workers: int
    driver: Driver = "single"
    trajectory: Path | None = None
    """With the lead: where its rounds are added as one line of JSON."""
    usage: Callable[[], Mapping[str, Usage]] = dict
    on_text: OnText | None = None
    on_progress: OnProgress | None = None


@dataclass
class Asker:
    """Keeps between questions what the next one can use: lexical indexes, and what was found out
    about the lead's endpoint."""

    profile: Profile
    prompts: PromptLibrary
    _extractive: ExtractiveMemory = field(default_factory=ExtractiveMemory)
    _lead: LeadMemory = field(default_factory=LeadMemory)

    def roles(self, driver: Driver) -> tuple[Role, ...]:
        """The roles that a question of this driver asks.

        Raises:
            ConfigError: the lead is wanted, and the profile has no model for it or its readers.
        """
        return SINGLE if driver == "single" else lead_roles(self.profile)

    def forget(self, document: str) -> None:
        """Drop everything that holds text of this document."""
        self._extractive.forget(document)

    async def ask(self, question: str, scope: Scope, tokenizer: Tokenizer, call: Call) -> Answer:
        """Answer from the documents of `scope`.

        Raises:
            ConfigError, InputError, ModelError: as `ask` and `ask_with_lead`.
        """
        lexical = None
        if call.models is None:
            agents = self._extractive.agents(scope, tokenizer)
            if call.driver == "lead":
                lexical = self._extractive.index(scope, tokenizer)
        else:
            agents = model_query_agents(
                self.profile,
                call.models,
                self.prompts,
                tokenizer,
                scope,
                partial(self._extractive.index, scope, tokenizer),
            )
        if call.driver == "lead":
            return await ask_with_lead(
                question,
                scope,
                agents,
                tokenizer,
                profile=self.profile,
                models=call.models,
                prompts=self.prompts,
                workers=call.workers,
                memory=self._lead,
                lexical=lexical,
                trajectory=call.trajectory,
                usage=call.usage,
                on_text=call.on_text,
                on_progress=call.on_progress,
            )
        return await ask(
            question,
            scope,
            agents,
            AskSettings(
                max_evidence_tokens=self.profile.answer.max_prompt_tokens,
                read_all_below=self.profile.query.read_all_below,
                workers=call.workers,
            ),
            tokenizer,
            usage=call.usage,
            on_text=call.on_text,
            on_progress=call.on_progress,
        )
