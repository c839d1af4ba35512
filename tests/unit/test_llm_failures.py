"""A status and a body become an error that says what to change, and never the key."""

from __future__ import annotations

import json
import logging
import pickle
from typing import Any

import pytest

from hmars.errors import CallFailed, ConfigError, EndpointError
from hmars.llm.contract import StructuredMode
from hmars.llm.endpoint import Endpoint
from hmars.llm.failures import FormatRefused, ParameterRefused, Place, Transient, from_status
from hmars.llm.guard import LOOPBACK_ONLY, is_local, is_loopback
from hmars.llm.openai_wire import openai_transport
from hmars.llm.redact import Redactor
from hmars.llm.stack import ModelStack
from hmars.llm.transport import HttpReply
from hmars.settings import EndpointSettings
from tests.llm_support import ask, profile_for
from tests.scripted_server import Reply, ScriptedServer

PLACE = Place("desk", "card", "amber-8b", "http://127.0.0.1:1/v1", Redactor(["hush-hush-9"]))


def error_of(
    status: int, body: Any, mode: StructuredMode | None = None, wait: float | None = None
) -> Exception:
    text = body if isinstance(body, str) else json.dumps(body)
    return from_status(HttpReply(status, {}, text), PLACE, mode, wait)


STOPS = [
    (401, {"error": {"message": "Incorrect API key provided"}}, "auth", "api_key_env"),
    (403, {"error": {"message": "forbidden"}}, "auth", "api_key_env"),
    (400, {"error": {"message": "API key not valid."}}, "auth", "api_key_env"),
    (404, {"error": {"message": "The model does not exist"}}, "unknown_model", "roles.card.model"),
    (404, "<html>Not found</html>", "unknown_model", "base_url"),
    (400, {"message": "model 'x' not found"}, "unknown_model", "roles.card.model"),
    (402, {"error": "Payment Required"}, "quota", "top it up"),
    (429, {"error": {"code": "insufficient_quota", "message": "no"}}, "quota", "top it up"),
    (429, {"error": {"message": "Your credit balance is too low"}}, "quota", "top it up"),
    (400, {"message": "maximum context length is 4096 tokens"}, "context_too_small", "region_tok"),
    (400, {"error": {"message": "the request exceeds the available context size"}},
     "context_too_small", "longer context"),
    (413, "", "context_too_small", "region_tokens"),
    (400, {"detail": "surplus field"}, "bad_request", "surplus field"),
    (307, "", "bad_request", "base_url"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "problem", "remedy"), STOPS)
def test_what_no_repetition_can_mend_stops_the_run(
    status: int, body: Any, problem: str, remedy: str
) -> None:
    error = error_of(status, body)
    assert isinstance(error, EndpointError)
    assert error.problem == problem
    assert remedy in str(error)
    assert "endpoint 'desk' (role card)" in str(error)


PASSING = [
    (429, {"error": {"message": "slow down"}}, "rate_limit"),
    (
        429,
        {"error": "INSUFFICIENT QUOTA", "message": "Too many concurrent requests."},
        "rate_limit",
    ),
    (500, "oops", "server"),
    (503, {"error": {"message": "loading model"}}, "server"),
    (408, "", "server"),
]


@pytest.mark.parametrize(("status", "body", "problem"), PASSING)
def test_what_may_pass_is_tried_again(status: int, body: Any, problem: str) -> None:
    error = error_of(status, body)
    assert isinstance(error, Transient)
    assert error.problem == problem
    assert type(error.lasting) is CallFailed


def test_words_of_billing_with_a_wait_are_a_rate_limit() -> None:
    body = {"error": {"message": "You exceeded your current quota, please check your plan."}}
    assert isinstance(error_of(429, body, wait=20.0), Transient)
    assert isinstance(error_of(429, body), EndpointError)


def test_a_refused_response_format_is_told_from_another_bad_request() -> None:
    body = {"error": {"message": "response_format json_schema is not supported"}}
    assert isinstance(error_of(400, body, "json_schema"), FormatRefused)
    assert not isinstance(error_of(400, body, "text"), FormatRefused)
    assert isinstance(error_of(500, "failed to parse grammar", "json_schema"), FormatRefused)


def test_a_refused_parameter_is_named() -> None:
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    error = error_of(400, {"error": {"message": message}})
    assert isinstance(error, ParameterRefused)
    assert error.parameter == "max_tokens"


def test_a_refusal_on_grounds_of_content_fails_one_call_only() -> None:
    error = error_of(400, {"error": {"code": "content_filter", "message": "policy"}})
    assert isinstance(error, CallFailed)
    assert error.problem == "refusal"


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: hush-hush-9",
        "url /v1?api-key=hush-hush-9&x=1",
        "Authorization: Bearer hush-hush-9",
        "sk-abcdef123456",
        '"api_key": "other-key-77"',
        "token=other-key-77",
        "hush%2Dhush%2D9",
    ],
)
def test_no_key_survives_in_a_text(text: str) -> None:
    clean = Redactor(["hush-hush-9"]).clean(text)
    for secret in ("hush-hush-9", "abcdef123456", "other-key-77"):
        assert secret not in clean


def test_ordinary_words_survive() -> None:
    text = "max_tokens: 200 is too large for the context of 4096 tokens in task-force-one"
    assert Redactor(["hush-hush-9"]).clean(text) == text


KEY = "hush-hush-9-not-a-real-one"


@pytest.mark.parametrize("wire", ["aiohttp", "openai"])
async def test_a_key_is_in_no_error_log_line_warning_or_repr(
    wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    warnings: list[str] = []

    said = {"message": f"Incorrect API key provided: {KEY} in ?api-key={KEY}"}
    with ScriptedServer() as server:
        server.on("wrong", Reply(status=401, error=said))
        server.on("slow", Reply(hang=True))
        server.on("odd", Reply("no json, but " + KEY))
        profile = profile_for(
            server,
            base_url=f"{server.base_url}?api-key={KEY}",
            api_key=KEY,
            headers={"X-Key": KEY},
            timeout_s=0.2,
            retries=0,
        )
        stack = ModelStack(
            profile, warn=warnings.append, transport=openai_transport if wire == "openai" else None
        )
        seen: list[str] = []
        async with stack:
            for text in ("wrong", "slow", "odd"):
                with pytest.raises((CallFailed, EndpointError)) as failed:
                    await stack.model("card").complete(ask(text))
                link: BaseException | None = failed.value
                while link is not None:
                    seen.append(f"{link!s} {link!r} {vars(link)}")
                    link = link.__cause__
            seen += [repr(stack.endpoint("card")), repr(profile), profile.model_dump_json()]
    assert KEY in server.requests[0].path
    assert all(
        record.name != "httpx2" or KEY not in record.getMessage() for record in caplog.records
    )
    for text in [*seen, caplog.text, *warnings]:
        assert KEY not in text
    assert KEY not in repr(pickle.dumps(stack.usage))


def test_a_hosted_endpoint_without_its_key_says_which_variable_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(LOOPBACK_ONLY, raising=False)
    monkeypatch.delenv("LAMP_KEY", raising=False)
    settings = EndpointSettings(base_url="https://lamps.example.com/v1", api_key_env="LAMP_KEY")
    with pytest.raises(ConfigError, match="LAMP_KEY"):
        Endpoint("hosted", settings, warn=print)


def test_the_switch_refuses_every_other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOOPBACK_ONLY, "1")
    settings = EndpointSettings.model_validate(
        {"base_url": "https://lamps.example.com/v1", "api_key": "hush-hush-9"}
    )
    with pytest.raises(ConfigError, match=r"lamps\.example\.com"):
        Endpoint("hosted", settings, warn=print)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://x/v1", "", "http://"])
def test_an_address_that_is_no_url_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError, match=r"endpoints\.desk\.base_url"):
        Endpoint("desk", EndpointSettings(base_url=url), warn=print)


def test_local_hosts_are_known_by_address_and_name() -> None:
    for host in ("127.0.0.1", "localhost", "[::1]", "127.8.9.1"):
        assert is_loopback(f"http://{host}:80/v1")
    for host in ("192.168.1.9", "10.0.0.3", "gpu-box", "box.local", "[fd00::1]"):
        assert is_local(f"http://{host}/v1")
        assert not is_loopback(f"http://{host}/v1")
    for host in ("lamps.example.com", "8.8.8.8", "127.0.0.1.example.com"):
        assert not is_local(f"http://{host}/v1")


async def test_nothing_is_sent_to_where_a_redirect_leads() -> None:
    with ScriptedServer() as other, ScriptedServer() as server:
        server.on(None, Reply(status=302, raw="", headers={"Location": other.base_url}))
        async with ModelStack(profile_for(server)) as stack:
            with pytest.raises(EndpointError, match="redirects"):
                await stack.model("card").complete(ask())
        assert not other.requests
        assert not other.gets
