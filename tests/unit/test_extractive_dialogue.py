"""What the deterministic selection finds in dialogues, and in questions around a quoted term."""

from __future__ import annotations

import asyncio

import pytest

from hmars.indexing.partition import partition
from hmars.model import Document, DocumentIndex, DocumentKind, Mark, SourceText
from hmars.query.agents import Guidance, RegionSelection, Scope
from hmars.query.evidence import Evidence, assemble
from hmars.query.extractive import extractive_agents
from hmars.settings import PartitionSettings
from hmars.tokens import WordTokenizer

TOKENIZER = WordTokenizer()
FILLER = (
    "The weather kept everybody busy and nothing was settled about the pump in the cellar.",
    "Somebody painted the gate green and the fence brown before the rain came back.",
    "The baker on the corner sells rye on Tuesdays and closes early when it snows.",
    "A new timetable hangs at the bus stop, printed in letters that nobody can read.",
)


def indexed(
    text: str, kind: DocumentKind = "text", marks: tuple[Mark, ...] = (), page_tokens: int = 256
) -> DocumentIndex:
    source = SourceText(text=text, source="doc", title="doc", kind=kind, marks=marks)
    sizes = PartitionSettings(page_tokens=page_tokens, region_tokens=4 * page_tokens)
    parts = partition(source, TOKENIZER, sizes, "doc")
    document = Document(
        id="doc", namespace="default", title="doc", source="doc", kind=kind, content_hash=text,
        characters=len(text), tokens=parts.tokens, pages=1, regions=len(parts.regions),
        groups=len(parts.groups), tokenizer=TOKENIZER.identity, updated="",
    )  # fmt: skip
    return DocumentIndex(document, parts.regions, parts.groups)


def talk(turns: list[tuple[str, str]], page_tokens: int = 256) -> DocumentIndex:
    """A dialogue as conversations are laid out."""
    text, marks = "", list[Mark]()
    for speaker, said in turns:
        header = f"{speaker} | no time"
        marks.append(Mark(len(text), header, header, kind="turn"))
        text += f"[{header}]\n{said}\n\n"
    return indexed(text, "dialogue", tuple(marks), page_tokens)


def selected(index: DocumentIndex, question: str) -> dict[tuple[str, int], RegionSelection]:
    async def run() -> dict[tuple[str, int], RegionSelection]:
        scope = Scope((index,))
        selector = extractive_agents(scope, TOKENIZER).selector
        return {
            (index.document.id, region.index): await selector.select(
                question, region, None, Guidance(question, question)
            )
            for region in index.regions
        }

    return asyncio.run(run())


def evidence(index: DocumentIndex, question: str, budget: int) -> Evidence:
    return assemble(Scope((index,)), selected(index, question), budget, TOKENIZER)


def passed(found: Evidence) -> str:
    return "".join(block.text for block in found.blocks)


def test_what_stands_in_quotation_marks_counts_more_than_the_form_around_it() -> None:
    annex = (
        "Parts of this contract that a lawyer should review are related to the parts in annex B."
    )
    clause = "On any change of control of the tenant the landlord may end the lease within a month."
    text = "\n\n".join([*FILLER * 4, clause, *FILLER * 4, f"{annex} {annex}", *FILLER * 4])
    question = (
        'Highlight the parts of this contract related to "Change Of Control" that should be '
        "reviewed by a lawyer."
    )
    index = indexed(text, page_tokens=48)
    assert clause in passed(evidence(index, question, 60))
    assert clause not in passed(evidence(index, question.replace('"', ""), 60))


def test_a_compound_with_a_hyphen_is_found_by_its_parts() -> None:
    clause = "No assignment of this lease is valid unless the landlord has agreed to it."
    text = "\n\n".join([*FILLER * 4, clause, *FILLER * 4])
    found = evidence(
        indexed(text, page_tokens=48), 'Show what is related to "Anti-Assignment".', 60
    )
    assert clause in passed(found)


def test_a_short_turn_between_long_ones_costs_its_own_length_and_brings_its_header() -> None:
    asked = "I have decided to keep the boat in the dry shed at Tamsin."
    turns = [("Ana", "Good morning."), ("Helper", " ".join(FILLER * 12))]
    turns += [("Ana", asked), ("Helper", " ".join(FILLER * 12)), ("Ana", "Thank you.")]
    found = evidence(talk(turns), "Where is the boat kept, in which dry shed?", 30)
    assert passed(found) == f"[Ana | no time]\n{asked}\n\n"


def test_a_question_about_what_was_discussed_goes_on_with_the_stretch_it_found() -> None:
    small = [(f"S{at}", f"{FILLER[at % 4]} Number {at}.") for at in range(60)]
    matter = [("Chair", "Next point: the ferry. The ferry, what do we do about the ferry?")]
    matter += [(f"M{at}", f"We could hire it out on day {at}, or paint it.") for at in range(20)]
    stray = [("Clerk", "I came by ferry, the ferry was late.")]
    turns = [*small[:20], *matter, *small[20:30], *stray, *small[30:40], *stray, *small[40:]]
    index = talk(turns)

    def days(question: str) -> int:
        text = passed(evidence(index, question, 500))
        return sum(f"on day {at}," in text for at in range(20))

    assert days("Summarize the discussion about the ferry.") > days("Which ferry was late?")


def test_what_people_said_themselves_goes_before_what_an_assistant_told_them() -> None:
    mine = "My budget for the boat is 900."
    advice = "A budget for the boat of 500 is small, a budget for a boat of 700 is better."
    long = " ".join(FILLER * 3)
    turns = [("user", mine), ("user", long), ("assistant", f"{advice} {long}"), ("user", long)]
    index = talk([*turns, *[("user", long)] * 6], 1024)

    def lead(question: str) -> float:
        """How far the own turn is ahead of the assistant's."""
        (found,) = selected(index, question).values()
        weights = {
            index.pages[0].text[start:end]: weight
            for page in found.pages
            for (start, end), weight in zip(page.passages, page.weights, strict=True)
        }
        own = max(weight for text, weight in weights.items() if mine in text)
        return own / max(weight for text, weight in weights.items() if advice in text)

    told = lead("What budget for the boat did you suggest to me?")
    assert lead("What budget for the boat did I set?") == pytest.approx(2 * told, rel=0.2)


def test_a_short_dialogue_is_passed_on_whole_where_no_word_of_the_question_occurs() -> None:
    turns = [(f"S{at}", f"{FILLER[at % 4]} Number {at}.") for at in range(12)]
    index = talk(turns)
    found = evidence(index, "Which conditions have I set?", 10_000)
    assert passed(found) == "".join(page.text for page in index.pages)
    assert all(span.confidence <= 0.01 for span in found.spans)


def test_of_a_dialogue_that_does_not_fit_the_newest_turns_are_passed_on() -> None:
    turns = [(f"S{at}", f"{FILLER[at % 4]} Number {at}.") for at in range(60)]
    found = passed(evidence(talk(turns), "Which conditions have I set?", 200))
    assert "Number 59." in found and "Number 0." not in found


def test_what_words_do_find_goes_before_the_rest_of_a_short_dialogue() -> None:
    turns = [(f"S{at}", f"{FILLER[at % 4]} Number {at}.") for at in range(60)]
    turns[3] = ("S3", "One condition is that the dog comes along.")
    found = passed(evidence(talk(turns), "Which conditions, limits and wishes have I set?", 200))
    assert "the dog comes along" in found


def test_a_text_or_a_question_without_words_is_still_met_with_abstention() -> None:
    turns = [(f"S{at}", f"{FILLER[at % 4]} Number {at}.") for at in range(12)]
    text = indexed("\n\n".join(FILLER * 4))
    assert not evidence(text, "Which conditions have I set?", 10_000).blocks
    assert not evidence(talk(turns), "?", 10_000).blocks


def test_regions_of_a_long_dialogue_without_a_word_of_the_question_abstain() -> None:
    turns = [(f"S{at}", f"{FILLER[at % 4]} Number {at}. " * 40) for at in range(40)]
    index = talk(turns, 1024)
    assert index.document.tokens > 24_000
    assert not any(found.pages for found in selected(index, "Which conditions apply?").values())
