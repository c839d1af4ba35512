"""Which agents write a document's hierarchy, by profile."""

from __future__ import annotations

from collections.abc import Callable

from hmars.indexing.extractive import ExtractiveCardAgent, ExtractiveRegionalAgent
from hmars.indexing.model_agents import ModelCardAgent, ModelRegionalAgent
from hmars.indexing.pipeline import IndexAgents
from hmars.llm.contract import ChatModel
from hmars.model import Role
from hmars.prompts import Prompt, PromptedModel, PromptLibrary
from hmars.settings import Profile
from hmars.tokens import Tokenizer


def index_agents(
    profile: Profile,
    models: Callable[[Role], ChatModel] | None,
    prompts: PromptLibrary,
    tokenizer: Tokenizer,
    document: str,
) -> IndexAgents:
    """The agents of one document; `models` is not needed where the profile has none."""
    if profile.agents == "extractive" or models is None:
        return IndexAgents(ExtractiveCardAgent(), ExtractiveRegionalAgent())
    card, region = prompts.get("write_card"), prompts.get("write_regional_memory")
    exact = profile.tokenizer.exact
    return IndexAgents(
        card=ModelCardAgent(
            PromptedModel("card", models("card"), card, tokenizer, exact),
            author=author(profile, "card", card),
        ),
        regional=ModelRegionalAgent(
            PromptedModel("region", models("region"), region, tokenizer, exact),
            author=author(profile, "region", region),
            documents=(document,),
        ),
    )


def author(profile: Profile, role: Role, prompt: Prompt) -> str:
    """Model, prompt and temperature: what makes two cards of one region comparable."""
    settings = profile.roles[role]
    return (
        f"{settings.model}, {prompt.ref} {prompt.ref.sha256[:12]}, "
        f"temperature {settings.temperature:g}"
    )
