"""ChatGPT's conversations.json: a tree of messages for each conversation.

Read is the branch that the user last saw; each conversation is a session named by its title.
"""

from __future__ import annotations

from hmars.indexing.turns.drafts import Draft, Notes
from hmars.indexing.turns.readers.fields import Json, as_list, as_map, id_of, maps, text_of
from hmars.indexing.turns.readers.records import content_text, role_of


def read_conversations(payload: object, notes: Notes) -> list[Draft]:
    record = as_map(payload)
    listed = payload if record is None else record.get("conversations", [record])
    drafts: list[Draft] = []
    for number, conversation in enumerate(maps(listed), start=1):
        title = text_of(conversation.get("title")) or f"conversation {number}"
        mapping = as_map(conversation.get("mapping")) or {}
        branch = _branch(conversation, mapping)
        drafts += _read_branch(branch, conversation, title, notes)
        for _ in range(sum(_has_message(node) for node in mapping.values()) - len(branch)):
            notes.leave_out("on a branch that was replaced by a later edit", f"in '{title}'")
    return drafts


def _has_message(node: object) -> bool:
    return as_map((as_map(node) or {}).get("message")) is not None


def _branch(conversation: Json, mapping: Json) -> list[Json]:
    """Messages from the root to the current node, in order."""
    node_id = id_of(conversation.get("current_node"))
    if node_id not in mapping:
        node_id = _last_leaf(mapping)
    branch: list[Json] = []
    visited: set[str] = set()
    while node_id is not None and node_id in mapping and node_id not in visited:
        visited.add(node_id)
        node = as_map(mapping[node_id]) or {}
        message = as_map(node.get("message"))
        if message is not None:
            branch.append(message)
        node_id = id_of(node.get("parent"))
    return branch[::-1]


def _last_leaf(mapping: Json) -> str | None:
    """Where no current node is given: from the root along the newest child."""
    roots = [key for key, node in mapping.items() if not (as_map(node) or {}).get("parent")]
    node_id = roots[0] if roots else None
    visited: set[str] = set()
    while node_id is not None and node_id not in visited:
        visited.add(node_id)
        children = [
            child
            for child in map(id_of, as_list((as_map(mapping[node_id]) or {}).get("children")))
            if child is not None and child in mapping
        ]
        if not children:
            break
        node_id = children[-1]
    return node_id


def _read_branch(branch: list[Json], conversation: Json, title: str, notes: Notes) -> list[Draft]:
    drafts: list[Draft] = []
    for number, message in enumerate(branch, start=1):
        where = f"message {number} of '{title}'"
        content = as_map(message.get("content")) or {}
        if content.get("content_type") in {"thoughts", "reasoning_recap"}:
            notes.leave_out("the model's thinking", where)
            continue
        author = as_map(message.get("author")) or {}
        role = role_of(author.get("role"), "", notes, where)
        text = content_text(content.get("parts")) or text_of(content.get("text"))
        if not text.strip() and role == "system":
            continue  # each tree has an empty system message as its root
        time = message.get("create_time")
        if time is None and conversation.get("create_time") is not None:
            time = conversation["create_time"]
            notes.note("without a time, given that of their conversation", where)
        drafts.append(
            Draft(
                speaker=text_of(author.get("name")) or text_of(author.get("role")),
                text=text,
                role=role,
                time=time,
                session=title,
                id=id_of(message.get("id")),
                where=where,
            )
        )
    return drafts
