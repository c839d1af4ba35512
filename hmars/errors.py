"""Every error hmars raises, drawn once.

    HmarsError
    ├── ConfigError          a profile, key, option or combination that cannot work
    │   └── MissingExtraError    an optional dependency is not installed
    ├── InputError           a file or text that cannot be read
    │   └── EmptyInputError      nothing in it but white space
    ├── NotFoundError        no such document in this namespace
    ├── StoreError           the store file is foreign, damaged, locked, full or read-only
    └── ModelError           a call to a model did not give a usable reply (carries its cost)
        ├── EndpointError        no call to this endpoint can succeed: the run stops
        └── CallFailed           this one call failed: the run goes on and the ledger names it

Messages are one sentence: what is wrong, where, what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from hmars.model import Usage

EndpointProblem = Literal[
    "auth", "quota", "unknown_model", "unreachable", "context_too_small", "bad_request"
]
CallProblem = Literal[
    "timeout", "connection", "server", "rate_limit", "invalid_reply", "length", "refusal",
    "prompt_cut", "budget",
]  # fmt: skip


class HmarsError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line returns."""

    exit_code: ClassVar[int] = 3


class ConfigError(HmarsError):
    """A profile, key, option or combination of them that cannot work."""

    exit_code = 2


class MissingExtraError(ConfigError):
    """An optional dependency is needed and not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional part: pip install 'hmars[{extra}]'.")
        self.extra = extra


class InputError(HmarsError):
    """A file or text that cannot be read as text."""

    exit_code = 2


class EmptyInputError(InputError):
    """A file or text with nothing in it but white space."""


class NotFoundError(HmarsError):
    """No such document in this namespace."""

    exit_code = 2


class StoreError(HmarsError):
    """The store cannot be used: foreign, damaged, locked, full, read-only or of another version."""


class ModelError(HmarsError):
    """A model call that gave no usable reply; `usage` is what it cost all the same."""

    def __init__(
        self, message: str, *, role: str, usage: Usage | None = None, attempts: int = 1
    ) -> None:
        super().__init__(message)
        self.role = role
        self.usage = usage
        self.attempts = attempts


class EndpointError(ModelError):
    """No call to this endpoint can succeed until something is changed: the run stops."""

    def __init__(
        self,
        message: str,
        *,
        problem: EndpointProblem,
        role: str,
        usage: Usage | None = None,
        attempts: int = 1,
    ) -> None:
        super().__init__(message, role=role, usage=usage, attempts=attempts)
        self.problem: EndpointProblem = problem


class CallFailed(ModelError):
    """This call failed for good; others may succeed, so the run goes on and names it."""

    def __init__(
        self,
        message: str,
        *,
        problem: CallProblem,
        role: str,
        usage: Usage | None = None,
        attempts: int = 1,
    ) -> None:
        super().__init__(message, role=role, usage=usage, attempts=attempts)
        self.problem: CallProblem = problem
