"""What a run writes: one JSON line for each question and system, and a manifest beside them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from benchmarks.bench import PROMPTS
from benchmarks.suites.base import BenchDocument
from hmars.errors import ConfigError, InputError
from hmars.llm.contract import ReplyCache
from hmars.model import CallRecord, Usage
from hmars.prompts import PromptLibrary
from hmars.prompts.load import parse
from hmars.settings import Profile

Record = dict[str, Any]
KEPT_ON_RESUME = ("suite", "profile", "options", "tokenizer", "prompts", "budgets")
"""What must be the same for records to stand in one table."""


class Lines:
    """A JSONL file that is durable line by line and survives a kill in the middle of one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            data = path.read_bytes()
            whole = data[: data.rfind(b"\n") + 1]
            if whole != data:
                path.write_bytes(whole)

    def read(self) -> Iterator[Record]:
        """Raises: InputError for a line that is not JSON."""
        if not self.path.is_file():
            return
        with self.path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield json.loads(line)
                except ValueError:
                    raise InputError(f"{self.path}, line {number}: not JSON.") from None

    def add(self, record: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())


class QuestionLog:
    """Every finished call goes to disk at once, under the system and question it was made for.

    A resumed question is answered from kept replies at no cost; what they cost in the killed run
    stands here and is added.
    """

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self._spent: dict[tuple[str, str], dict[str, Usage]] = {}
        for line in self._lines.read():
            self._add(line["system"], line["case"], line["role"], Usage(**line["usage"]))

    def of(self, system: str) -> SystemLog:
        """The log of one system, which asks its questions one after the other."""
        return SystemLog(self, system)

    def spent(self, system: str, case: str) -> dict[str, Usage]:
        """What earlier runs spent on a question."""
        return dict(self._spent.get((system, case), {}))

    def add(self, system: str, case: str, record: CallRecord) -> None:
        self._lines.add({"system": system, "case": case, **record.model_dump(mode="json")})

    def _add(self, system: str, case: str, role: str, usage: Usage) -> None:
        spent = self._spent.setdefault((system, case), {})
        spent[role] = spent.get(role, Usage()) + usage


class SystemLog:
    """The calls of one system, under the question it is at."""

    def __init__(self, log: QuestionLog, system: str) -> None:
        self._log = log
        self._system = system
        self._case = ""

    def begin(self, case: str) -> dict[str, Usage]:
        """The next calls are for this question; returns what earlier runs spent on it."""
        self._case = case
        return self._log.spent(self._system, case)

    def add(self, record: CallRecord) -> None:
        self._log.add(self._system, self._case, record)

    async def log_call(self, record: CallRecord) -> None:
        self.add(record)


@dataclass(frozen=True)
class RunReplies:
    """Replies of one system, kept as long as the run's folder is.

    A store keeps a reply on a document only while it has the document, so that none outlives it.
    A run has its documents in files, so its replies are bound to none.
    """

    kept: ReplyCache

    async def get_reply(self, key: str) -> str | None:
        return await self.kept.get_reply(key)

    async def put_reply(self, key: str, payload: str, documents: tuple[str, ...]) -> None:
        await self.kept.put_reply(key, payload, ())


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def records(self) -> Path:
        return self.path / "records.jsonl"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    def document(self, identifier: str) -> Path:
        name = hashlib.sha256(identifier.encode()).hexdigest()[:20]
        return self.path / "documents" / f"{name}.txt"

    def begin(self, manifest: Mapping[str, Any], *, resume: bool) -> None:
        """Write the manifest, or check that the one there is of the same run.

        Raises:
            ConfigError: the folder holds a run and `resume` is not asked for, or another run.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        commits = [manifest["commit"]]
        began = manifest["date"]
        if self.manifest.is_file():
            old = json.loads(self.manifest.read_text(encoding="utf-8"))
            if not resume:
                raise ConfigError(f"{self.path} holds a run: add --resume, or take another --out.")
            for key in KEPT_ON_RESUME:
                if old.get(key) != manifest[key]:
                    raise ConfigError(
                        f"{self.path} holds a run with another {key}: take another --out."
                    )
            commits = [*old["commits"], *(new for new in commits if new not in old["commits"])]
            began = old["date"]
        written = {**manifest, "date": began, "commits": commits}
        write_json(self.manifest, written)

    def keep(self, document: BenchDocument) -> str:
        """Write the text once, for the report; returns its hash.

        Raises:
            ConfigError: the document of that name had another text before.
        """
        data = document.text.encode()
        path = self.document(document.id)
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        elif path.read_bytes() != data:
            raise ConfigError(
                f"The text of {document.id} is not what it was when {self.path} was begun: "
                "the data changed; take another --out."
            )
        return hashlib.sha256(data).hexdigest()

    def finish(self, documents: Mapping[str, str], cases: int) -> None:
        """Complete the manifest with what the data was."""
        manifest = json.loads(self.manifest.read_text(encoding="utf-8"))
        joined = "\n".join(f"{name} {digest}" for name, digest in sorted(documents.items()))
        manifest["data_sha256"] = hashlib.sha256(joined.encode()).hexdigest()
        manifest["documents"] = len(documents)
        manifest["questions"] = cases
        manifest["finished"] = now()
        write_json(self.manifest, manifest)


def read_manifest(folder: Path) -> Record:
    """Raises: ConfigError where the folder holds no run."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise ConfigError(f"{folder} holds no run: there is no manifest.json in it.")
    return cast(Record, json.loads(path.read_text(encoding="utf-8")))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """All or nothing."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str:
    """The checkout's commit, with a plus where it was changed since; or "unknown"."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ("git", "-C", str(folder), *arguments), capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    head = git("rev-parse", "--short=12", "HEAD")
    if not head:
        return "unknown"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../hmars", ".")
    return head + ("+" if changed else "")


def prompt_hashes(profile: Profile) -> dict[str, str]:
    """Short hashes of every prompt that a run may use, by id and version."""
    library = PromptLibrary(profile.prompts.dir)
    prompts = [library.get(name) for name in library.names()]
    prompts += [
        parse(path.read_text(encoding="utf-8"), path.name) for path in sorted(PROMPTS.glob("*.md"))
    ]
    return {str(prompt.ref): prompt.ref.sha256[:12] for prompt in prompts}


def profile_values(profile: Profile) -> Record:
    """The profile without addresses and keys: they change no result and may be secret."""
    values = profile.model_dump(mode="json", exclude={"endpoints"})
    values["endpoints"] = sorted(profile.endpoints)
    return values
