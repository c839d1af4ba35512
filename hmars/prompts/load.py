"""Load prompt files: front matter, `## system` and `## user` with `$placeholders`.

A prompt file begins with `id`, `version` and `inputs` between two `---` lines. Nothing but
`$name` is replaced, in one pass, so braces, percent signs and dollars in a document stay text.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from string import Template

from hmars.errors import ConfigError
from hmars.llm.contract import Message, PromptRef

_FILE = re.compile(
    r"\A---\n(?P<head>.*?)\n---\n\s*## system\n(?P<system>.*?)\n## user\n(?P<user>.*)\Z", re.DOTALL
)


@dataclass(frozen=True)
class Prompt:
    """One prompt text with its provenance."""

    ref: PromptRef
    inputs: tuple[str, ...]
    system: str
    user: str

    def render(self, **values: str) -> tuple[Message, ...]:
        """Fill the placeholders; missing or unknown names are programming errors."""
        if set(values) != set(self.inputs):
            raise TypeError(f"prompt {self.ref.id} takes {self.inputs}, not {tuple(values)}")
        return (
            Message("system", self.system),
            Message("user", Template(self.user).substitute(values)),
        )


@dataclass(frozen=True)
class PromptLibrary:
    """The shipped prompts, with files of the same name in `folder` standing in for them."""

    folder: Path | None = None

    @cached_property
    def _shipped(self) -> dict[str, str]:
        return {
            item.name: item.read_text(encoding="utf-8")
            for item in resources.files("hmars.prompts").iterdir()
            if item.name.endswith(".md")
        }

    @cached_property
    def _overrides(self) -> dict[str, str]:
        if self.folder is None:
            return {}
        if not self.folder.is_dir():
            raise ConfigError(f"prompts.dir names {self.folder}, which is not a folder.")
        found = {path.name: path for path in sorted(self.folder.glob("*.md"))}
        unknown = sorted(set(found) - set(self._shipped))
        if unknown:
            raise ConfigError(
                f"{self.folder / unknown[0]} is not the name of a prompt: "
                f"use one of {', '.join(sorted(self._shipped))}."
            )
        return {name: path.read_text(encoding="utf-8") for name, path in found.items()}

    def names(self) -> list[str]:
        return sorted(name.removesuffix(".md") for name in self._shipped)

    def text(self, name: str) -> str:
        """The file's text as shipped."""
        return self._shipped[f"{name}.md"]

    def get(self, name: str) -> Prompt:
        """The prompt `name`, overridden where the folder has it.

        Raises:
            ConfigError: an override is malformed or lacks a placeholder that carries data.
        """
        shipped = parse(self.text(name), f"{name}.md")
        override = self._overrides.get(f"{name}.md")
        if override is None:
            return shipped
        origin = str((self.folder or Path()) / f"{name}.md")
        prompt = parse(override, origin)
        missing = sorted(set(shipped.inputs) - set(prompt.inputs))
        if missing:
            raise ConfigError(f"{origin} lacks the placeholder ${missing[0]}; add it.")
        return prompt

    def check(self) -> None:
        """Load every prompt, so that a bad override fails before a run starts."""
        for name in self.names():
            self.get(name)


def parse(text: str, origin: str) -> Prompt:
    """Read one prompt file.

    Raises:
        ConfigError: not of the form described above, or placeholders differ from `inputs`.
    """
    match = _FILE.match(text.replace("\r\n", "\n"))
    if match is None:
        raise ConfigError(f"{origin} must hold front matter, then '## system', then '## user'.")
    lines = [line.partition(":") for line in str(match["head"]).splitlines()]
    head = {key.strip(): value.strip() for key, _, value in lines}
    for key in ("id", "version", "inputs"):
        if key not in head:
            raise ConfigError(f"{origin}: the front matter lacks '{key}'.")
    if not head["version"].isdigit():
        raise ConfigError(f"{origin}: version must be a whole number.")
    inputs = tuple(name.strip() for name in head["inputs"].split(",") if name.strip())
    system, user = str(match["system"]).strip(), str(match["user"]).strip()
    _check_placeholders(user, inputs, origin)
    digest = hashlib.sha256(f"{system}\n\n{user}".encode()).hexdigest()
    return Prompt(PromptRef(head["id"], int(head["version"]), digest), inputs, system, user)


def _check_placeholders(user: str, inputs: tuple[str, ...], origin: str) -> None:
    template = Template(user)
    if not template.is_valid():
        raise ConfigError(f"{origin}: a '$' that is no placeholder must be written '$$'.")
    used = set(template.get_identifiers())
    missing, unknown = sorted(set(inputs) - used), sorted(used - set(inputs))
    if missing:
        raise ConfigError(f"{origin} lacks the placeholder ${missing[0]}; add it.")
    if unknown:
        raise ConfigError(f"{origin} uses ${unknown[0]}, which is not one of its inputs.")
