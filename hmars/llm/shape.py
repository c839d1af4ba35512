"""Make a JSON value into the model it was asked to be, or say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, ValidationError

SCHEMA_KEYS = frozenset({"$defs", "$schema", "properties", "definitions"})
SHOWN_PROBLEMS = 3


class WrongShape(Exception):
    """The value is not what was asked for; the message quotes the validator, for the model."""

    def __init__(self, message: str, path: str = "wrong_shape") -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, slots=True)
class Fitted:
    value: BaseModel
    paths: tuple[str, ...] = ()


def fit(value: Any, output: type[BaseModel]) -> Fitted:  # noqa: ANN401 - any JSON
    """Validate, after taking off wrappings and unknown keys where that is what is in the way.

    Raises:
        WrongShape: it does not fit, also not unwrapped.
    """
    value = _encodable(value)
    first: ValidationError | None = None
    for candidate, path in _readings(value, output):
        try:
            return Fitted(output.model_validate(candidate), (path,) if path else ())
        except ValidationError as error:
            first = first or error
            trimmed = _without_extras(candidate, error)
        if trimmed is None:
            continue
        try:
            fitted = output.model_validate(trimmed)
        except ValidationError:
            continue
        return Fitted(fitted, (*((path,) if path else ()), "extra_keys"))
    if _is_schema(value, output):
        raise WrongShape(
            "the reply was the JSON schema itself instead of data that fits it", "schema_echo"
        )
    raise WrongShape(_explain(first) if first else "the JSON has another shape than asked for")


def _readings(value: Any, output: type[BaseModel]) -> Iterator[tuple[Any, str]]:  # noqa: ANN401
    """The value as it is, then without the wrappings models like to put around it."""
    if not _is_schema(value, output):
        yield value, ""
    if isinstance(value, list):
        items = cast(list[Any], value)
        if len(items) == 1:
            yield items[0], "unwrapped"
        lists = [name for name in output.model_fields if _is_list(output, name)]
        if len(lists) == 1 and len(output.model_fields) == 1:
            yield {lists[0]: items}, "unwrapped"
    if isinstance(value, dict):
        table = cast(dict[str, Any], value)
        inside = table.get("properties")
        if isinstance(inside, dict) and "properties" not in output.model_fields:
            yield inside, "schema_echo_unwrapped"
        if len(table) == 1:
            (only,) = table.values()
            if isinstance(only, dict):
                yield only, "unwrapped"


def _is_list(output: type[BaseModel], name: str) -> bool:
    schema = output.model_json_schema()["properties"].get(name, {})
    return cast(dict[str, Any], schema).get("type") == "array"


def _is_schema(value: Any, output: type[BaseModel]) -> bool:  # noqa: ANN401 - any JSON
    """It looks like a JSON schema: its keys, none of which the output itself has."""
    if not isinstance(value, dict):
        return False
    keys = set(cast(dict[str, Any], value)) - set(output.model_fields)
    return bool(keys & SCHEMA_KEYS)


def _without_extras(value: Any, error: ValidationError) -> Any:  # noqa: ANN401 - any JSON
    """A copy without the keys the model forbids, if nothing else was wrong."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    if any(problem["type"] != "extra_forbidden" for problem in problems):
        return None
    places = {tuple(problem["loc"]) for problem in problems}
    return _drop(value, places, ())


def _drop(value: Any, places: set[tuple[int | str, ...]], here: tuple[int | str, ...]) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {
            key: _drop(entry, places, (*here, key))
            for key, entry in cast(dict[str, Any], value).items()
            if (*here, key) not in places
        }
    if isinstance(value, list):
        entries = enumerate(cast(list[Any], value))
        return [_drop(entry, places, (*here, number)) for number, entry in entries]
    return value


def _encodable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Escapes of half a character are legal in JSON, but nothing can store them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_encodable(entry) for entry in cast(list[Any], value)]
    if isinstance(value, dict):
        table = cast(dict[str, Any], value)
        return {_encodable(key): _encodable(entry) for key, entry in table.items()}
    return value


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'the reply'}: {problem['msg']}"
        for problem in problems[:SHOWN_PROBLEMS]
    ]
    more = len(problems) - len(shown)
    return "; ".join(shown) + (f" (and {more} more)" if more > 0 else "")
