"""How an embedded engine is set up: from the profile, the model and the machine."""

from __future__ import annotations

from dataclasses import dataclass

from hmars.llm.embedded.machine import Machine
from hmars.llm.embedded.shape import ModelShape
from hmars.llm.fit import needs
from hmars.model import Role
from hmars.settings import EndpointSettings, Profile

MEGABYTE = 1 << 20
STEP = 256
"""llama.cpp rounds the context of a slot up to this."""
MOST_SLOTS = 4
"""More sequences at once bring nothing on processors: they share the same cores."""
FEW_CPUS = 4
SLOTS_SHARE = 0.25
CACHE_SHARE = 0.5
"""Of the memory that is available, for the contexts of the slots and for kept prompts."""
LEAST_CACHE_MB = 256


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """What an engine is started with. `context_tokens` is that of one slot."""

    threads: int
    slots: int
    context_tokens: int
    cache_mb: int
    kv_bytes_per_token: int

    @property
    def cache_tokens(self) -> int:
        """Prompt tokens that the engine can keep for later questions."""
        if not self.kv_bytes_per_token:
            return 0
        return self.cache_mb * MEGABYTE // self.kv_bytes_per_token


def plan_engine(
    settings: EndpointSettings, need_tokens: int, shape: ModelShape, machine: Machine
) -> EnginePlan:
    """What the profile leaves open is derived; what it says is kept.

    Args:
        need_tokens: the longest prompt and reply of the roles that share the engine.
    """
    threads = settings.threads or (
        machine.cpus if machine.cpus <= FEW_CPUS else max(FEW_CPUS, machine.cpus // 2)
    )
    context = -(-need_tokens // STEP) * STEP
    if shape.context_tokens:
        context = min(context, shape.context_tokens)
    slot_mb = max(1, context * shape.kv_bytes_per_token // MEGABYTE)
    affordable = max(1, int(machine.memory_mb * SLOTS_SHARE) // slot_mb)
    slots = settings.slots or min(MOST_SLOTS, max(1, threads), affordable)
    left = int(machine.memory_mb * CACHE_SHARE)
    cache = settings.cache_mb if settings.cache_mb is not None else max(LEAST_CACHE_MB, left)
    return EnginePlan(
        threads=threads,
        slots=slots,
        context_tokens=context,
        cache_mb=cache,
        kv_bytes_per_token=shape.kv_bytes_per_token,
    )


def need_tokens(profile: Profile, endpoints: frozenset[str]) -> int:
    """The longest prompt and reply of the roles at these endpoints, in tokens of the profile."""
    roles: list[Role] = [
        role for role, settings in profile.roles.items() if settings.endpoint in endpoints
    ]
    wanted = [
        need.prompt_tokens + profile.roles[need.role].max_tokens for need in needs(profile, roles)
    ]
    said = [profile.roles[role].context_tokens or 0 for role in roles]
    return max([STEP, *wanted, *said])
