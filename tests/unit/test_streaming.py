from __future__ import annotations

import json

from hmars.query.streaming import AnswerStream


def pieces(text: str, size: int = 3) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def test_the_answer_is_shown_piece_by_piece_and_nothing_else_is() -> None:
    shown: list[str] = []
    stream = AnswerStream(shown.append)
    reply = json.dumps(
        {"answerable": True, "answer": 'He said "é\n" [1].', "citations": []}, ensure_ascii=True
    )
    for piece in pieces(reply):
        stream.feed(piece)
    assert "".join(shown) == 'He said "é\n" [1].'
    assert len(shown) > 2


def test_a_fence_before_the_json_does_not_show() -> None:
    shown: list[str] = []
    stream = AnswerStream(shown.append)
    for piece in pieces('```json\n{"answerable": true, "answer": "yes"}\n```'):
        stream.feed(piece)
    assert "".join(shown) == "yes"


def test_a_reply_that_is_no_object_shows_nothing() -> None:
    shown: list[str] = []
    stream = AnswerStream(shown.append)
    for piece in pieces("I cannot say. [1, 2] {"):
        stream.feed(piece)
    assert shown == []
