"""The text as readers get it: windows of whole pages (S-PARSER 3.1, chunks)."""

from __future__ import annotations

from collections.abc import Iterator

from hmars.model import Page, Region, is_blank
from hmars.query.agents import Scope
from hmars.query.lead.agents import Window


def windows_of(scope: Scope, limit: int | None) -> list[Window]:
    """Windows that tile the scope, numbered from 1 in reading order; blank ones are left out.

    They are packed greedily from whole pages of at most `limit` tokens together and stay inside
    their region, so that each region's outcome follows from its windows. A page that alone is
    larger is a window of its own. Without a limit a region is one window.
    """
    windows: list[Window] = []
    for _, region in scope.regions():
        for pages in _packed(region, limit):
            window = Window.over(len(windows) + 1, region, pages)
            if not is_blank(window.text):
                windows.append(window)
    return windows


def _packed(region: Region, limit: int | None) -> Iterator[tuple[Page, ...]]:
    if limit is None:
        yield region.pages
        return
    held: list[Page] = []
    used = 0
    for page in region.pages:
        if held and used + page.tokens > limit:
            yield tuple(held)
            held, used = [], 0
        held.append(page)
        used += page.tokens
    if held:
        yield tuple(held)
