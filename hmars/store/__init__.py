"""Where documents, cards, regional memories, replies and calls are kept."""

from hmars.store.asynchronous import AsyncStore, NamespaceHistory
from hmars.store.history import UsageRow
from hmars.store.keys import card_key, group_key, memory_key
from hmars.store.plan import DocumentPlan
from hmars.store.store import ForgetReport, Store
from hmars.store.transfer import KeptBody, Transfer
from hmars.store.turns import Overtaken, StoredConversation, StoredTurn

__all__ = [
    "AsyncStore",
    "DocumentPlan",
    "ForgetReport",
    "KeptBody",
    "NamespaceHistory",
    "Overtaken",
    "Store",
    "StoredConversation",
    "StoredTurn",
    "Transfer",
    "UsageRow",
    "card_key",
    "group_key",
    "memory_key",
]
