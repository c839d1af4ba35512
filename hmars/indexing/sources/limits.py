"""Limits of what a file may cost. Each is named in docs/documents.md."""

from __future__ import annotations

from typing import Final

MIB: Final = 1 << 20

MAX_PLAIN_BYTES: Final = 256 * MIB
"""Largest file of a format that is read whole (text, HTML, mail, JSON, RTF, tables as text)."""
MAX_TEXT_CHARS: Final = 256 * MIB
"""Largest text taken out of one file."""
MAX_MEMBERS: Final = 20_000
"""Most entries in a zip container (Office, EPUB, ODF)."""
MAX_MEMBER_BYTES: Final = 256 * MIB
"""Largest unpacked entry that is read; counted while unpacking, not taken from the header."""
MAX_ARCHIVE_BYTES: Final = 1024 * MIB
"""Most bytes unpacked from one container, all entries together."""
MAX_RATIO: Final = 200
"""Largest ratio of unpacked to packed size, for an entry of more than `RATIO_FREE_BYTES`."""
RATIO_FREE_BYTES: Final = 4 * MIB
MAX_XML_DEPTH: Final = 200
MAX_XML_ELEMENTS: Final = 5_000_000
"""About 40,000 pages of Word text; a minute of parsing."""
MAX_CELLS: Final = 5_000_000
"""Most filled cells of one workbook."""
MAX_PDF_PAGES: Final = 10_000
TABLE_PART_CHARS: Final = 1_500
"""A longer table is written in parts of this size, each with the header row again."""
