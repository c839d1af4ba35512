"""Speed of partition, and how much an edit leaves alone.

    python -m benchmarks.partition [--data DIR] [--tokenizer NAME]

`--data` names a folder of UTF-8 books (`*.txt`, `*.json`); without it, generated prose is used.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
from pathlib import Path

from hmars.indexing.partition import Partition, partition
from hmars.model import SourceText
from hmars.settings import PartitionSettings
from hmars.tokens import Tokenizer, load_tokenizer

MB = 1_000_000
EDIT = "\n\nA paragraph that was not there before, of a length that people write.\n\n"
EDITS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tokenizer", default="words")
    options = parser.parse_args()
    tokenizer = load_tokenizer(options.tokenizer)
    books = _books(options.data) if options.data else {"generated prose": _prose(3 * MB)}
    longest = max(books.values(), key=len)
    for size in (1, 5, 10):
        _speed(f"{size} MB", (longest * (size * MB // len(longest) + 1))[: size * MB], tokenizer)
    for name, text in books.items():
        _speed(name, text, tokenizer)
    _reuse(longest, tokenizer)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory of this process: {peak} MiB")


def _books(folder: Path) -> dict[str, str]:
    paths = sorted([*folder.rglob("*.txt"), *folder.rglob("*.json")])
    large = [path for path in paths if path.stat().st_size > MB]
    if not large:
        raise SystemExit(f"{folder} holds no text of more than 1 MB.")
    return {path.name: path.read_text(encoding="utf-8") for path in large[:6]}


def _prose(size: int) -> str:
    rng = random.Random(1)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(4000)]
    parts: list[str] = []
    while size > 0:
        part = " ".join(rng.choices(words, k=rng.randint(5, 25))) + rng.choice([". ", ".\n\n"])
        parts.append(part)
        size -= len(part)
    return "".join(parts)


def _cut(text: str, tokenizer: Tokenizer) -> Partition:
    return partition(SourceText(text, "book", "book"), tokenizer, PartitionSettings(), "book")


def _speed(name: str, text: str, tokenizer: Tokenizer) -> None:
    begun = time.process_time()
    found = _cut(text, tokenizer)
    seconds = time.process_time() - begun
    tiled = "".join(region.text for region in found.regions) == text
    pages = sum(len(region.pages) for region in found.regions)
    print(
        f"{name:28} {len(text.encode()) / MB / seconds:6.1f} MB per CPU second, "
        f"{found.tokens} tokens, {pages} pages, {len(found.regions)} regions, "
        f"{len(found.groups)} groups, tiled: {tiled}"
    )


def _reuse(text: str, tokenizer: Tokenizer) -> None:
    before = _cut(text, tokenizer)
    regions, groups = _keys(before)
    new_regions: list[int] = []
    new_groups: list[int] = []
    for edit in range(EDITS):
        place = len(text) * edit // EDITS
        after = _keys(_cut(text[:place] + EDIT + text[place:], tokenizer))
        new_regions.append(len(after[0] - regions))
        new_groups.append(len(after[1] - groups))
    print(
        f"after one insertion ({EDITS} places): new regions {_spread(new_regions)} of "
        f"{len(regions)}, new groups {_spread(new_groups)} of {len(groups)}"
    )


def _keys(found: Partition) -> tuple[set[str], set[str]]:
    keys = [region.key for region in found.regions]
    groups = {" ".join(keys[region - 1] for region in group.regions) for group in found.groups}
    return set(keys), groups


def _spread(counts: list[int]) -> str:
    return f"mean {statistics.mean(counts):.1f}, most {max(counts)}"


if __name__ == "__main__":
    main()
