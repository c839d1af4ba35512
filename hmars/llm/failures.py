"""What went wrong on the wire, as errors that say what to change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from hmars.errors import CallFailed, CallProblem, EndpointError, EndpointProblem, ModelError
from hmars.llm.contract import StructuredMode
from hmars.llm.redact import Redactor
from hmars.llm.transport import ConnectionFailed, HttpReply
from hmars.model import Usage

DETAIL_LIMIT = 300

QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "credit_balance_too_low",
        "insufficient_credits",
    }
)
QUOTA_WORDS = re.compile(
    r"billing|credit balance|insufficient (?:balance|credits?|funds)|out of credits?"
    r"|exceeded your current quota",
    re.IGNORECASE,
)
CONTEXT_WORDS = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|max_model_len|n_ctx"
    r"|(?:prompt|input) is too long|too many (?:input )?tokens|reduce the length",
    re.IGNORECASE,
)
FORMAT_WORDS = re.compile(
    r"response_format|json_schema|json_object|grammar|guided|structured[ _]outputs?"
    r"|invalid schema|json mode",
    re.IGNORECASE,
)
MODEL_WORDS = re.compile(
    r"model_not_found|model\b.{0,120}\b(?:not found|does not exist|not exist|is not available)"
    r"|(?:no such|unknown|invalid) model",
    re.IGNORECASE | re.DOTALL,
)
KEY_WORDS = re.compile(r"api[ _-]?key", re.IGNORECASE)
REFUSAL_WORDS = re.compile(
    r"content[_ ](?:filter|policy|management)|safety|moderation", re.IGNORECASE
)


class Transient(CallFailed):
    """A failure that may pass: it is tried again, and ends as `lasting` when it does not pass."""

    def __init__(
        self,
        message: str,
        *,
        problem: CallProblem,
        role: str,
        usage: Usage | None = None,
        retry_after_s: float | None = None,
        lasting: EndpointError | None = None,
    ) -> None:
        super().__init__(message, problem=problem, role=role, usage=usage)
        self.retry_after_s = retry_after_s
        self._lasting = lasting

    @property
    def lasting(self) -> ModelError:
        """What this failure is once no attempt is left."""
        return self._lasting or CallFailed(
            str(self), problem=self.problem, role=self.role, usage=self.usage
        )


class FormatRefused(EndpointError):
    """The endpoint does not take this kind of `response_format`; another kind may do."""


class ParameterRefused(EndpointError):
    """The endpoint does not take one of the parameters that are sent by default."""

    def __init__(self, message: str, *, parameter: str, role: str, usage: Usage | None) -> None:
        super().__init__(message, problem="bad_request", role=role, usage=usage)
        self.parameter = parameter


@dataclass(frozen=True)
class Place:
    """Where a call went: what messages name."""

    endpoint: str
    role: str
    model: str
    url: str
    """Without a query."""
    redactor: Redactor

    def __str__(self) -> str:
        return f"endpoint '{self.endpoint}' (role {self.role})"


def from_connection(error: ConnectionFailed, place: Place, *, answered_before: bool) -> ModelError:
    """A refused or unknown host ends the run, unless it has answered before and may come back."""
    usage = Usage(calls=1)
    if error.problem == "dropped":
        return Transient(
            f"The {place} closed the connection before its reply was complete.",
            problem="connection",
            role=place.role,
            usage=usage,
        )
    detail = place.redactor.clean(str(error))
    unreachable = EndpointError(
        f"The {place} cannot be reached at {place.url} ({detail}): "
        f"start the server, or change endpoints.{place.endpoint}.base_url.",
        problem="unreachable",
        role=place.role,
        usage=usage,
    )
    if not answered_before:
        return unreachable
    return Transient(
        str(unreachable), problem="connection", role=place.role, usage=usage, lasting=unreachable
    )


def timed_out(place: Place, seconds: float) -> Transient:
    return Transient(
        f"The {place} gave no complete reply within {seconds:g} s: raise "
        f"endpoints.{place.endpoint}.timeout_s or lower endpoints.{place.endpoint}.in_flight.",
        problem="timeout",
        role=place.role,
        usage=Usage(calls=1),
    )


def from_status(
    reply: HttpReply, place: Place, mode: StructuredMode | None, retry_after_s: float | None
) -> ModelError:
    """The error that a status other than 200 stands for."""
    codes, detail = _explain(reply.text, place.redactor)
    words = f"{' '.join(codes)} {detail}"
    said = f" (it said: {detail})" if detail else ""
    name, role, status = place.endpoint, place.role, reply.status
    if status == 402 or _is_empty_account(status, codes, detail, retry_after_s):
        return _stop(
            f"The account of {place} is empty or not paid for{said}: top it up, or choose another "
            f"endpoint for roles.{role}.",
            "quota",
            place,
        )
    if status == 429:
        return Transient(
            f"The {place} limits the rate of requests (HTTP 429){said}: lower "
            f"endpoints.{name}.in_flight or set endpoints.{name}.requests_per_minute.",
            problem="rate_limit",
            role=role,
            usage=Usage(calls=1),
            retry_after_s=retry_after_s,
        )
    if status in (408, 409, 425) or status >= 500:
        if mode not in (None, "text") and FORMAT_WORDS.search(words):
            return _format_refused(place, mode, said)
        return Transient(
            f"The {place} failed with HTTP {status}{said}: look at the server's log.",
            problem="server",
            role=role,
            usage=Usage(calls=1),
            retry_after_s=retry_after_s,
        )
    if status == 401 or status == 403 or (status == 400 and KEY_WORDS.search(detail)):
        return _stop(
            f"The {place} refused the key (HTTP {status}){said}: set endpoints.{name}.api_key_env "
            "to an environment variable that holds a valid key.",
            "auth",
            place,
        )
    if 300 <= status < 400:
        return _stop(
            f"The {place} redirects (HTTP {status}), which is not followed: set "
            f"endpoints.{name}.base_url to where it leads.",
            "bad_request",
            place,
        )
    return _from_rejection(status, words, said, place, mode)


def _from_rejection(
    status: int, words: str, said: str, place: Place, mode: StructuredMode | None
) -> ModelError:
    name, role = place.endpoint, place.role
    if status == 404 or MODEL_WORDS.search(words):
        return _stop(
            f"The {place} does not know the model '{place.model}' (HTTP {status}){said}: change "
            f"roles.{role}.model, or endpoints.{name}.base_url, which usually ends in /v1.",
            "unknown_model",
            place,
        )
    if status == 413 or CONTEXT_WORDS.search(words):
        return _stop(
            f"A prompt does not fit the context of {place}{said}: serve '{place.model}' with a "
            "longer context, or lower partition.region_tokens.",
            "context_too_small",
            place,
        )
    parameter = _refused_parameter(words)
    if parameter:
        return ParameterRefused(
            f"The {place} does not take the parameter '{parameter}'{said}.",
            parameter=parameter,
            role=role,
            usage=Usage(calls=1),
        )
    if mode not in (None, "text") and FORMAT_WORDS.search(words):
        return _format_refused(place, mode, said)
    if REFUSAL_WORDS.search(words):
        return CallFailed(
            f"The {place} refused the request on grounds of content{said}.",
            problem="refusal",
            role=role,
            usage=Usage(calls=1),
        )
    return _stop(
        f"The {place} rejected the request (HTTP {status}){said}: check roles.{role} and "
        f"endpoints.{name}.",
        "bad_request",
        place,
    )


def _stop(message: str, problem: EndpointProblem, place: Place) -> EndpointError:
    return EndpointError(message, problem=problem, role=place.role, usage=Usage(calls=1))


def _format_refused(place: Place, mode: StructuredMode | None, said: str) -> FormatRefused:
    return FormatRefused(
        f"The {place} does not take structured replies of the kind '{mode}'{said}: set "
        f"endpoints.{place.endpoint}.structured to another kind, or to 'auto'.",
        problem="bad_request",
        role=place.role,
        usage=Usage(calls=1),
    )


def _is_empty_account(
    status: int, codes: list[str], detail: str, retry_after_s: float | None
) -> bool:
    if status not in (400, 403, 429):
        return False
    if QUOTA_CODES.intersection(codes):
        return True
    # Words alone are weak: with a Retry-After the server itself says that waiting helps.
    return retry_after_s is None and bool(QUOTA_WORDS.search(detail))


def _refused_parameter(words: str) -> str | None:
    if not re.search(r"unsupported|not support|unrecognized|unknown|only the default", words, re.I):
        return None
    for parameter in ("max_tokens", "stream_options", "temperature"):
        if re.search(rf"\b{parameter}\b", words):
            return parameter
    return None


def _explain(text: str, redactor: Redactor) -> tuple[list[str], str]:
    """Codes and the sentence of an error body, whatever its shape, without secrets."""
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        plain = "" if "<html" in text.lower() else " ".join(text.split())
        return [], redactor.clean(plain)[:DETAIL_LIMIT]
    codes: list[str] = []
    sentences: list[str] = []
    tables: list[Any] = [body]
    if isinstance(body, dict):
        tables.append(cast(Mapping[str, Any], body).get("error"))
    for table in tables:
        if isinstance(table, str):
            sentences.append(table)
        if isinstance(table, dict):
            entries = cast(Mapping[str, Any], table)
            codes += [str(entries[key]) for key in ("code", "type") if entries.get(key)]
            sentences += [
                entries[key] for key in ("message", "detail") if isinstance(entries.get(key), str)
            ]
    detail = " ".join(". ".join(dict.fromkeys(sentences)).split())
    return [code.lower() for code in codes], redactor.clean(detail)[:DETAIL_LIMIT]
