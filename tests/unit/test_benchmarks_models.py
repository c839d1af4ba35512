"""The parts of `benchmarks.models` and `benchmarks.failures` that need no model."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.failures import measure
from benchmarks.models import Question, Row, bm25_rank, read_probe, source_of, summary
from hmars.indexing.partition import partition
from hmars.settings import PartitionSettings
from hmars.tokens import load_tokenizer

PAGES = ["The gate closes at nine.\n", "The fee is forty crowns.\n", "Ingrid keeps the keys.\n"]


def test_every_page_of_a_probe_stays_the_page_it_is() -> None:
    parts = partition(
        source_of("harbour", PAGES),
        load_tokenizer("words"),
        PartitionSettings(page_tokens=10, region_tokens=20),
        "",
    )
    assert [page.text for region in parts.regions for page in region.pages] == PAGES


def test_a_probe_is_read_and_bm25_ranks_its_pages(tmp_path: Path) -> None:
    path = tmp_path / "probe.json"
    entry = {"doc": "harbour", "q": "What is the fee?", "gold": [1], "neutral": [0]}
    path.write_text(json.dumps({"pages": {"harbour": PAGES}, "questions": [entry]}))
    pages, questions = read_probe(path)
    assert questions == [Question("harbour", "What is the fee?", (1,), (0,))]
    assert bm25_rank(pages["harbour"], questions[0]) == 1


def test_the_cached_share_is_that_of_the_questions_after_the_first_of_a_text() -> None:
    cold = Row("a", "q", 1, 2, 3, 900, 60.0, 16, 1000, 0, 0, ())
    warm = Row("a", "r", None, 1, 1, 300, 6.0, 16, 1000, 950, 0, ())
    text = summary([cold, warm])
    assert "right page among those passed: 1 of 2" in text
    assert "right page first: 1 of 2 (BM25: 1)" in text
    assert "after the first question: 0.950" in text
    assert "= 10.0x" in text


async def test_with_faulty_replies_every_region_and_every_call_is_accounted_for() -> None:
    text = await measure(60, 0.3, seed=3)
    assert "every region accounted for: yes" in text
    assert "failures named: all" in text
    assert "calls counted: all" in text
