"""Where documents, cards, regional memories, replies and calls are kept."""

from hmars.store.asynchronous import AsyncStore, NamespaceHistory
from hmars.store.history import UsageRow
from hmars.store.keys import card_key, memory_key
from hmars.store.store import ForgetReport, Store
from hmars.store.turns import Overtaken, StoredConversation, StoredTurn

__all__ = [
    "AsyncStore",
    "ForgetReport",
    "NamespaceHistory",
    "Overtaken",
    "Store",
    "StoredConversation",
    "StoredTurn",
    "UsageRow",
    "card_key",
    "memory_key",
]
