"""Which lead, readers and answerer a profile means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from hmars.errors import ConfigError
from hmars.llm.contract import ChatModel, PromptRef
from hmars.model import Role
from hmars.prompts import Prompt, PromptedModel, PromptLibrary, boundary, defuse
from hmars.query.agents import QueryAgents, Scope
from hmars.query.lead.agents import Lead, LeadAgents, LeadAskSettings, Reader
from hmars.query.lead.auto import AutoLead, no_tools
from hmars.query.lead.concluding import DraftedAnswerer
from hmars.query.lead.dialogue import Dialogue
from hmars.query.lead.grep import GrepReader
from hmars.query.lead.kept import ActionMemory
from hmars.query.lead.readers import ModelReader
from hmars.query.lead.schemed import SchemaLead
from hmars.query.lead.tooled import ToolLead
from hmars.query.lead.verifying import ModelVerifier
from hmars.settings import LeadSettings, Profile
from hmars.tokens import Tokenizer

NEEDED: tuple[Role, ...] = ("lead", "read")
HINTED: tuple[Role, ...] = ("lead", "read", "broadcast", "answer")
UNHINTED: tuple[Role, ...] = ("lead", "read", "answer")
MARKS = ("$question", "{question}")


def lead_settings(profile: Profile, workers: int) -> LeadAskSettings:
    """What a question to the lead needs of a profile; its context is at most what is served.

    Raises:
        ConfigError: the lead's context as served has no room for its rounds.
    """
    lead = profile.lead
    role = profile.roles.get("lead")
    served = role.context_tokens if role is not None else None
    if served is not None and served < lead.max_context_tokens:
        if served < 2 * lead.turn_room:
            raise ConfigError(
                f"roles.lead.context_tokens ({served}) has no room for two rounds of "
                f"{lead.turn_room} tokens: lower lead.max_turn_tokens or "
                "lead.max_observation_tokens, or serve a longer context."
            )
        lead = lead.model_copy(update={"max_context_tokens": served})
    return LeadAskSettings(profile.answer.max_prompt_tokens, lead, workers)


def model_lead_agents(
    question: str,
    profile: Profile,
    models: Callable[[Role], ChatModel],
    prompts: PromptLibrary,
    tokenizer: Tokenizer,
    scope: Scope,
    guide: QueryAgents,
    actions: ActionMemory | None = None,
) -> LeadAgents:
    """Agents that ask models, for one question. `guide` are those of the single query; `actions`
    knows what earlier questions found out.

    Raises:
        ConfigError: a role is missing, or a prompt file cannot be used.
    """

    def prompted(role: Role, name: str) -> PromptedModel:
        exact = profile.tokenizer.exact and role != "answer"
        return PromptedModel(role, models(role), prompts.get(name), tokenizer, exact)

    actions = actions or ActionMemory()
    grep = profile.read.mode == "grep"
    return LeadAgents(
        lead=_lead(question, profile, models("lead"), prompts, tokenizer, scope, actions),
        reader=_reader(profile, models("read"), prompts, tokenizer, actions),
        answerer=lambda draft: DraftedAnswerer(prompted("answer", "lead_answer"), draft),
        verifier=ModelVerifier(prompted("read", "verify_quote")) if profile.lead.verify else None,
        guide=guide if profile.lead.hints else None,
        window_tokens=None if grep else profile.read.window_tokens,
    )


def _lead(
    question: str,
    profile: Profile,
    model: ChatModel,
    prompts: PromptLibrary,
    tokenizer: Tokenizer,
    scope: Scope,
    actions: ActionMemory,
) -> Lead:
    settings = profile.lead

    def dialogue(name: str) -> Dialogue:
        prompt = own_prompt(prompts.get(name), settings)
        return Dialogue(
            role="lead",
            model=model,
            prompt=prompt.ref,
            opening=prompt.render(question=defuse(question)),
            tokenizer=tokenizer,
            affinity=f"lead-{boundary([question])}",
            documents=tuple(index.document.id for index in scope.indexes),
        )

    def schemed(note: str = "") -> Lead:
        notes = (note,) if note else ()
        return SchemaLead(dialogue("lead_ask_schema"), settings.max_turn_tokens, notes)

    if settings.actions == "schema":
        return schemed()
    why = actions.broken(profile, "lead")
    if settings.actions == "auto" and why is not None:
        return schemed(no_tools(f"found by an earlier question: {why}"))
    tooled = ToolLead(dialogue("lead_ask_tools"), settings.max_turn_tokens)
    if settings.actions == "tools":
        return tooled
    return AutoLead(
        tooled,
        schemed,
        works=lambda: actions.works(profile, "lead"),
        fails=lambda why: actions.fails(profile, "lead", why),
    )


def _reader(
    profile: Profile,
    model: ChatModel,
    prompts: PromptLibrary,
    tokenizer: Tokenizer,
    actions: ActionMemory,
) -> Reader:
    exact = profile.tokenizer.exact
    if profile.read.mode != "grep":
        prompt = prompts.get("read_window")
        return ModelReader(PromptedModel("read", model, prompt, tokenizer, exact))
    known = profile.lead.actions == "auto" and actions.broken(profile, "read") is not None
    with_tools = profile.lead.actions != "schema" and not known
    name = "read_search_tools" if with_tools else "read_search_schema"
    return GrepReader(
        model, prompts.get(name), tokenizer, profile.read.grep_steps, with_tools=with_tools
    )


def lead_roles(profile: Profile) -> tuple[Role, ...]:
    """The roles that a question to the lead asks.

    Raises:
        ConfigError: the profile has models, but none for the lead or its readers.
    """
    for role in NEEDED if profile.agents == "model" else ():
        if role not in profile.roles:
            raise ConfigError(
                f"The profile '{profile.name}' has no model for the role '{role}': add "
                f"[roles.{role}] with endpoint and model, as in the profile 'lead'."
            )
    return HINTED if profile.lead.hints else UNHINTED


def own_prompt(prompt: Prompt, settings: LeadSettings) -> Prompt:
    """The prompt with the profile's files standing in for its two parts.

    Raises:
        ConfigError: a file cannot be read, or the user part has no place for the question.
    """
    if settings.system_prompt_file is None and settings.user_prompt_file is None:
        return prompt
    system, user = prompt.system, prompt.user
    if settings.system_prompt_file is not None:
        system = _read(settings.system_prompt_file, "system_prompt_file")
    if settings.user_prompt_file is not None:
        user = _read(settings.user_prompt_file, "user_prompt_file")
        mark = next((mark for mark in MARKS if mark in user), None)
        if mark is None:
            raise ConfigError(
                f"lead.user_prompt_file: {settings.user_prompt_file} must hold $question or "
                "{question} where the question goes."
            )
        before, _, after = user.partition(mark)
        user = f"{before.replace('$', '$$')}$question{after.replace('$', '$$')}"
    digest = sha256(f"{system}\n\n{user}".encode()).hexdigest()
    ref = PromptRef(f"{prompt.ref.id}_own", prompt.ref.version, digest)
    return replace(prompt, ref=ref, system=system, user=user)


def _read(path: Path, key: str) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"lead.{key}: {path} cannot be read: {error}.") from None
