"""The nouns of hmars, shared by every other module.

Offsets are Unicode code points into the stored text of one document, half-open. Pages, regions
and groups are numbered from 1 in reading order. Inside prompts and inside cards, pages and
regions carry *local* numbers (from 1 within their region or group), so that an edit elsewhere in
the document changes neither a prompt nor a card.
"""

from hmars.model.base import (
    DocumentKind,
    Frozen,
    Role,
    is_blank,
)
from hmars.model.hierarchy import (
    CrossReference,
    CrossReferenceKind,
    Document,
    DocumentIndex,
    Group,
    Mark,
    MemoryCard,
    Page,
    PageGist,
    Region,
    RegionalMemory,
    SourceText,
    SubmapEntry,
)
from hmars.model.results import (
    WAITING,
    Answer,
    CallRecord,
    CardCounts,
    Citation,
    EvidenceSpan,
    Failure,
    Finding,
    IndexReport,
    IndexSeconds,
    Ledger,
    Progress,
    Round,
    Seconds,
    Usage,
    Verdict,
)

__all__ = [
    "WAITING",
    "Answer",
    "CallRecord",
    "CardCounts",
    "Citation",
    "CrossReference",
    "CrossReferenceKind",
    "Document",
    "DocumentIndex",
    "DocumentKind",
    "EvidenceSpan",
    "Failure",
    "Finding",
    "Frozen",
    "Group",
    "IndexReport",
    "IndexSeconds",
    "Ledger",
    "Mark",
    "MemoryCard",
    "Page",
    "PageGist",
    "Progress",
    "Region",
    "RegionalMemory",
    "Role",
    "Round",
    "Seconds",
    "SourceText",
    "SubmapEntry",
    "Usage",
    "Verdict",
    "is_blank",
]
