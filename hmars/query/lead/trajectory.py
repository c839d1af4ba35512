"""One question as a training example of its lead: what it was told, what it did, what came of it.

Only what the lead wrote itself may be trained on (`loss`); results of tools, hints and prompts are
marked, so that their tokens are left out. `reward` is empty: whoever knows the right answer fills
it. One JSON object a line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hmars.errors import InputError
from hmars.model import Answer
from hmars.query.lead.agents import Entry
from hmars.query.lead.inquiry import Inquiry

FORMAT = "hmars-lead-trajectory"
VERSION = 1


@dataclass(frozen=True)
class Trajectory:
    """A finished question, ready to be written."""

    data: Mapping[str, Any]

    def line(self) -> str:
        return json.dumps(self.data, ensure_ascii=False) + "\n"


def record(inquiry: Inquiry, answer: Answer) -> Trajectory:
    lead = inquiry.agents.lead
    return Trajectory(
        {
            "format": FORMAT,
            "version": VERSION,
            "question": inquiry.question,
            "documents": [index.document.id for index in inquiry.scope.indexes],
            "prompt": str(lead.prompt) if lead.prompt else None,
            "tools": [dict(tool) for tool in lead.tools],
            "messages": [_message(entry) for entry in lead.entries],
            "rounds": [item.model_dump(mode="json") for item in answer.rounds],
            "ending": inquiry.ending,
            "conclusion": inquiry.conclusion,
            "answer": answer.answer,
            "abstained": answer.abstained,
            "usage": {role: usage.model_dump(mode="json") for role, usage in answer.usage.items()},
            "reward": None,
        }
    )


def _message(entry: Entry) -> dict[str, Any]:
    message = entry.message
    made: dict[str, Any] = {
        "role": message.role,
        "content": message.content,
        "kind": entry.kind,
        "observation": entry.kind == "observation",
        "loss": entry.kind == "lead",
    }
    if entry.kind == "lead":
        made["invalid"] = entry.invalid
    if message.reasoning:
        made["reasoning_content"] = message.reasoning
    if message.tool_calls:
        made["tool_calls"] = _calls(entry)
    if message.tool_call_id:
        made["tool_call_id"] = message.tool_call_id
    return made


def _calls(entry: Entry) -> Sequence[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in entry.message.tool_calls
    ]


def append_trajectory(path: Path, trajectory: Trajectory | None) -> None:
    """Add one line to a file, which is made where there is none; None only tries to open it.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="\n") as file:
            if trajectory is not None:
                file.write(trajectory.line())
    except OSError as error:
        raise InputError(f"The trajectory file {path} cannot be written: {error}.") from None
