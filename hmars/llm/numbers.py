"""Numbers that a model gives for pages, regions and evidence blocks."""

from __future__ import annotations

import re
from typing import Any


def local_number(value: Any, last: int) -> int | None:  # noqa: ANN401 - it is what a model sent
    """The number if it is a whole one in 1..last, else None.

    Digits in a string count ("2", "page 2"); true, null and 2.5 are no numbers of anything.
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(?:[A-Za-z]+\s*)?#?(\d{1,9})\s*", value)
        value = int(match[1]) if match else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 1 <= value <= last else None
