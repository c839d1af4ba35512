"""Profiles: one TOML file says which agents, models, sizes and limits a run uses.

A profile is found by name (`extractive`, `openai`, `vllm`, ... shipped in `configs/`) or by path.
Nothing here reads the environment at import; `Environment` is read by whoever starts a run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_serializer,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from hmars.errors import ConfigError
from hmars.model import Role
from hmars.shorthand import entry, with_model

DEFAULT_PROFILE = "extractive"
REQUIRED_ROLES: tuple[Role, ...] = ("card", "region", "broadcast", "select", "answer")


class Section(BaseModel):
    """A table of a profile: unknown keys are errors, values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TokenizerSettings(Section):
    name: str = "words"
    """`words` (no download), a Hugging Face name, or the path of a tokenizer.json or GGUF file."""

    @property
    def exact(self) -> bool:
        """It is some model's own tokenizer, not an estimate."""
        return self.name != "words"


class PartitionSettings(Section):
    """Sizes in tokens of the declared tokenizer (S-HMARS App. B)."""

    page_tokens: int = Field(default=1024, ge=8)
    region_tokens: int = Field(default=16384, ge=8)
    group_regions: int = Field(default=10, ge=1)
    snap: Literal["structure", "none"] = "structure"
    """`none` cuts at exactly the limit, as the paper does."""
    tolerance: float = Field(default=0.5, ge=0.0, le=0.9)
    """An edge may lie this fraction of the limit before it, where the text offers a better one."""

    @model_validator(mode="after")
    def _region_holds_a_page(self) -> PartitionSettings:
        if self.region_tokens < self.page_tokens:
            raise ValueError(
                f"region_tokens ({self.region_tokens}) is smaller than page_tokens "
                f"({self.page_tokens}); a region must hold at least one page"
            )
        return self


class ServeSettings(Section):
    """How `hmars serve-models` starts an endpoint's server, beyond what follows from its roles."""

    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    """Both by default as the model's family wants it; "" is none."""
    chat_template: Path | None = None
    arguments: tuple[str, ...] = ()
    """Further arguments of `vllm serve`, as they are."""


class EndpointSettings(Section):
    """A server that speaks OpenAI-compatible chat completions, with one limiter of its own."""

    engine: Literal["http", "embedded"] = "http"
    """`embedded`: llama.cpp in this process, started when it is needed; needs `model_file`."""
    base_url: str = ""
    """Of an `http` engine, such as http://127.0.0.1:8000/v1."""
    model_file: str | None = None
    """GGUF file of an embedded engine: a path, or hf:OWNER/REPOSITORY:FILE. Usually set for all
    embedded endpoints at once by the profile's key `model`."""
    threads: int | None = Field(default=None, ge=1)
    """Of an embedded engine; by default the processors at hand."""
    slots: int | None = Field(default=None, ge=1)
    """Sequences an embedded engine works on at once; by default as processors and memory allow."""
    cache_mb: int | None = Field(default=None, ge=0)
    """Memory in which an embedded engine keeps prompts for later questions; by default half of
    what is free."""
    api_key: SecretStr | None = None
    api_key_env: str | None = None
    """Environment variable that holds the key. Not needed where `base_url` is local."""
    headers: dict[str, SecretStr] = Field(default_factory=dict[str, SecretStr])
    in_flight: int = Field(default=16, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    timeout_s: float = Field(default=600.0, gt=0)
    """Of one request, from sending to the last byte."""
    retries: int = Field(default=3, ge=0)
    max_wait_s: float = Field(default=120.0, gt=0)
    """The longest Retry-After that is waited for; a longer one fails the call."""
    structured: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name under which this server takes the longest reply."""
    affinity_header: str = "X-Session-ID"
    """Carries a stable key of the region, so that a router keeps its calls on one replica."""
    serve: ServeSettings = ServeSettings()

    @field_serializer("base_url")
    def _without_query(self, url: str) -> str:
        """Some gateways want the key in the address; settings are shown and logged."""
        return url.partition("?")[0]

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, self._without_query(value) if name == "base_url" else value


class PriceSettings(Section):
    """Money for a million tokens, in any currency, the same in the whole profile."""

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Of prompt tokens served from the endpoint's cache; by default as `input`."""
    output: float = Field(ge=0)


class RoleSettings(Section):
    """Which model plays a role, and how it is asked."""

    endpoint: str
    model: str = ""
    """The name the server knows it by; at an embedded endpoint by default the file's name."""
    temperature: float = Field(default=0.1, ge=0)
    send_temperature: bool = True
    """False for models that refuse any temperature but their own."""
    max_tokens: int = Field(default=1024, ge=1)
    """The longest reply; twice this when a reply was cut and is asked for again."""
    context_tokens: int | None = Field(default=None, ge=256)
    """Context length of the model as served; `None` asks the endpoint where it can tell."""
    price: PriceSettings | None = None
    """What the tokens of this role cost; without it nothing is said about money."""
    extra_body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Sent with each request, e.g. `chat_template_kwargs = { enable_thinking = false }`."""


class SelectSettings(Section):
    mode: Literal["listwise", "pointwise"] = "listwise"
    """`listwise`: one call a region names its pages (S-HMARS). `pointwise`: one call and one token
    a page, ranked by log P(yes) - log P(no); better with small models, needs log probabilities."""
    gap: float = Field(default=4.0, gt=0)
    """Pointwise: pages further below the best page of the scope, in log-odds, do not count."""
    least: float = -4.0
    """Pointwise: pages below this, in log-odds, never count."""


class AnswerSettings(Section):
    max_prompt_tokens: int = Field(default=13_000, ge=256)
    """Evidence passed to the answer model, in tokens of the declared tokenizer."""


class QuerySettings(Section):
    read_all_below: int = Field(default=0, ge=0)
    """A scope with at most this many tokens is read whole, without selection. 0: never."""


class ReadSettings(Section):
    """How the lead's readers read (S-PARSER 3.1)."""

    mode: Literal["direct", "thinking", "grep"] = "direct"
    """`thinking` turns thinking on for the role `read`; `grep` searches a region with tools."""
    window_tokens: int = Field(default=4096, ge=8)
    """Whole pages of at most this many tokens before one reader; one larger page goes alone."""
    grep_steps: int = Field(default=6, ge=1)
    """Turns of a grep reader, the last of which must report."""


class LeadSettings(Section):
    """The iterative driver (S-PARSER 3.2); tokens are those of the declared tokenizer."""

    actions: Literal["auto", "tools", "schema"] = "auto"
    """How the lead acts: tool calls, or replies under a schema. `auto` tries tools first."""
    max_rounds: int = Field(default=12, ge=2)
    """Turns of the lead, useless ones too; in the last it is asked to answer."""
    max_turn_tokens: int = Field(default=2048, ge=64)
    max_context_tokens: int = Field(default=120_000, ge=1024)
    """Once the conversation has no room for another turn, the lead is asked once to answer."""
    max_observation_tokens: int = Field(default=8192, ge=128)
    """Findings told after one turn, all its queries together."""
    max_queries: int = Field(default=8, ge=1)
    """Queries of one turn; what is asked beyond is told to be left out."""
    max_verified: int = Field(default=16, ge=0)
    """Quotations checked in one verify round, the most confident first."""
    hints: bool = True
    """Each query goes through the mid-agents first; their hints reach the readers."""
    share_facts: bool = True
    """Readers are told what has been found so far."""
    verify: bool = True
    answer_from: Literal["evidence", "lead"] = "evidence"
    system_prompt_file: Path | None = None
    user_prompt_file: Path | None = None
    """Stand in for our own prompts; `$question` or `{question}` marks the question's place."""

    @property
    def turn_room(self) -> int:
        """Tokens for one more turn, what comes back from it, and the answer."""
        return 2 * self.max_turn_tokens + self.max_observation_tokens

    @model_validator(mode="after")
    def _context_holds_a_round(self) -> LeadSettings:
        if self.max_context_tokens < 2 * self.turn_room:
            raise ValueError(
                f"max_context_tokens ({self.max_context_tokens}) has no room for two rounds of "
                f"{self.turn_room} tokens; raise it, or lower max_turn_tokens or "
                "max_observation_tokens"
            )
        return self


class PromptSettings(Section):
    dir: Path | None = None
    """A folder whose prompt files stand in for the shipped ones of the same name."""


class Profile(Section):
    """A complete configuration of indexing and asking."""

    name: str = DEFAULT_PROFILE
    model: str | None = None
    """GGUF file of all embedded endpoints; its tokenizer is the profile's, if none is named."""
    agents: Literal["extractive", "model"] = "extractive"
    tokenizer: TokenizerSettings = TokenizerSettings()
    partition: PartitionSettings = PartitionSettings()
    endpoints: dict[str, EndpointSettings] = Field(default_factory=dict[str, EndpointSettings])
    roles: dict[Role, RoleSettings] = Field(default_factory=dict[Role, RoleSettings])
    select: SelectSettings = SelectSettings()
    answer: AnswerSettings = AnswerSettings()
    query: QuerySettings = QuerySettings()
    lead: LeadSettings = LeadSettings()
    read: ReadSettings = ReadSettings()
    prompts: PromptSettings = PromptSettings()

    @model_validator(mode="before")
    @classmethod
    def _one_model(cls, data: Any) -> Any:  # noqa: ANN401 - not validated yet
        """`model = FILE` at the top stands for the file, the name and the tokenizer below."""
        return with_model(cast(dict[str, Any], data)) if isinstance(data, dict) else data

    @model_validator(mode="before")
    @classmethod
    def _thinking_readers(cls, data: Any) -> Any:  # noqa: ANN401 - not validated yet
        """`read.mode = "thinking"` turns thinking on for the role `read`, in the words of vLLM and
        SGLang; a profile that says it in another server's words is left as it is."""
        if not isinstance(data, dict):
            return data
        table = cast(dict[str, Any], data)
        if entry(entry(table, "read"), "mode") != "thinking":
            return table
        roles = entry(table, "roles")
        body: dict[str, Any] = entry(entry(roles, "read"), "extra_body") or {}
        template = entry(body, "chat_template_kwargs")
        if entry(template, "enable_thinking") is False:
            raise ValueError(
                "read.mode is 'thinking', but roles.read.extra_body turns thinking off: "
                "remove one of them"
            )
        if "read" not in (roles or {}) or {"chat_template_kwargs", "reasoning_effort"} & set(body):
            return table
        role = roles["read"]
        settings = role.model_dump() if isinstance(role, RoleSettings) else dict(role)
        settings["extra_body"] = {**body, "chat_template_kwargs": {"enable_thinking": True}}
        return {**table, "roles": {**roles, "read": settings}}

    @model_validator(mode="after")
    def _roles_are_complete(self) -> Profile:
        if self.agents == "model":
            missing = [role for role in REQUIRED_ROLES if role not in self.roles]
            if missing:
                raise ValueError(f"roles.{missing[0]} is missing; agents = 'model' needs it")
        for role, settings in self.roles.items():
            if settings.endpoint not in self.endpoints:
                known = ", ".join(sorted(self.endpoints)) or "none"
                raise ValueError(
                    f"roles.{role}.endpoint names '{settings.endpoint}', "
                    f"which is not under [endpoints] (there: {known})"
                )
            if not settings.model and self.endpoints[settings.endpoint].engine == "http":
                raise ValueError(f"roles.{role}.model is missing: name the model of its endpoint")
        for name, endpoint in self.endpoints.items():
            if endpoint.engine == "http" and not endpoint.base_url:
                raise ValueError(f"endpoints.{name}.base_url is missing")
        return self


class Environment(BaseSettings):
    """Defaults of the command line: HMARS_STORE, HMARS_PROFILE, HMARS_NAMESPACE."""

    model_config = SettingsConfigDict(env_prefix="HMARS_", extra="ignore")

    store: str | None = None
    profile: str | None = None
    namespace: str = "default"


def profile_names() -> list[str]:
    """Names of the shipped profiles."""
    folder = resources.files("hmars.configs")
    return sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")
    )


def load_profile(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Profile:
    """Read a profile by name or path and apply `key.path=value` overrides (values are TOML).

    Raises:
        ConfigError: no such profile, not TOML, or a key that does not exist or does not fit; the
            message names the key and the file.
    """
    text, origin = _profile_text(name_or_path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{origin} is not valid TOML: {error}.") from None
    for override in overrides:
        _apply(data, override)
    data.setdefault("name", Path(origin).stem)
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_explain(error, origin)) from None


def _profile_text(name_or_path: str | Path) -> tuple[str, str]:
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.is_file():
        try:
            return path.read_text(encoding="utf-8"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The profile file {path} cannot be read: {error}.") from None
    names = profile_names()
    if str(name_or_path) not in names:
        raise ConfigError(
            f"There is no profile named '{name_or_path}': use one of {', '.join(names)}, "
            "or the path of a .toml file."
        )
    item = resources.files("hmars.configs") / f"{name_or_path}.toml"
    return item.read_text(encoding="utf-8"), f"{name_or_path}.toml"


def _apply(data: dict[str, Any], override: str) -> None:
    key, separator, raw = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"The override '{override}' must read KEY=VALUE.")
    try:
        value: Any = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        value = raw
    *parents, last = key.strip().split(".")
    table = data
    for parent in parents:
        child = table.setdefault(parent, {})
        if not isinstance(child, dict):
            raise ConfigError(f"The override '{override}' goes through '{parent}', not a table.")
        table = cast(dict[str, Any], child)
    table[last] = value


def _explain(error: ValidationError, origin: str) -> str:
    """One sentence for the first problem, without the value (it may be a key)."""
    problems: Sequence[Mapping[str, Any]] = error.errors(
        include_input=False, include_url=False, include_context=False
    )  # type: ignore[assignment]
    first = problems[0]
    key = ".".join(str(part) for part in first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "there is no such key"
    where = f"{origin}: {key}" if key else origin
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{where}: {message}{more}."
