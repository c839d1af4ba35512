"""A profile for the scripted server, and a text whose regions can be told apart."""

from __future__ import annotations

import re
from pathlib import Path

from hmars.settings import Profile, load_profile
from tests.scripted_server import Seen

ROLES = ("card", "region", "broadcast", "select", "answer")


def write_profile(folder: Path, base_url: str, extra: str = "", endpoint: str = "") -> Path:
    """One endpoint for all roles; small pages and regions, a region of about one page."""
    path = folder / "scripted.toml"
    roles = "\n".join(f'[roles.{role}]\nendpoint = "s"\nmodel = "scripted"' for role in ROLES)
    path.write_text(
        f'agents = "model"\n{extra}\n[partition]\npage_tokens = 48\nregion_tokens = 48\n'
        f'[endpoints.s]\nbase_url = "{base_url}"\nretries = 0\n'
        f"timeout_s = 5\n{endpoint}\n{roles}\n",
        encoding="utf-8",
    )
    return path


def profile_for(folder: Path, base_url: str, extra: str = "", endpoint: str = "") -> Profile:
    return load_profile(write_profile(folder, base_url, extra, endpoint))


def piers(count: int) -> str:
    """`count` paragraphs, each a page and a region of its own under the profile above."""
    return "\n\n".join(
        f"Entry {n:03d}. The keeper of pier {n} is called Orla Venn {n}, and she counts {3 * n} "
        f"lamps every evening before the ferry of pier {n} leaves for the other side."
        for n in range(1, count + 1)
    )


def stage(seen: Seen) -> str:
    """Which role asks, told by its instructions."""
    system = str(seen.messages[0]["content"])
    for name, sign in (
        ("card", "writes its memory card"),
        ("card", "write its memory card"),
        ("region", "join them into one regional memory"),
        ("broadcast", "tell every region how to understand"),
        ("select", "guard the pages"),
        ("answer", "answer a question from evidence"),
    ):
        if sign in system:
            return name
    return "other"


def entries(seen: Seen) -> list[int]:
    """Numbers of the entries in the prompt, each once."""
    found = re.findall(r"Entry (\d{3})\.", seen.text)
    return [int(number) for number in dict.fromkeys(found)]
