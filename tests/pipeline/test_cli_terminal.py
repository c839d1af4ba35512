"""What stands on a terminal in the end, where bars and a streamed answer share it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.support_server import piers, stage, write_profile
from tests.scripted_server import Reply, ScriptedServer

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

PIECES = ('{"answerable": true, "answer": "The keeper', " is called Orla", ' Venn [1]."')
CITED = ', "citations": [{"evidence": 1, "quote": "pier 1 is called Orla Venn 1"}]}'


def on_terminal(*arguments: str | Path) -> str:
    """The bytes that a command sends to a terminal, colours and all."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hmars.cli.main", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    ) as process:
        os.close(theirs)
        shown = bytearray()
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not piece:
                break
            shown += piece
        assert process.wait(timeout=60) == 0
    os.close(ours)
    return shown.decode("utf-8")


def test_a_streamed_answer_is_in_one_piece_on_the_terminal_and_no_bar_cuts_through_it(
    tmp_path: Path,
) -> None:
    text, store = tmp_path / "piers.txt", tmp_path / "memory.sqlite"
    text.write_text(piers(3), encoding="utf-8")
    with ScriptedServer() as server:
        server.on(lambda seen: stage(seen) == "select", json.dumps({"pages": [1]}))
        server.on(lambda seen: stage(seen) == "answer", Reply(pieces=[*PIECES, CITED]))
        profile = write_profile(tmp_path, server.base_url)
        where = ("--store", store, "--profile", profile)
        on_terminal("index", text, *where)
        shown = on_terminal("ask", "Who keeps pier 1?", *where)
    assert shown.count("The keeper is called Orla Venn [1].") == 1
    before, _, after = shown.partition("The keeper is called")
    assert "\x1b[2K" in before, "the bars were taken away before"
    assert "\x1b" not in after, "and nothing was drawn over the answer"
    assert "Ledger: 3 of 3 regions considered" in after
