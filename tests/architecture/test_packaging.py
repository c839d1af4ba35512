"""What is shipped is what is there, and the documentation says what is true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import hmars
from hmars.prompts import PromptLibrary
from hmars.settings import load_profile, profile_names

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LONGEST_MODULE = 400
LONGEST_README = 150


def modules() -> list[Path]:
    return [
        path
        for folder in ("hmars", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "configs" not in path.parts
    ]


def test_the_package_list_equals_the_folders() -> None:
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "hmars").rglob("__init__.py")
        if "configs" not in path.parts
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == folders | {"hmars.configs"}


def test_the_links_at_the_root_lead_into_the_package() -> None:
    for name in ("indexing", "query"):
        assert (ROOT / name / "__init__.py").samefile(ROOT / "hmars" / name / "__init__.py")
    assert (ROOT / "hmars" / "configs" / "extractive.toml").samefile(
        ROOT / "configs" / "extractive.toml"
    )


@pytest.mark.parametrize("name", profile_names())
def test_every_shipped_profile_loads_by_name(name: str) -> None:
    assert load_profile(name).name == name


def test_public_names_are_sorted_and_there() -> None:
    assert hmars.__all__ == sorted(hmars.__all__)
    assert all(hasattr(hmars, name) for name in hmars.__all__)


def test_no_module_is_longer_than_it_may_be() -> None:
    long = [
        (str(path.relative_to(ROOT)), length)
        for path in modules()
        if (length := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_MODULE
    ]
    assert long == []


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README


def test_every_make_target_that_the_documents_name_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        lines = re.findall(
            r"^make (.+?)(?:\s+#.*)?$", (ROOT / name).read_text("utf-8"), re.MULTILINE
        )
        named = {target for line in lines for target in re.findall(r"[a-z]+", line)}
        assert named and named <= targets


def test_every_command_of_the_documentation_exists() -> None:
    from hmars.cli.main import app

    names = {command.name for command in app.registered_commands}
    documented = set(
        re.findall(r"^hmars ([a-z-]+)", (ROOT / "docs" / "cli.md").read_text("utf-8"), re.MULTILINE)
    )
    assert documented == names


def test_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_python_of_the_readme_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    assert "Tickets cost four crowns." in capsys.readouterr().out


def test_prompt_texts_do_not_change_without_their_version() -> None:
    library = PromptLibrary()
    pinned = {
        name: (prompt.ref.version, prompt.ref.sha256[:12])
        for name in library.names()
        for prompt in [library.get(name)]
    }
    expected = tomllib.loads((ROOT / "tests" / "data" / "prompts.toml").read_text("utf-8"))
    assert pinned == {name: (entry["version"], entry["sha256"]) for name, entry in expected.items()}
