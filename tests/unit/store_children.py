"""What the child processes of the kill test do. Imports little, so that they start at once."""

from __future__ import annotations

import itertools
from multiprocessing.connection import Connection
from pathlib import Path

from store_samples import card_for, put_cards, save

from hmars.store import Store, card_key

TEXTS = [[f"Bell {number} rings. " * 20] for number in range(4)]


def write_for_ever(path: Path, first: int, pipe: Connection) -> None:
    """Tell what is durable, one step at a time: a document, its cards, a reply, an edit."""
    with Store.open(path) as store:
        for number in itertools.count(first):
            texts = [[f"Document {number}. "], *TEXTS]
            document = save(store, texts, source=f"/{number}")
            pipe.send(("document", number))
            for region in store.load_index("default", document.id).regions:
                key = card_key("a", region.key)
                store.put_card("default", document.id, region, key, card_for(region))
                pipe.send(("card", number))
            store.put_reply("default", f"r{number}", "paid for " * 300, [document.id])
            pipe.send(("reply", number))
            if number % 3 == 0:
                save(store, [*texts, [f"Edit of {number}. "]], source=f"/{number}")
                pipe.send(("edit", number))
            if number % 4 == 0:
                store.forget("default", document.id)
                pipe.send(("forget", number))


def index_one(path: Path, name: str, pipe: Connection) -> None:
    with Store.open(path) as store:
        pipe.send("open")
        pipe.recv()
        document = save(store, [[f"{name} {number}. "] for number in range(50)], source=f"/{name}")
        put_cards(store, document)
        pipe.send("done")
