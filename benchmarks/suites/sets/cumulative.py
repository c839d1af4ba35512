"""Cumulative interactions after S-HMARS 4.1.2 and App. A.2: generated from a seed, by no model.

120 dialogues in 30 scenarios, 24 to 49 turns, 5 to 9 planted facts, five memory subtypes in equal
numbers: requirement accumulation, progressive updates, long-range dependency, cross-turn
integration, preference tracking. Questions share few words with the turns that answer them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.suites.base import Bundle, Case, Options, TextBuilder, gold_of, rank_of
from benchmarks.suites.scenarios import Scenario, scenarios

PER_SCENARIO = 4
TURNS = (24, 49)
FACTS = (5, 9)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NAMES = ("Imre", "Odile", "Tarek", "Bronwen", "Yuki", "Lazlo", "Amara", "Sefton")
_MONTHS = ("March", "May", "June", "August", "October")


@dataclass
class Plan:
    """The facts of one dialogue in the order in which they are told, and the probe."""

    facts: list[str] = field(default_factory=list[str])
    needed: list[int] = field(default_factory=list[int])
    question: str = ""
    answer: str = ""

    def tell(self, fact: str, *, needed: bool = False) -> None:
        if needed:
            self.needed.append(len(self.facts))
        self.facts.append(fact)


def load(options: Options) -> Iterator[Bundle]:
    subtypes = list(SUBTYPES)
    matters = scenarios()
    total = len(matters) * PER_SCENARIO
    count = total if options.limit is None else min(options.limit, total)
    for number in range(count):
        # Scenario and subtype turn at different speeds, so that each subtype meets each scenario.
        scenario = matters[number % len(matters)]
        subtype = subtypes[(number + number // len(matters)) % len(subtypes)]
        generator = random.Random(rank_of(options.seed, "cumulative", number))
        yield _dialogue(number + 1, scenario, subtype, generator)


def _dialogue(number: int, scenario: Scenario, subtype: str, generator: random.Random) -> Bundle:
    name = f"cumulative/{number}"
    plan = SUBTYPES[subtype](scenario, generator)
    for fact in _others(scenario, generator):
        if len(plan.facts) >= generator.randint(*FACTS):
            break
        plan.tell(fact)
    while len(plan.facts) < FACTS[0]:
        plan.tell(f"By the way, the number to call is {generator.randrange(1_000, 9_999)}.")
    turns = generator.randint(*TURNS)
    mine = list(range(0, turns, 2))
    places = dict(
        zip(sorted(generator.sample(mine, len(plan.facts))), range(len(plan.facts)), strict=True)
    )
    builder = TextBuilder()
    spans: dict[int, tuple[int, int]] = {}
    day = 1
    for turn in range(turns):
        when = f"2025-{1 + day // 28:02}-{1 + day % 28:02}"
        if turn % 2 == 0:
            small = _small_talk(scenario, generator)
            told = places.get(turn)
            text = small if told is None else f"{small} {plan.facts[told]}"
            span = builder.turn("User", text, when=when, label=f"turn {turn + 1}")
            if told is not None:
                spans[told] = (span[1] - len(plan.facts[told]), span[1])
        else:
            builder.turn("Assistant", _reply(scenario, generator), when=when)
            day += generator.randint(0, 6)
    case = Case(
        id=f"{name}/{subtype}",
        set="cumulative",
        question=plan.question,
        answers=(plan.answer,),
        gold=gold_of(spans[fact] for fact in plan.needed),
        kind=subtype,
        labels=(("scenario", scenario.name), ("turns", str(turns))),
    )
    return Bundle(builder.document(name, f"{scenario.name} {number}", "dialogue"), (case,))


def _small_talk(scenario: Scenario, generator: random.Random) -> str:
    topic = generator.choice(scenario.chat)
    return generator.choice(
        (
            f"I keep thinking about {topic}.",
            f"Can you tell me something useful about {topic}?",
            f"Today was all {topic} again.",
            f"Let us come back to {topic} for a moment.",
            f"Somebody asked me about {topic} and I had no idea.",
        )
    )


def _reply(scenario: Scenario, generator: random.Random) -> str:
    topic = generator.choice(scenario.chat)
    return generator.choice(
        (
            f"Noted. About {topic}: start small, write down what you have and leave room.",
            f"Understood. With {topic} most people wait too long; a plan of three steps is enough.",
            f"Thank you, I will keep that in mind. On {topic} I would ask two people and compare.",
            f"That helps. For {topic} it is worth looking at what went wrong the last time.",
        )
    )


def _others(scenario: Scenario, generator: random.Random) -> Iterator[str]:
    """Facts that the probe does not need, in random order."""
    facts = [
        f"{scenario.person.capitalize()} goes by {generator.choice(_NAMES)} these days.",
        f"The paperwork has the number {generator.randrange(10_000, 99_999)}.",
        f"We meet every {generator.choice(_DAYS)}.",
        f"I was born in {generator.choice(_MONTHS)}, if they ask.",
        f"The spare key hangs {generator.choice(('by the door', 'in the cellar', 'at work'))}.",
        f"Last time we went with {generator.choice(scenario.options)} and did not regret it.",
        f"The first call took {generator.randint(11, 58)} minutes.",
    ]
    generator.shuffle(facts)
    yield from facts


def _accumulation(scenario: Scenario, generator: random.Random) -> Plan:
    plan = Plan()
    amount = generator.randrange(12, 95) * 10
    plan.tell(f"For {scenario.limit} we cannot go over {amount} {scenario.unit}.", needed=True)
    plan.tell(f"One thing you must know: {scenario.bar}.", needed=True)
    day = generator.choice(_DAYS)
    plan.tell(f"It only works on a {day}, the rest of the week is taken.", needed=True)
    plan.tell(f"And {scenario.wish}.", needed=True)
    plan.question = "Which conditions have I set so far? Name all of them."
    plan.answer = f"at most {amount} {scenario.unit}; {scenario.bar}; on a {day}; {scenario.wish}"
    return plan


def _updates(scenario: Scenario, generator: random.Random) -> Plan:
    plan = Plan()
    amounts = sorted(generator.sample(range(20, 90), 3))
    generator.shuffle(amounts)
    unit = scenario.unit
    plan.tell(f"For {scenario.limit} let us say {amounts[0]} {unit}.")
    plan.tell(f"Bad news: it has to be {amounts[1]} {unit} and not what I said.")
    plan.tell(f"I spoke to {scenario.person}: make that {amounts[2]} {unit}, finally.", needed=True)
    plan.question = f"What figure holds now for {scenario.limit}?"
    plan.answer = f"{amounts[2]} {unit}"
    return plan


def _long_range(scenario: Scenario, generator: random.Random) -> Plan:
    plan = Plan()
    name = generator.choice(_NAMES)
    plan.tell(f"A certain {name} at the counter sorted out {scenario.thing} for us.", needed=True)
    for fact in list(_others(scenario, generator))[:4]:
        if name not in fact:
            plan.tell(fact)
    plan.question = "I want to send a thank-you card to whoever helped us at the start: to whom?"
    plan.answer = name
    return plan


def _integration(scenario: Scenario, generator: random.Random) -> Plan:
    plan = Plan()
    picks = generator.sample(scenario.options, 3)
    plan.tell(f"{scenario.person.capitalize()} would take {picks[0]} or {picks[1]}.", needed=True)
    plan.tell(f"I could live with {picks[1]} or {picks[2]}.", needed=True)
    day = generator.choice(_DAYS)
    plan.tell(f"Whatever we agree on has to be booked by {day}.", needed=True)
    plan.question = "What suits everybody, and until when must it be fixed?"
    plan.answer = f"{picks[1]}, by {day}"
    return plan


def _preference(scenario: Scenario, generator: random.Random) -> Plan:
    plan = Plan()
    plan.tell(f"You should know that {scenario.wish}.")
    plan.tell(f"Please remember: {scenario.bar}.", needed=True)
    plan.question = f"Somebody suggested {scenario.ruled_out}. Would that do for me? Why?"
    plan.answer = f"no, because {scenario.bar}"
    return plan


SUBTYPES: dict[str, Callable[[Scenario, random.Random], Plan]] = {
    "requirement accumulation": _accumulation,
    "progressive updates": _updates,
    "long-range dependency": _long_range,
    "cross-turn integration": _integration,
    "preference tracking": _preference,
}
