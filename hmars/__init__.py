"""Hierarchical memory for long documents and dialogues: reads everything, and can prove it."""

from hmars.conversation import Conversation
from hmars.errors import (
    CallFailed,
    ConfigError,
    EmptyInputError,
    EndpointError,
    HmarsError,
    InputError,
    MissingExtraError,
    ModelError,
    NotFoundError,
    StoreError,
)
from hmars.llm.budget import Budget
from hmars.memory import Memory
from hmars.model import (
    Answer,
    Citation,
    Document,
    DocumentIndex,
    EvidenceSpan,
    Failure,
    IndexReport,
    Ledger,
    MemoryCard,
    Page,
    Progress,
    Region,
    RegionalMemory,
    SourceText,
    Usage,
)
from hmars.settings import Profile, load_profile, profile_names

__all__ = [
    "Answer",
    "Budget",
    "CallFailed",
    "Citation",
    "ConfigError",
    "Conversation",
    "Document",
    "DocumentIndex",
    "EmptyInputError",
    "EndpointError",
    "EvidenceSpan",
    "Failure",
    "HmarsError",
    "IndexReport",
    "InputError",
    "Ledger",
    "Memory",
    "MemoryCard",
    "MissingExtraError",
    "ModelError",
    "NotFoundError",
    "Page",
    "Profile",
    "Progress",
    "Region",
    "RegionalMemory",
    "SourceText",
    "StoreError",
    "Usage",
    "load_profile",
    "profile_names",
]
