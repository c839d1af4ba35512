"""Ask with the lead as a profile says: what the facade calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from hmars.llm.contract import ChatModel
from hmars.model import Answer, Role, Usage
from hmars.prompts import PromptLibrary
from hmars.query.agents import OnText, QueryAgents, Scope
from hmars.query.consider import OnProgress
from hmars.query.lead.driver import ask_lead
from hmars.query.lead.family import lead_settings, model_lead_agents
from hmars.query.lead.kept import LeadMemory
from hmars.query.lead.rules import extractive_lead_agents
from hmars.query.lead.trajectory import append_trajectory
from hmars.query.ranking import LexicalIndex
from hmars.settings import Profile
from hmars.tokens import Tokenizer


async def ask_with_lead(
    question: str,
    scope: Scope,
    agents: QueryAgents,
    tokenizer: Tokenizer,
    *,
    profile: Profile,
    models: Callable[[Role], ChatModel] | None,
    prompts: PromptLibrary,
    workers: int,
    memory: LeadMemory | None = None,
    lexical: LexicalIndex | None = None,
    trajectory: Path | None = None,
    usage: Callable[[], Mapping[str, Usage]] = dict,
    on_text: OnText | None = None,
    on_progress: OnProgress | None = None,
) -> Answer:
    """Answer in rounds.

    Args:
        agents: those of the single query.
        models: None where there are none.
        memory: keeps what the next question can use; the sentences of a scope only where
            `lexical`, the index of the single query, is given.

    Raises:
        ConfigError: a role is missing, or a size or prompt file cannot work.
        InputError: the trajectory file cannot be written; said before anything is paid for.
        ModelError: the answer could not be made at all.
    """
    settings = lead_settings(profile, workers)
    if trajectory is not None:
        await asyncio.to_thread(append_trajectory, trajectory, None)
    memory = memory or LeadMemory()
    if models is None:
        window = profile.read.window_tokens
        index = None
        if lexical is not None:
            index = await asyncio.to_thread(memory.sentences.of, lexical, scope, window)
        led = await asyncio.to_thread(
            extractive_lead_agents, question, scope, agents, window, index
        )
    else:
        led = model_lead_agents(
            question, profile, models, prompts, tokenizer, scope, agents, memory.actions
        )
    result = await ask_lead(
        question,
        scope,
        led,
        settings,
        tokenizer,
        usage=usage,
        on_text=on_text,
        on_progress=on_progress,
    )
    if trajectory is not None:
        await asyncio.to_thread(append_trajectory, trajectory, result.trajectory)
    return result.answer
