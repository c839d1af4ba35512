"""Does what a role will be sent fit the model that is to read it? Asked before a run starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hmars.errors import ConfigError
from hmars.llm.stack import ModelStack
from hmars.model import Role
from hmars.settings import Profile


@dataclass(frozen=True, slots=True)
class Need:
    """The longest prompt of a role, in tokens, and the profile key that governs it."""

    role: Role
    prompt_tokens: int
    key: str
    value: int


INSTRUCTIONS = 700
"""More than any prompt's instructions, question and hints take."""
CARD = 600
"""More than a card usually takes in a prompt."""

FACTS = 1_600
"""More than the facts take that a reader of the lead is told beside its window."""


def needs(profile: Profile, roles: Sequence[Role]) -> list[Need]:
    """The longest prompts of these roles under a profile's sizes."""
    region = profile.partition.region_tokens
    group = profile.partition.group_regions
    evidence = profile.answer.max_prompt_tokens
    window = profile.read.window_tokens
    selection = Need("select", region + CARD + INSTRUCTIONS, "partition.region_tokens", region)
    if profile.select.mode == "pointwise":
        page = profile.partition.page_tokens
        selection = Need("select", page + CARD + INSTRUCTIONS, "partition.page_tokens", page)
    all_needs: dict[Role, Need] = {
        "card": Need("card", region + INSTRUCTIONS, "partition.region_tokens", region),
        "select": selection,
        "region": Need("region", group * CARD + INSTRUCTIONS, "partition.group_regions", group),
        "answer": Need("answer", evidence + INSTRUCTIONS, "answer.max_prompt_tokens", evidence),
        "read": Need("read", window + FACTS + INSTRUCTIONS, "read.window_tokens", window),
    }
    if profile.read.mode == "grep":  # it searches its region and never sees the whole of it
        del all_needs["read"]
    return [all_needs[role] for role in roles if role in all_needs]


async def check_fit(stack: ModelStack, profile: Profile, wanted: Sequence[Need]) -> None:
    """Compare with each role's context length, where it is known.

    Raises:
        ConfigError: a prompt and its reply cannot fit; the message says what to change.
    """
    for need in wanted:
        context = await stack.context_tokens(need.role)
        reply = profile.roles[need.role].max_tokens
        if context is None or need.prompt_tokens + reply <= context:
            continue
        room = context - reply - (need.prompt_tokens - need.value)
        if need.key == "partition.group_regions":
            room = (context - reply - INSTRUCTIONS) // CARD
        remedy = (
            f"lower {need.key} to {room:,}" if room > 0 else f"lower roles.{need.role}.max_tokens"
        )
        raise ConfigError(
            f"The model of role '{need.role}' takes {context:,} tokens, but {need.key} = "
            f"{need.value:,} with instructions and a reply of {reply:,} needs "
            f"{need.prompt_tokens + reply:,}: {remedy}, or serve the model with a longer context."
        )
