"""The models of `tests.lead_world` behind one real socket."""

from __future__ import annotations

import json

from tests.lead_world import answer_says, lead_turn, reader_says
from tests.scripted_server import Reply, Seen


def serve(seen: Seen) -> Reply | str | None:
    """The world's models behind one endpoint, told apart by their instructions."""
    system = str(seen.messages[0]["content"])
    if seen.body.get("tools"):
        queries, answer = lead_turn(seen.messages)
        if not queries:
            return Reply(f"<answer>{answer}</answer>", reasoning="The dates are known.")
        made = [
            {
                "id": f"c{seen.number}-{at}",
                "type": "function",
                "function": {"name": "query_agents", "arguments": json.dumps({"query": query})},
            }
            for at, query in enumerate(queries)
        ]
        return Reply(
            "", tool_calls=made, finish_reason="tool_calls", reasoning=f"Ask {len(queries)}."
        )
    if system.startswith("You read one part"):
        return json.dumps(reader_says(seen.text))
    if system.startswith("You check whether"):
        return json.dumps({"about": "the one meant", "verdict": "match", "why": ""})
    if system.startswith("You answer a question from evidence"):
        return json.dumps(answer_says(seen.text))
    return None
