"""The JSON in what models write, and the shape it is made to fit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hmars.llm.jsontext import NoJson, find_json
from hmars.llm.loops import LOOP_LENGTH, WHITESPACE_RUN, LoopWatch, find_loop
from hmars.llm.payload import strict_schema
from hmars.llm.shape import WrongShape, fit
from tests.llm_support import LAMP, Lamp

VALUE = json.loads(LAMP)

SHAPES = [
    (LAMP, ()),
    (f"\ufeff  {LAMP}  \n", ()),
    (f"```json\n{LAMP}\n```\nExplanation: done.", ("fenced",)),
    (f"Sure!\n```JSON\n{LAMP}\n```", ("fenced",)),
    (f"~~~\n{LAMP}\n~~~", ("fenced",)),
    (f"```json\n{LAMP}", ("fenced",)),
    (f"First run:\n```bash\nmake lamp\n```\nResult:\n```json\n{LAMP}\n```", ("fenced",)),
    (f"Here it is: {LAMP} I hope this helps [1].", ("prose",)),
    (f"The set {{a, b}} is meant.\n{LAMP}", ("prose",)),
    ('{"name": "Brindle", "watts": [4, 9,],}', ("repaired",)),
    ("{'name': 'Brindle', 'watts': [4, 9]}", ("repaired",)),
    ('```json\n{"name": "Brindle", "watts": [4, 9,]}\n```', ("repaired",)),
    ('{"name": "Brindle", // the name\n "watts": [4, 9]}', ("repaired",)),
]


@pytest.mark.parametrize(("text", "paths"), SHAPES)
def test_the_json_is_found_and_how_is_said(text: str, paths: tuple[str, ...]) -> None:
    found = find_json(text)
    assert (found.value, found.paths) == (VALUE, paths)


def test_backticks_inside_a_string_are_part_of_it() -> None:
    text = '```json\n{"name": "use ```sh make lamp``` now", "watts": []}\n```'
    assert find_json(text).value["name"] == "use ```sh make lamp``` now"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "I would rather not.",
        '{"name": "bro',
        '{"name": "Brindle", "watts": [4, 9',
        '{"name": "Brindle", "more": {"a": 1}, "watts": [4',
        'Here: {"name": "Brindle", "items": [{"a": 1}, {"a": 2}], "wat',
        '```json\n{"name": "Brindle", "wat\n```',
        "[" * 5_000,
        "9" * 5_000,
    ],
)
def test_an_incomplete_reply_is_never_completed(text: str) -> None:
    with pytest.raises(NoJson):
        find_json(text)


@given(
    st.dictionaries(st.text(), st.recursive(st.integers() | st.text(), st.lists), max_size=4),
    st.sampled_from(["{}", "```json\n{}\n```", "~~~\n{}", "```\n{}\n```\nDone."]),
)
def test_any_object_comes_back_out_of_its_wrapping(value: dict[str, Any], wrapping: str) -> None:
    assert find_json(wrapping.replace("{}", json.dumps(value), 1)).value == value


@given(st.text(alphabet='{}[]",:ab1`~\n \\'))
def test_no_text_breaks_the_search(text: str) -> None:
    try:
        found = find_json(text)
    except NoJson:
        return
    assert isinstance(found.value, dict | list)


def test_keys_nobody_asked_for_are_dropped_and_counted() -> None:
    fitted = fit({**VALUE, "x": 1, "y": {"z": 2}}, Lamp)
    assert fitted.value == Lamp(name="Brindle", watts=[4, 9])
    assert fitted.paths == ("extra_keys",)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([VALUE], "unwrapped"),
        ({"lamp": VALUE}, "unwrapped"),
        ({"properties": VALUE, "type": "object"}, "schema_echo_unwrapped"),
    ],
)
def test_wrappings_around_the_object_are_taken_off(value: Any, path: str) -> None:
    fitted = fit(value, Lamp)
    assert fitted.value == Lamp(name="Brindle", watts=[4, 9])
    assert fitted.paths == (path,)


def test_a_bare_list_fits_an_output_that_is_only_a_list() -> None:
    class Pages(BaseModel):
        pages: list[int]

    assert fit([1, 2], Pages).value == Pages(pages=[1, 2])


def test_a_schema_sent_back_is_named_as_such() -> None:
    with pytest.raises(WrongShape) as wrong:
        fit(Lamp.model_json_schema(), Lamp)
    assert wrong.value.path == "schema_echo"


def test_a_schema_sent_back_is_named_where_every_field_has_a_default() -> None:
    class Loose(BaseModel):
        note: str = ""

    with pytest.raises(WrongShape):
        fit(Loose.model_json_schema(), Loose)


def test_an_output_that_has_a_field_called_properties_may_use_it() -> None:
    class House(BaseModel):
        properties: list[str]

    assert fit({"properties": ["warm"]}, House).value == House(properties=["warm"])


def test_the_validator_is_quoted() -> None:
    with pytest.raises(WrongShape, match=r"watts\.1: .*integer"):
        fit({"name": "Brindle", "watts": [4, "many"]}, Lamp)


def test_half_a_character_becomes_a_mark_that_can_be_stored() -> None:
    value = fit(json.loads(r'{"name": "a\ud83db", "watts": []}'), Lamp).value
    assert isinstance(value, Lamp)
    assert value.name == "a\ufffdb"


def test_the_schema_for_endpoints_is_strict_at_every_level() -> None:
    class Inner(BaseModel):
        title: str = "none"

    class Outer(BaseModel):
        first: Inner
        rest: tuple[Inner, ...] = ()

    schema = strict_schema(Outer)
    assert schema["required"] == ["first", "rest"]
    assert schema["additionalProperties"] is False
    inner = schema["$defs"]["Inner"]
    assert inner["required"] == ["title"]
    assert inner["additionalProperties"] is False
    assert "default" not in json.dumps(schema)


def test_the_schema_of_an_output_is_not_changed_by_making_it_strict() -> None:
    before = json.dumps(Lamp.model_json_schema())
    strict_schema(Lamp)
    assert json.dumps(Lamp.model_json_schema()) == before


def looping(text: str, piece: int = 7) -> str | None:
    watch = LoopWatch()
    for start in range(0, len(text), piece):
        found = watch.feed(text[start : start + piece])
        if found:
            return found
    return None


def test_a_run_of_white_space_is_a_loop() -> None:
    assert looping('{"name": ' + "\n \t" * WHITESPACE_RUN) == "whitespace"
    assert find_loop("{" + " " * WHITESPACE_RUN) == "whitespace"


@given(st.text(min_size=1, max_size=200), st.text(max_size=300), st.integers(1, 40))
def test_any_stretch_repeated_long_enough_is_a_loop(stretch: str, start: str, piece: int) -> None:
    repeated = stretch * (2 + 2 * max(LOOP_LENGTH, 5 * len(stretch)) // len(stretch))
    assert looping(start + repeated, piece) is not None


def test_a_long_list_with_ordinary_entries_is_no_loop() -> None:
    entries = [{"page": number, "why": f"it speaks of item {number * 7}"} for number in range(200)]
    text = json.dumps({"pages": entries}, indent=2)
    assert looping(text) is None
    assert find_loop(text) is None


def test_the_same_entry_a_few_times_is_no_loop() -> None:
    assert looping(json.dumps([{"page": 1, "why": "an item"}] * 12)) is None
