"""Keys never reach a message, a log line or the store (promise 10)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from urllib.parse import quote

MASK = "***"
SHORTEST_SECRET = 4

# Keys that are not ours to know but stand in server replies: after their usual names, or by prefix.
NAMED_KEY = re.compile(
    r"((?:api[-_]?key|access[-_]?token|token|authorization|key|secret|sig)[\"']?\s*[=:]\s*[\"']?"
    r"(?:bearer\s+)?)([^\s\"'&,;}]{6,})",
    re.IGNORECASE,
)
BARE_KEY = re.compile(r"\b(?:sk|pk|rk|gsk|hf|xai|nvapi)[-_][A-Za-z0-9_*-]{6,}|\bBearer\s+\S{6,}")


class Redactor:
    """Takes the secrets of one endpoint out of any text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        found |= {quote(secret, safe="") for secret in found}
        self._secrets = sorted(found, key=len, reverse=True)

    def __repr__(self) -> str:
        return "Redactor()"

    def clean(self, text: str) -> str:
        """`text` with every secret and everything that looks like a key masked."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return BARE_KEY.sub(MASK, NAMED_KEY.sub(rf"\1{MASK}", text))


class RedactingFilter(logging.Filter):
    """For loggers of libraries that write whole URLs."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = self._redactor.clean(record.getMessage())
        record.args = ()
        return True
