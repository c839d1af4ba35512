"""Chat exports of each format: what becomes a turn, and that nothing goes missing silently."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.turns import TurnFile, merge, read_turns


def read(content: object, **options: str) -> TurnFile:
    text = content if isinstance(content, str) else json.dumps(content)
    return read_turns(text.encode(), name="chat", **options)  # type: ignore[arg-type]


def said(file: TurnFile) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in file.turns]


# ---------------------------------------------------------------- plain turns and messages


def test_a_broken_line_is_left_out_counted_and_named() -> None:
    file = read(
        '{"speaker": "Ana", "text": "one", "time": "2024-01-01T10:00Z"}\n'
        '{"speaker": "Ana", "text": "tw\n'
        "\n"
        "[1, 2]\n"
        '{"speaker": "Ana"}\n'
        '{"speaker": "Bo", "text": "a\u2028b", "time": "2024-01-01T10:01Z"}\n'
    )
    assert file.format == "jsonl"
    assert said(file) == [("Ana", "one"), ("Bo", "a\u2028b")]
    assert file.left_out == 3
    assert file.warnings == (
        "chat: line 2 left out, not valid JSON.",
        "chat: line 4 left out, not a JSON object.",
        "chat: line 5 left out, without text.",
    )


def test_many_broken_lines_are_one_warning() -> None:
    file = read('{"speaker": "A", "text": "x"}\n' + "oops\n" * 500)
    assert file.left_out == 500
    assert (
        "500 entries left out, not valid JSON (line 2, line 3, line 4, and 497 more)."
        in (file.warnings[0])
    )


def test_a_byte_order_mark_and_a_broken_first_line_do_not_hide_the_format() -> None:
    data = b'\xef\xbb\xbf{"speaker": "A", \n{"speaker": "A", "text": "x"}\n'
    file = read_turns(data, name="chat")
    assert (file.format, file.left_out, len(file.turns)) == ("jsonl", 1, 1)


def test_openai_messages_with_parts_and_tool_calls_are_read() -> None:
    file = read(
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {
                    "role": "user",
                    "name": "Ana",
                    "content": [
                        {"type": "text", "text": "What is this?"},
                        {"type": "image_url", "image_url": {"url": "data:..."}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"function": {"name": "look", "arguments": '{"at": 1}'}}],
                },
                {"role": "tool", "content": "a mug"},
            ]
        }
    )
    assert file.format == "messages"
    assert said(file) == [
        ("developer", "Be brief."),
        ("Ana", "What is this?\n(image)"),
        ("assistant", '(calls look: {"at": 1})'),
        ("tool", "a mug"),
    ]
    assert [turn.role for turn in file.turns] == ["system", "user", "assistant", "other"]


def test_a_line_that_is_a_whole_chat_is_a_session() -> None:
    line = {"messages": [{"role": "user", "content": "hi"}]}
    file = read(f"{json.dumps(line)}\n{json.dumps(line)}\n")
    assert [turn.session for turn in file.turns] == ["1", "2"]
    assert len({turn.id for turn in file.turns}) == 2


# ---------------------------------------------------------------- ChatGPT


def _node(key: str, parent: str | None, children: list[str], text: str, role: str) -> object:
    message = {
        "id": f"m-{key}",
        "author": {"role": role},
        "create_time": 1_700_000_000.5,
        "content": {"content_type": "text", "parts": [text]},
    }
    return {"id": key, "parent": parent, "children": children, "message": message}


def _tree(current: str | None) -> list[object]:
    mapping = {
        "root": {"id": "root", "parent": None, "children": ["a"], "message": None},
        "a": _node("a", "root", ["b", "c"], "Name a fish", "user"),
        "b": _node("b", "a", [], "Cod", "assistant"),
        "c": _node("c", "a", [], "Pike", "assistant"),
    }
    return [{"title": "Fish", "create_time": 1.7e9, "mapping": mapping, "current_node": current}]


def test_chatgpt_gives_the_current_branch_and_counts_the_others() -> None:
    file = read(_tree("b"))
    assert file.format == "chatgpt"
    assert said(file) == [("user", "Name a fish"), ("assistant", "Cod")]
    assert {turn.session for turn in file.turns} == {"Fish"}
    assert file.turns[0].id == "m-a"
    assert file.left_out == 1
    assert "replaced by a later edit" in file.warnings[0]


def test_chatgpt_without_a_current_node_follows_the_newest_children() -> None:
    assert said(read(_tree(None)))[-1] == ("assistant", "Pike")


def test_a_chatgpt_tree_with_a_cycle_ends() -> None:
    loop = {
        "a": {"parent": "b", "children": ["b"], "message": None},
        "b": _node("b", "a", ["a"], "round", "user"),
    }
    assert said(read([{"title": "t", "mapping": loop, "current_node": "b"}])) == [("user", "round")]


# ---------------------------------------------------------------- Slack


def _slack_files() -> dict[str, object]:
    return {
        "users.json": [
            {"id": "U1", "name": "ana.l", "profile": {"display_name": "Ana"}},
            {"id": "U2", "name": "bo", "profile": {"display_name": "", "real_name": "Bo Berg"}},
        ],
        "channels.json": [{"id": "C1", "name": "boats"}],
        "boats/2024-05-02.json": [
            {"type": "message", "user": "U2", "text": "Sold &amp; gone", "ts": "1714640400.0001",
             "thread_ts": "1714554000.0001"},
        ],
        "boats/2024-05-01.json": [
            {"type": "message", "user": "U1", "text": "<@U2> see <https://x.org|this>",
             "ts": "1714554000.0001", "thread_ts": "1714554000.0001"},
            {"type": "message", "subtype": "channel_join", "user": "U2", "text": "<@U2> joined",
             "ts": "1714554001.0001"},
            {"type": "message", "subtype": "bot_message", "username": "Tide", "text": "High",
             "ts": "1714554002.0001"},
        ],
    }  # fmt: skip


def _check_slack(file: TurnFile) -> None:
    assert file.format == "slack"
    assert said(file) == [
        ("Ana", "@Bo Berg see this (https://x.org)"),
        ("Bo Berg", "@Bo Berg joined"),
        ("Tide", "High"),
        ("Bo Berg", "Sold & gone"),
    ]
    assert [turn.role for turn in file.turns] == ["user", "system", "other", "user"]
    assert file.turns[3].replies_to == file.turns[0].id == "boats/1714554000.0001"
    assert {turn.session for turn in file.turns} == {"boats"}


def test_a_slack_folder_is_read_with_names_and_threads(tmp_path: Path) -> None:
    for path, content in _slack_files().items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(json.dumps(content))
    _check_slack(read_turns(tmp_path))
    day = read_turns(tmp_path / "boats" / "2024-05-02.json")
    assert day.turns[0].id == "boats/1714640400.0001"


def test_a_slack_zip_is_read_like_the_folder() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, content in _slack_files().items():
            archive.writestr(path, json.dumps(content))
    _check_slack(read_turns(packed.getvalue(), name="export.zip"))


def test_a_folder_without_channels_is_no_slack_export(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("[]")
    with pytest.raises(InputError, match="not a Slack export"):
        read_turns(tmp_path)


# ---------------------------------------------------------------- WhatsApp and Signal


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("31/12/2023, 21:05 - Ana: hi", "2023-12-31T21:05"),
        ("12/31/23, 9:05 PM - Ana: hi", "2023-12-31T21:05"),
        ("12/31/23, 9:05\u202fPM - Ana: hi", "2023-12-31T21:05"),
        ("31.12.23, 21:05 - Ana: hi", "2023-12-31T21:05"),
        ("\u200e[31/12/2023, 21:05:09] Ana: \u200ehi", "2023-12-31T21:05"),
        ("2023-12-31 21:05 - Ana: hi", "2023-12-31T21:05"),
        ("2023/12/31 下午9:05 - Ana: hi", "2023-12-31T21:05"),
        ("31/12/2023, 9:05 p. m. - Ana: hi", "2023-12-31T21:05"),
        ("31.12.2023 klo 21.05 - Ana: hi", "2023-12-31T21:05"),
        ("2023. 12. 31. 21:05 - Ana: hi", "2023-12-31T21:05"),
        ("[2023-12-31, 21:05] Ana: hi", "2023-12-31T21:05"),
    ],
)
def test_whatsapp_dates_of_many_locales_are_read(text: str, iso: str) -> None:
    file = read(text)
    assert file.format == "whatsapp"
    assert said(file) == [("Ana", "hi")]
    assert (file.turns[0].time.iso or "").startswith(iso)


def test_whatsapp_lines_continue_and_system_lines_have_no_speaker() -> None:
    file = read(
        "13/01/2024, 10:00 - Messages are encrypted.\n"
        '13/01/2024, 10:01 - Ana changed the subject to "Boats: new"\n'
        "13/01/2024, 10:02 - +44 20 0000: first\n\n  third line: x\n"
        "13/01/2024, 10:03 - Bo: <Media omitted>\n"
    )
    assert said(file) == [
        ("system", "Messages are encrypted."),
        ("system", 'Ana changed the subject to "Boats: new"'),
        ("+44 20 0000", "first\n\n  third line: x"),
        ("Bo", "<Media omitted>"),
    ]
    assert [turn.role for turn in file.turns] == ["system", "system", "user", "user"]


def test_whatsapp_order_of_day_and_month_comes_from_the_whole_file() -> None:
    file = read("01/02/24, 10:00 - A: x\n02/13/24, 10:00 - A: y\n")
    assert (file.turns[0].time.iso or "").startswith("2024-01-02")
    forwards = read("01/02/24, 10:00 - A: x\n02/01/24, 10:00 - A: y\n03/01/24, 09:00 - A: z\n")
    assert [str(turn.time.iso)[:10] for turn in forwards.turns] == [
        "2024-01-02", "2024-02-01", "2024-03-01",
    ]  # fmt: skip


def test_a_whatsapp_date_that_fits_two_orders_is_warned_of_and_can_be_told() -> None:
    text = "03/04/2024, 10:00 - A: x\n"
    guessed = read(text)
    assert any("can be dmy or mdy, read as dmy" in warning for warning in guessed.warnings)
    told = read(text, date_order="mdy")
    assert str(told.turns[0].time.iso).startswith("2024-03-04")
    assert told.turns[0].id == guessed.turns[0].id


def test_a_whatsapp_zip_is_read() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("_chat.txt", "[31/12/2023, 21:05:09] Ana: hi")
    assert said(read_turns(packed.getvalue(), name="x.zip")) == [("Ana", "hi")]


# ---------------------------------------------------------------- Discord, Telegram, Messenger


def test_discord_json_is_read_with_replies_attachments_and_joins() -> None:
    author = {"id": "1", "name": "ana", "nickname": "Ana L"}
    file = read(
        {
            "channel": {"name": "general"},
            "messages": [
                {"id": "10", "type": "Default", "timestamp": "2024-05-01T10:00:00.12+02:00",
                 "content": "look", "author": author, "attachments": [{"fileName": "map.png"}]},
                {"id": "11", "type": "Reply", "timestamp": "2024-05-01T10:01:00+02:00",
                 "content": "nice", "author": {"name": "bo", "isBot": True},
                 "reference": {"messageId": "10"}},
                {"id": "12", "type": "GuildMemberJoin", "timestamp": "2024-05-01T10:02:00+02:00",
                 "content": "Joined the server.", "author": author},
            ],
        }
    )  # fmt: skip
    assert file.format == "discord"
    assert said(file)[0] == ("Ana L", "look\n(attachment: map.png)")
    assert [turn.role for turn in file.turns] == ["user", "other", "system"]
    assert file.turns[1].replies_to == "10"
    assert {turn.session for turn in file.turns} == {"general"}


def test_discord_csv_is_read_with_line_ends_inside_a_message() -> None:
    file = read(
        "AuthorID,Author,Date,Content,Attachments,Reactions\r\n"
        '"1","ana#1234","2024-05-01T10:00:00.0000000+00:00","two\nlines","https://x/y/a.png",""\r\n'
        '"2","bo","01-May-24 10:05 AM","ok","",""\r\n'
    )
    assert file.format == "discord-csv"
    assert said(file) == [("ana", "two\nlines\n(attachment: a.png)"), ("bo", "ok")]
    assert file.turns[1].time.iso == "2024-05-01T10:05:00+00:00"


def test_telegram_text_parts_service_lines_and_local_time_are_read() -> None:
    file = read(
        {
            "name": "Bo",
            "id": 77,
            "messages": [
                {"id": 1, "type": "service", "date": "2024-05-01T12:00:00", "actor": "Bo",
                 "action": "create_group", "title": "Boats", "members": ["Ana"], "text": ""},
                {"id": 2, "type": "message", "date": "2024-05-01T12:30:00",
                 "date_unixtime": "1714559400", "from": "Ana",
                 "text": ["see ", {"type": "link", "text": "x.org"}]},
                {"id": 3, "type": "message", "date_unixtime": "1714559460", "from": "Bo",
                 "text": "I hate it", "forwarded_from": "Cy", "reply_to_message_id": 2},
                {"id": 4, "type": "message", "date_unixtime": "1714559460", "from": None,
                 "from_id": "user9", "text": "", "photo": "p.jpg"},
            ],
        }
    )  # fmt: skip
    assert file.format == "telegram"
    assert said(file) == [
        ("Bo", "(create group: Boats: Ana)"),
        ("Ana", "see x.org"),
        ("Bo", "(forwarded from Cy)\nI hate it"),
        ("user9", "(photo)"),
    ]
    assert file.turns[1].time.iso == "2024-05-01T12:30:00+02:00"
    assert file.turns[2].replies_to == file.turns[1].id == "77/2"


def test_telegram_chats_of_one_account_keep_equal_message_numbers_apart() -> None:
    chats = [
        {"id": n, "name": f"chat {n}", "messages": [
            {"id": 1, "type": "message", "date_unixtime": "1714559400", "from": "A", "text": "x"}
        ]}
        for n in (1, 2)
    ]  # fmt: skip
    file = read({"chats": {"list": chats}})
    assert len(merge((), file.turns).turns) == 2


def test_messenger_bytes_are_repaired_and_the_oldest_comes_first() -> None:
    def broken(text: str) -> str:
        return text.encode().decode("latin-1")

    file = read(
        {
            "title": broken("Zoë"),
            "messages": [
                {"sender_name": "Bo", "timestamp_ms": 1714559460000,
                 "photos": [{"uri": "a/b.jpg"}]},
                {"sender_name": broken("Zoë"), "timestamp_ms": 1714559400000,
                 "content": broken("café 😀")},
            ],
        }
    )  # fmt: skip
    assert file.format == "messenger"
    assert said(file) == [("Zoë", "café 😀"), ("Bo", "(photo: b.jpg)")]
    assert file.turns[0].session == "Zoë"


# ---------------------------------------------------------------- captions


def test_vtt_voices_become_turns_with_offsets() -> None:
    file = read(
        "WEBVTT - Meeting\nKind: captions\n\nNOTE\nnot said\n\nSTYLE\n::cue {}\n\n"
        "intro\n00:01.000 --> 00:03.500\n<v Ana Lund>Hello <b>all</b> &amp; welcome\n\n"
        "00:03.500 --> 00:05.000\n<v Ana Lund>to the pier.\n\n"
        "01:00:05.000 --> 01:00:07.000\n<v Bo>Thanks.</v><v.loud Cy>Hi!</v>\n"
    )
    assert file.format == "captions"
    assert said(file) == [
        ("Ana Lund", "Hello all & welcome\nto the pier."),
        ("Bo", "Thanks."),
        ("Cy", "Hi!"),
    ]
    assert [turn.time.offset_s for turn in file.turns] == [1.0, 3605.0, 3605.0]
    assert not file.warnings
    merged = merge((), file.turns).turns
    assert [turn.id for turn in merged] == [turn.id for turn in file.turns]


def test_rolling_captions_are_taken_once_and_counted() -> None:
    file = read(
        "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nso we\n\n"
        "00:00:02.000 --> 00:00:03.000\nso we\n<00:00:02.100><c> went</c> out\n\n"
        "00:00:03.000 --> 00:00:04.000\n went out\nto sea\n\n"
        "00:00:04.000 --> 00:00:05.000\nto sea\n\n"
    )
    assert said(file) == [("unknown", "so we\n went out\nto sea")]
    assert "3 entries of rolling captions shown again" in file.warnings[0]


def test_a_line_that_is_truly_said_twice_stays() -> None:
    cues = ["No.", "No.", "Why not?", "It leaks.", "Where?", "Here.", "Ah."]
    text = "\n\n".join(
        f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{line}" for n, line in enumerate(cues, 1)
    )
    assert said(read(text)) == [("unknown", "\n".join(cues))]


def test_speakers_named_in_srt_text_are_found_and_notes_are_not() -> None:
    file = read(
        "1\n00:00:01,000 --> 00:00:02,000\nAna Lund: Good morning.\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\nBO: Morning.\n\n"
        "3\n00:00:05,000 --> 00:00:06,000\nReminder: bring boots.\n\n"
        "4\n00:00:07,000 --> 00:00:08,000\nAna Lund: Sure.\n"
    )
    assert said(file) == [
        ("Ana Lund", "Good morning."),
        ("BO", "Morning."),
        ("unknown", "Reminder: bring boots."),
        ("Ana Lund", "Sure."),
    ]


def test_odd_captions_lose_no_text_silently() -> None:
    file = read(
        "0:00:01.000,0:00:02.000\none\n\n"
        "0:00:02.000,0:00:03.000\n\n"
        "two, no time\n\n"
        "0:00:0x.000,0:00:05.000\nthree\n"
    )
    assert said(file) == [("unknown", "one"), ("unknown", "two, no time"), ("unknown", "three")]
    assert file.left_out == 1
    assert file.turns[2].time.invalid


# ---------------------------------------------------------------- what is no chat


@pytest.mark.parametrize("data", [b"", b"  \n", b"WEBVTT\n", b'{"speaker": "A", "text": " "}'])
def test_no_turns_is_an_error_of_its_own(data: bytes) -> None:
    with pytest.raises(EmptyInputError, match="chat has no turns"):
        read_turns(data, name="chat")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"Dear all, thanks.", "no known chat format"),
        (b'{"messages": [{"from": "x"', "not valid JSON"),
        (b'{"rows": [1, 2]}', "JSON of no known chat format"),
        (b"PK\x03\x04broken", "cannot be unpacked"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_no_chat_is_refused_with_the_reason(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_turns(data, name="chat")


def test_a_missing_file_and_an_unknown_format_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.jsonl cannot be read"):
        read_turns(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="no chat format 'irc'"):
        read("x", format="irc")


def test_a_format_that_is_asked_for_is_never_replaced_by_another() -> None:
    with pytest.raises(InputError, match="not JSON, so it cannot be read as 'telegram'"):
        read("31/12/2023, 21:05 - Ana: hi", format="telegram")
    assert read("31/12/2023, 21:05 - Ana: hi", format="whatsapp").format == "whatsapp"


def test_text_that_is_not_utf8_is_read_with_a_warning() -> None:
    file = read_turns('{"speaker": "Zoë", "text": "né"}'.encode("cp1252"), name="chat")
    assert said(file) == [("Zoë", "né")]
    assert "not valid UTF-8 (byte " in file.warnings[0]
