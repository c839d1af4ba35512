"""`hmars demo`: the whole way on a text that every Python carries, without a model or a key."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hmars.cli.output import note, progress_display, write
from hmars.cli.render import proof_text, report_text
from hmars.demo_text import language_reference
from hmars.memory import Memory

QUESTIONS = (
    "When does the current code generator emit no code for an assert statement?",
    "What does the nonlocal statement cause the listed identifiers to refer to?",
    "Who painted the ceiling of the Sistine Chapel?",
)
NEXT = """\
Try it on a text of your own:
  hmars index FILE            read it once
  hmars ask "QUESTION"        ask it as often as you like
  hmars show                  see how it was cut up and what was noted of each part
  hmars ask --json ...        the same as data
This demo quotes. For written answers use a model: --profile openai, vllm or a file of your own."""


def command() -> None:
    """Index the Python language reference and ask it three questions; needs no model."""
    asyncio.run(_demo())


async def _demo() -> None:
    with tempfile.TemporaryDirectory(prefix="hmars-demo-") as folder, progress_display() as display:
        store = Path(folder) / "memory.sqlite"
        async with Memory.open(store, profile="extractive", on_progress=display) as memory:
            note("Indexing the language reference that ships inside Python ...")
            report = await memory.add(language_reference())
            write(report_text(report))
            for question in QUESTIONS:
                answer = await memory.ask(question)
                write(f"\n> {question}\n\n{answer.answer}\n\n")
                write(proof_text(answer, {report.document: report.title}))
    write("\n" + NEXT)
