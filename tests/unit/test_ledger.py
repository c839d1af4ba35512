"""Promise 2: every region ends in exactly one way."""

from __future__ import annotations

import pytest

from hmars.errors import CallFailed
from hmars.query.ledger import LedgerBook
from tests.support import make_index, scope_of

SCOPE = scope_of(make_index([["a "], ["b "], ["c "]]))


def failure(problem: str) -> CallFailed:
    return CallFailed("It failed.", problem=problem, role="select")  # type: ignore[arg-type]


def test_a_ledger_with_a_region_missing_cannot_be_closed() -> None:
    book = LedgerBook(SCOPE)
    book.enter(("doc", 1), "selected")
    with pytest.raises(RuntimeError, match="without an outcome"):
        book.close()


def test_a_region_cannot_end_twice() -> None:
    book = LedgerBook(SCOPE)
    book.enter(("doc", 1), "selected")
    with pytest.raises(RuntimeError, match="ended twice"):
        book.enter(("doc", 1), "abstained")


def test_a_region_that_is_not_in_the_scope_cannot_be_entered() -> None:
    book = LedgerBook(SCOPE)
    for number in (1, 2, 3, 4):
        book.enter(("doc", number), "abstained")
    with pytest.raises(RuntimeError, match="without a region"):
        book.close()


def test_cut_replies_and_cut_prompts_are_truncated_and_other_failures_failed() -> None:
    book = LedgerBook(SCOPE)
    book.enter_failure(("doc", 1), failure("length"))
    book.enter_failure(("doc", 2), failure("timeout"))
    book.enter_failure(("doc", 3), failure("prompt_cut"))
    ledger = book.close()
    assert (ledger.truncated, ledger.failed) == (2, 1)
    assert [(entry.region, entry.problem) for entry in ledger.failures] == [
        (1, "length"),
        (2, "timeout"),
        (3, "prompt_cut"),
    ]
    assert not ledger.ok
    assert ledger.regions == 3 == ledger.truncated + ledger.failed
