"""Tables of the store, in SQL that SQLite and PostgreSQL share.

Every string that comes from a document, a file name or a model is kept as its UTF-8 bytes: NUL
is legal in text and not in PostgreSQL's text type, and bytes stay greppable in the store file.

A document owns its regions, a region its pages. Pages carry lengths, not offsets, so that an
edit writes only the regions it touched. Cards and regional memories are content-addressed within
a namespace and shared by every document of it that holds the same text. There is no status
column: what is unfinished is derived from what is there.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

SCHEMA_VERSION = 2
"""1: documents. 2: turns of conversations. An earlier store gains the tables it lacks."""


class Utf8(TypeDecorator[str]):
    """A string as its UTF-8 bytes; lone surrogates (odd file names) survive."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        return None if value is None else value.encode("utf-8", "surrogatepass")

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        return None if value is None else bytes(value).decode("utf-8", "surrogatepass")


metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("source_key", String(64), nullable=False),
    Column("source", Utf8, nullable=False),
    Column("title", Utf8, nullable=False),
    Column("kind", Text, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("structure_hash", String(64), nullable=False),
    Column("characters", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("page_count", Integer, nullable=False),
    Column("region_count", Integer, nullable=False),
    Column("group_count", Integer, nullable=False),
    Column("tokenizer", Utf8, nullable=False),
    Column("settings", Utf8, nullable=False),
    Column("warnings", Utf8, nullable=False),
    Column("version", Integer, nullable=False),
    Column("updated", Text, nullable=False),
    UniqueConstraint("namespace", "id"),
    UniqueConstraint("namespace", "source_key"),
)

cards = Table(
    "cards",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("key", String(64), nullable=False),
    Column("content_key", String(64), nullable=False),  # the region's key
    Column("degraded", Boolean, nullable=False),
    Column("body", Utf8, nullable=False),
    UniqueConstraint("namespace", "key", "content_key"),
    Index("cards_content", "content_key", "namespace"),
)

memories = Table(
    "regional_memories",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("key", String(64), nullable=False),
    Column("content_key", String(64), nullable=False),  # the group's key
    Column("degraded", Boolean, nullable=False),
    Column("body", Utf8, nullable=False),
    UniqueConstraint("namespace", "key", "content_key"),
    Index("memories_content", "content_key", "namespace"),
)

regions = Table(
    "regions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("document", Integer, ForeignKey(documents.c.number, ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("first_page", Integer, nullable=False),
    Column("page_count", Integer, nullable=False),
    Column("group_position", Integer),
    Column("blank", Boolean, nullable=False),
    Column("key", String(64), nullable=False),
    Column("face", String(64), nullable=False),  # what may change while the key does not
    Column("body_id", Integer, ForeignKey(cards.c.id, ondelete="SET NULL")),
    Index("regions_document", "document", "position"),
    Index("regions_key", "key"),
    Index("regions_card", "body_id"),
)

pages = Table(
    "pages",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("region", Integer, ForeignKey(regions.c.id, ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("characters", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("label", Utf8, nullable=False),
    Column("context", Utf8, nullable=False),
    Column("text", Utf8, nullable=False),
    Index("pages_region", "region", "position"),
)

groups = Table(
    "region_groups",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("document", Integer, ForeignKey(documents.c.number, ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("key", String(64), nullable=False),
    Column("body_id", Integer, ForeignKey(memories.c.id, ondelete="SET NULL")),
    Index("groups_document", "document", "position"),
    Index("groups_key", "key"),
    Index("groups_memory", "body_id"),
)

conversations = Table(
    "conversations",
    metadata,
    Column(
        "document", Integer, ForeignKey(documents.c.number, ondelete="CASCADE"), primary_key=True
    ),
    Column("zone", Utf8),
)

turns = Table(
    "turns",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("document", Integer, ForeignKey(documents.c.number, ondelete="CASCADE"), nullable=False),
    Column("id", Utf8, nullable=False),
    Column("speaker", Utf8, nullable=False),
    Column("role", Text, nullable=False),
    Column("session", Utf8),
    Column("text", Utf8, nullable=False),
    Column("replies_to", Utf8),
    Column("id_given", Boolean, nullable=False),
    Column("original", Utf8),  # the time as the file writes it
    Column("said_at", Text),  # ISO 8601 with the speaker's offset
    Column("assumed_zone", Utf8),
    Column("day_only", Boolean, nullable=False),
    Column("offset_s", Float),
    Column("sequence", Integer, nullable=False),
    Column("placed_at", Text),  # ISO 8601 in UTC
    UniqueConstraint("document", "id"),
)

# Outlives the document: a conversation of which every turn was forgotten has none.
forgotten_turns = Table(
    "forgotten_turns",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("source_key", String(64), primary_key=True),
    Column("key", String(64), primary_key=True),
)

replies = Table(
    "replies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("payload", Utf8, nullable=False),
    UniqueConstraint("namespace", "key"),
)

reply_documents = Table(
    "reply_documents",
    metadata,
    Column("reply", Integer, ForeignKey(replies.c.id, ondelete="CASCADE"), primary_key=True),
    Column(
        "document", Integer, ForeignKey(documents.c.number, ondelete="CASCADE"), primary_key=True
    ),
    Index("reply_documents_document", "document"),
)

calls = Table(
    "calls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("model", Utf8, nullable=False),
    Column("prompt", Utf8, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("reasks", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("paths", Utf8),  # JSON; NULL for the many replies that needed no help
    Column("seconds", Float, nullable=False),
    Column("outcome", Utf8, nullable=False),
    Index("calls_time", "namespace", "at"),
)
