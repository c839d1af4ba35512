"""No test leaves this machine, and none finds the user's own settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmars.llm.guard import LOOPBACK_ONLY


@pytest.fixture(autouse=True)
def closed_world(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Calls to other hosts are errors; the user's store, profile and keys are out of sight."""
    monkeypatch.setenv(LOOPBACK_ONLY, "1")
    for name in ("HMARS_PROFILE", "HMARS_NAMESPACE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    home: Path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HMARS_STORE", str(home / "memory.sqlite"))
