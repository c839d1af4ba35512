"""Which hosts may be called: the switch for tests and closed machines, and what counts as local."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from hmars.errors import ConfigError

LOOPBACK_ONLY = "HMARS_LOOPBACK_ONLY"
"""Environment variable: when set to 1, a call to any host but this one is an error. Looked at when
a model stack is opened, so that it also holds in threads and child processes of a test."""


def is_loopback(url: str) -> bool:
    """The host is this machine."""
    host = _host(url)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def is_local(url: str) -> bool:
    """The host is this machine or one of a private network, where servers rarely want a key."""
    host = _host(url)
    address = _address(host)
    if address is not None:
        return address.is_private or address.is_link_local
    return "." not in host or host.endswith((".localhost", ".local", ".lan", ".internal"))


def check_allowed(url: str, endpoint: str) -> None:
    """Refuse hosts other than this machine while the switch is set.

    Raises:
        ConfigError: the switch is set and `url` leads elsewhere.
    """
    if os.environ.get(LOOPBACK_ONLY, "") not in ("", "0") and not is_loopback(url):
        raise ConfigError(
            f"endpoints.{endpoint}.base_url leads to {_host(url)}, but {LOOPBACK_ONLY} is set: "
            "unset it, or use a server on this machine."
        )


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
