"""Options that several commands share, and how they become a `Memory`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import platformdirs
import typer

from hmars.cli.output import note
from hmars.memory import Memory, OnProgress
from hmars.settings import DEFAULT_PROFILE, Environment

Store = Annotated[
    str | None,
    typer.Option(help="Store file, or database URL. Default: HMARS_STORE, else a file of yours."),
]
Namespace = Annotated[
    str | None, typer.Option(help="Namespace to work in. Default: HMARS_NAMESPACE, else 'default'.")
]
ProfileName = Annotated[
    str | None,
    typer.Option("--profile", help="Profile name or TOML file. Default: HMARS_PROFILE."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one key of the profile."),
]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, help="Stop reading before this much money, by the profile's prices."),
]
MaxCalls = Annotated[
    int | None, typer.Option(min=0, help="Stop reading before this many calls to models.")
]
MaxSeconds = Annotated[float | None, typer.Option(min=0, help="Stop reading after this time.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]

NO_MODEL = (
    "hmars: no model is configured, so this quotes the text instead of writing an answer; "
    "for a model use --profile openai, vllm or a TOML file of your own (docs/configuration.md)."
)


def default_store() -> Path:
    return Path(platformdirs.user_data_dir("hmars", appauthor=False)) / "memory.sqlite"


def nothing_stored(store: str | None) -> bool:
    """There is no store file yet, so nothing can be in it."""
    location = str(store or Environment().store or default_store())
    return "://" not in location and not Path(location).exists()


def open_memory(
    store: str | None,
    namespace: str | None,
    profile: str | None = None,
    overrides: list[str] | None = None,
    *,
    on_progress: OnProgress | None = None,
    quiet: bool = False,
    create: bool = True,
) -> Memory:
    """A memory from options, else environment, else defaults; says so when there is no model."""
    environment = Environment()
    chosen = profile or environment.profile
    if chosen is None and not quiet:
        note(NO_MODEL)
    return Memory.open(
        store or environment.store or default_store(),
        profile=chosen or DEFAULT_PROFILE,
        namespace=namespace or environment.namespace,
        overrides=overrides or (),
        create=create,
        on_progress=on_progress,
        on_warning=lambda text: note(f"hmars: {text}"),
    )
