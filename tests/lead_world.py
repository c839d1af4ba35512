"""A made-up world for tests of the lead: two films, two directors, two dates, many paragraphs.

Nothing in it is from a data set. A reader by rules and a lead by rules play the models: the lead's
second queries are made from what its first ones brought, so a chain that breaks gives no answer.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hmars.llm.contract import ChatModel, ChatReply, ChatRequest, ToolCall
from hmars.llm.fake import FakeModel, Says
from hmars.model import Answer, DocumentIndex, Role
from hmars.prompts import PromptLibrary
from hmars.query.agents import Scope
from hmars.query.family import model_query_agents
from hmars.query.lead import LeadResult, ask_lead, lead_settings, model_lead_agents
from hmars.query.lead.kept import ActionMemory
from hmars.settings import Profile
from hmars.tokens import WordTokenizer

QUESTION = "Which film has the director who died earlier, The Copper Heron or Lanterns at Low Tide?"
RIGHT = "The Copper Heron"
FILM_ONE = "The Copper Heron is a 1958 crime film, directed by Tomas Vrel and shot in Brask."
FILM_TWO = "Lanterns at Low Tide is a 1966 drama, directed by Ilse Okonjo on the island of Sund."
DEATH_ONE = "Tomas Vrel (7 May 1911 – 4 March 1987) was a film director and painter of harbours."
DEATH_TWO = "Ilse Okonjo (2 June 1923 – 19 August 1994) was a film director known for long takes."
FACTS = (FILM_ONE, FILM_TWO, DEATH_ONE, DEATH_TWO)

_FIRST = ("Anselm", "Bettina", "Corvin", "Dalia", "Edmund", "Frieda", "Gustav", "Henrike")
_LAST = ("Abelard", "Brunner", "Castell", "Dorn", "Eibner", "Falk", "Gerstl", "Holm", "Imker")
_KIND = ("botanist", "cellist", "surveyor", "printer", "weaver", "glassmaker", "mapmaker")
_PLACE = ("Altmoor", "Birkhaven", "Cranmer", "Dunwald", "Eschenau", "Fernsee", "Grauholm")


def filler(count: int, seed: int = 1) -> list[str]:
    """Paragraphs that have nothing to do with the question."""
    dice = random.Random(seed)
    made: list[str] = []
    for number in range(count):
        name = f"{dice.choice(_FIRST)} {dice.choice(_LAST)}"
        place = dice.choice(_PLACE)
        made.append(
            f"{name} was a {dice.choice(_KIND)} from {place}, whose workshop number {number} kept "
            f"{dice.randint(2, 90)} apprentices and closed in {dice.randint(1700, 1990)}."
        )
    return made


def document(count: int, at: Mapping[int, str], seed: int = 1) -> str:
    """`count` paragraphs with given ones at given places, numbered from 0."""
    paragraphs = filler(count, seed)
    for place, text in at.items():
        paragraphs[place] = text
    return "\n\n".join(paragraphs) + "\n"


def pages_of(text: str, paragraphs: int = 8, pages: int = 4) -> list[list[str]]:
    """A text as page texts by region, for `make_index`."""
    parts = text.split("\n\n")
    texts = [
        "\n\n".join(parts[start : start + paragraphs]) + "\n\n"
        for start in range(0, len(parts), paragraphs)
    ]
    return [texts[start : start + pages] for start in range(0, len(texts), pages)]


# ---------------------------------------------------------------- the models, by rules


def asked_of(prompt: str) -> str:
    """The query at the end of a reader's prompt."""
    return re.findall(r"^Query: (.*)$", prompt, re.MULTILINE)[-1]


def reader_says(prompt: str) -> dict[str, Any]:
    """What the reader by rules finds for the query of a prompt in the pages of the prompt."""
    query = asked_of(prompt)
    pages = prompt.partition("Facts found so far:")[0]
    found: list[dict[str, Any]] = []
    if who := re.fullmatch(r"director of (.+)", query):
        if match := re.search(rf"{who[1]} is [^.]*directed by (\w+ \w+)", pages):
            found = [{"quote": match[0], "answer": match[1], "confidence": 0.9}]
    elif (who := re.fullmatch(r"date of death of (.+)", query)) and (
        match := re.search(rf"{who[1]} \([^)]* – ([^)]*)\)", pages)
    ):
        found = [{"quote": match[0], "answer": match[1], "confidence": 0.9}]
    return {"findings": found}


def lead_turn(messages: Sequence[Mapping[str, Any]]) -> tuple[list[str], str]:
    """Queries, or the answer, of the lead by rules, from what it has been told so far."""
    told = "\n".join(str(item.get("content", "")) for item in messages if item["role"] == "tool")
    directors = re.findall(r"directed by (\w+ \w+)", told)
    if not directors:
        return ["director of The Copper Heron", "director of Lanterns at Low Tide"], ""
    deaths = re.findall(r"(\w+ \w+) \([^)]* – \d+ \w+ (\d{4})\)", told)
    if len(deaths) < 2:
        return [f"date of death of {name}" for name in directors], ""
    earlier = min(deaths, key=lambda item: int(item[1]))[0]
    films = {who: film for film, who in _films(told)}
    return [], films[earlier]


def _films(told: str) -> list[tuple[str, str]]:
    return re.findall(
        r"((?:The Copper Heron|Lanterns at Low Tide)) is [^\x22]*directed by (\w+ \w+)", told
    )


def answer_says(prompt: str) -> dict[str, Any]:
    """The answer model by rules: it follows the draft, and quotes the first sentence it can."""
    draft = re.findall(r"^Draft: (.*)$", prompt, re.MULTILINE)
    quoted = next((fact for fact in FACTS if fact in prompt), "")
    block = re.findall(r"<evidence (\d+) ", prompt.partition(quoted)[0]) if quoted else []
    number = int(block[-1]) if block else 1
    answer = draft[-1] if draft and draft[-1] != "(none)" else "unsure"
    return {
        "answerable": True,
        "answer": f"{answer} [{number}]",
        "citations": [{"evidence": number, "quote": quoted}],
    }


def calls(*queries: Any, name: str = "query_agents") -> ChatReply:
    """A turn with native tool calls."""
    return ChatReply(
        text="",
        finish_reason="tool_calls",
        tool_calls=tuple(
            ToolCall(f"call-{abs(hash((query, at)))}", name, json.dumps({"query": query}))
            for at, query in enumerate(queries)
        ),
    )


def turns(*script: Says) -> Callable[[ChatRequest], Says]:
    """A lead that says one thing after another, and the last one for ever."""

    def lead(request: ChatRequest) -> Says:
        done = sum(message.role == "assistant" for message in request.messages)
        return script[min(done, len(script) - 1)]

    return lead


def text_of(request: ChatRequest) -> str:
    return "\n".join(message.content for message in request.messages)


def by_role(**rules: Callable[[ChatRequest], Says]) -> Callable[[ChatRequest], Says]:
    """A model that plays every role; roles without a rule play by the rules of this world.

    `verify` is asked for what role `read` gets through the prompt `verify_quote`.
    """

    def says(request: ChatRequest) -> Says:
        name = "verify" if request.prompt.id == "verify_quote" else request.role
        return rules.get(name, _DEFAULTS[name])(request)

    return says


def _lead(request: ChatRequest) -> Says:
    messages = [{"role": item.role, "content": item.content} for item in request.messages]
    queries, answer = lead_turn(messages)
    return calls(*queries) if queries else f"<answer>{answer}</answer>"


_DEFAULTS: dict[str, Callable[[ChatRequest], Says]] = {
    "lead": _lead,
    "read": lambda request: reader_says(text_of(request)),
    "verify": lambda request: {"about": "the one meant", "verdict": "match"},
    "answer": lambda request: answer_says(text_of(request)),
    "broadcast": lambda request: {"interpretation": "as asked", "hints": []},
}


# ---------------------------------------------------------------- asking


def profile_of(base_url: str = "http://127.0.0.1:9/v1", **sections: Any) -> Profile:
    """A profile whose every role is one model; `sections` are laid over it."""
    roles: tuple[Role, ...] = ("card", "region", "broadcast", "select", "answer", "lead", "read")
    data: dict[str, Any] = {
        "agents": "model",
        "endpoints": {"local": {"base_url": base_url, "in_flight": 64, "retries": 0}},
        "roles": {role: {"endpoint": "local", "model": "scripted"} for role in roles},
    }
    return Profile.model_validate(data | sections)


async def ask_world(
    says: Callable[[ChatRequest], Any],
    *indexes: DocumentIndex,
    question: str = QUESTION,
    profile: Profile | None = None,
    actions: ActionMemory | None = None,
    within: Callable[[ChatModel], ChatModel] = lambda model: model,
) -> tuple[LeadResult, FakeModel]:
    """Ask through the driver with a fake model in every role, `within` what is put around it."""
    model = FakeModel(says)
    asked = within(model)
    profile = profile or profile_of()
    prompts, tokenizer, scope = PromptLibrary(), WordTokenizer(), Scope(tuple(indexes))
    guide = model_query_agents(profile, lambda role: asked, prompts, tokenizer, scope)
    agents = model_lead_agents(
        question, profile, lambda role: asked, prompts, tokenizer, scope, guide, actions
    )
    result = await ask_lead(question, scope, agents, lead_settings(profile, workers=64), tokenizer)
    return result, model


def totals(answer: Answer) -> tuple[int, int, int, int, int]:
    ledger = answer.ledger
    return ledger.selected, ledger.abstained, ledger.failed, ledger.truncated, ledger.skipped
