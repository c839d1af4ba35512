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
from hmars.query.lead.rules import extractive_lead_agents
from hmars.query.lead.trajectory import append_trajectory
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
    trajectory: Path | None = None,
    usage: Callable[[], Mapping[str, Usage]] = dict,
    on_text: OnText | None = None,
    on_progress: OnProgress | None = None,
) -> Answer:
    """Answer in rounds; `agents` are those of the single query, `models` None where there are none.

    Raises:
        ConfigError: a role is missing, or a size or prompt file cannot work.
        InputError: the trajectory file cannot be written; said before anything is paid for.
        ModelError: the answer could not be made at all.
    """
    settings = lead_settings(profile, workers)
    if trajectory is not None:
        await asyncio.to_thread(append_trajectory, trajectory, None)
    if models is None:
        window = profile.read.window_tokens
        led = await asyncio.to_thread(extractive_lead_agents, question, scope, agents, window)
    else:
        led = model_lead_agents(question, profile, models, prompts, tokenizer, scope, agents)
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
