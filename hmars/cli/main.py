"""The `hmars` command. A thin shell over `hmars.memory.Memory`; the outermost place for errors."""

from __future__ import annotations

import asyncio
import sys

import typer

from hmars.cli import ask, coverage, demo, dialogue, index, manage, serve, show, transfer, usage
from hmars.cli.output import note
from hmars.errors import HmarsError

app = typer.Typer(
    name="hmars",
    help="Long-context memory that reads everything and can prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("index")(index.command)
app.command("append")(dialogue.append_command)
app.command("ask")(ask.command)
app.command("show")(show.command)
app.command("list")(manage.list_command)
app.command("forget")(manage.forget_command)
app.command("export")(transfer.export_command)
app.command("import")(transfer.import_command)
app.command("coverage")(coverage.command)
app.command("doctor")(manage.doctor_command)
app.command("demo")(demo.command)
app.command("serve-models")(serve.command)
app.command("usage")(usage.command)
app.command("prompts")(manage.prompts_command)

INTERRUPTED = 130
KEPT = "hmars: interrupted; what was written so far is kept, run the same command to go on."


def main() -> None:
    """Run the command line; every expected error is one sentence on stderr and an exit code."""
    try:
        app()
    except HmarsError as error:
        note(f"hmars: {error}")
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, asyncio.CancelledError):
        note(KEPT)
        sys.exit(INTERRUPTED)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # typer has caught the interrupt itself
            note(KEPT)
        raise
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


if __name__ == "__main__":
    main()
