"""Messages: what they are, what they refuse, how they travel."""

from __future__ import annotations

import copy
import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_brain.memories import Attachment, MemoryUseError, Message, Role
from agent_brain.memories.message import as_message, trusted
from agent_brain.tools import Action

CALL = Action(name="weather", args={"city": "Zürich"}, id="call_1")


def test_the_factories_make_the_four_roles():
    made = [
        Message.system("a"),
        Message.user("b"),
        Message.assistant("c", [CALL]),
        Message.tool("d", CALL),
    ]

    assert [(m.role, m.content) for m in made] == [
        (Role.SYSTEM, "a"),
        (Role.USER, "b"),
        (Role.ASSISTANT, "c"),
        (Role.TOOL, "d"),
    ]
    assert made[2].tool_calls == (CALL,)
    assert made[3].tool_call_id == "call_1"


def test_the_roles_are_four_different_ones():
    assert [role.value for role in Role] == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize(
    "make",
    [
        lambda **f: Message.system("x", **f),
        lambda **f: Message.user("x", **f),
        lambda **f: Message.assistant("x", **f),
        lambda **f: Message.tool("x", CALL, **f),
    ],
)
def test_factories_take_every_other_field(make):
    fields: dict[str, Any] = {
        "id": "1",
        "name": "Ann",
        "is_error": True,
        "attachments": (Attachment(media_type="image/png", url="https://x/y.png"),),
        "created_at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        "expires_at": dt.datetime(2027, 1, 1, tzinfo=dt.UTC),
        "cause_by": "test",
        "sent_from": "a",
        "send_to": ("b",),
        "pinned": True,
        "tags": {"t"},
        "metadata": {"k": 1},
    }
    message = make(**fields)

    assert {name: getattr(message, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("result", "content"), [("text", "text"), ({"a": 1}, '{"a":1}'), (None, "null"), (2.5, "2.5")]
)
def test_a_tool_message_has_its_result_as_text(result, content):
    assert Message.tool(result, CALL).content == content


def test_a_tool_message_is_named_for_its_tool():
    assert Message.tool("x", CALL).name == "weather"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"role": "tool"}, "Message.tool"),
        ({"role": "tool", "tool_call_id": ""}, "Message.tool"),
        ({"role": "user", "tool_call_id": "1"}, "tool_call_id belongs to tool messages"),
        ({"role": "user", "tool_calls": (CALL,)}, "tool_calls belong to assistant"),
        ({"role": "tool", "tool_call_id": "1", "tool_calls": (CALL,)}, "tool_calls belong"),
        ({"role": "act"}, "role"),
        ({"role": "user", "id": ""}, "id"),
        ({"role": "user", "content": None}, "content"),
        ({"role": "user", "content": ["x"]}, "content"),
        ({"role": "user", "colour": "red"}, "colour"),
        ({"role": "user", "metadata": {"a": object()}}, "metadata"),
        ({"role": "user", "created_at": dt.datetime(2026, 1, 1)}, "timezone"),  # noqa: DTZ001
        ({"role": "user", "expires_at": dt.datetime(2026, 1, 1)}, "timezone"),  # noqa: DTZ001
        ({"role": "user", "created_at": "2026-01-01T00:00:00"}, "timezone"),
        ({"role": "user", "created_at": "0001-01-01T00:00:00+14:00"}, "years 1 to 9999"),
        ({}, "role"),
    ],
)
def test_what_is_not_a_message_is_refused(fields, says):
    with pytest.raises(ValidationError, match=says):
        Message(**fields)


def test_ids_are_unique():
    assert len({Message.user("x").id for _ in range(1000)}) == 1000


def test_created_at_is_now_in_utc():
    before = dt.datetime.now(dt.UTC)
    message = Message.user("x")

    assert before <= message.created_at <= dt.datetime.now(dt.UTC)
    assert message.created_at.tzinfo is dt.UTC


def test_times_of_other_zones_are_kept_in_utc():
    zone = dt.timezone(dt.timedelta(hours=5, minutes=30))
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=zone)
    message = Message.user("x", created_at=noon, expires_at=noon)

    assert message.created_at == noon
    assert message.created_at.isoformat() == "2026-01-01T06:30:00+00:00"
    assert message.expires_at is not None
    assert message.expires_at.tzinfo is dt.UTC


def test_lone_surrogates_are_replaced():
    message = Message.user("a\ud800b", name="\udfff", metadata={"\ud800": ["\ud800"]})

    assert (message.content, message.name) == ("a\ufffdb", "\ufffd")
    assert message.metadata == {"\ufffd": ["\ufffd"]}
    assert json.loads(message.model_dump_json())["content"] == "a\ufffdb"


def test_a_message_cannot_be_changed():
    message = Message.user("x")

    with pytest.raises(ValidationError, match="frozen"):
        message.content = "y"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        del message.content


def test_metadata_is_not_shared_with_the_caller():
    metadata = {"a": {"b": [1]}}
    message = Message.user("x", metadata=metadata)
    metadata["a"]["b"].append(2)

    assert message.metadata == {"a": {"b": [1]}}


def test_metadata_is_not_shared_between_messages():
    assert Message.user("x").metadata is not Message.user("x").metadata


def test_a_deep_copy_is_the_same_object():
    message = Message.user("x")

    assert copy.deepcopy([message])[0] is message


def test_messages_are_hashable_by_id_and_equal_by_content():
    message = Message.user("x", id="1", created_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    same = Message.model_validate(message.model_dump())
    other = message.model_copy(update={"content": "y"})

    assert message == same
    assert message != other
    assert hash(message) == hash(same) == hash(other)
    assert len({message, same, other}) == 2


def test_plus_makes_lists():
    a, b, c = (Message.user(text) for text in "abc")

    assert a + b == [a, b]
    assert a + [b, c] == [a, b, c]  # noqa: RUF005
    assert [a, b] + c == [a, b, c]  # noqa: RUF005
    assert a + b + c == [a, b, c]


def test_plus_leaves_its_operands_alone():
    a, b = Message.user("a"), Message.user("b")
    before = [a]
    assert before + b == [a, b]
    assert b + before == [b, a]
    assert before == [a]


@pytest.mark.parametrize("other", [1, "x", None, ("x",)])
def test_plus_anything_else_is_a_type_error(other):
    with pytest.raises(TypeError):
        Message.user("a") + other
    with pytest.raises(TypeError):
        other + Message.user("a")


# -- JSON ------------------------------------------------------------------------------------------

TEXT = st.text(max_size=20)
NAMES = st.text(min_size=1, max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
MOMENTS = st.datetimes(
    min_value=dt.datetime(1900, 1, 1),  # noqa: DTZ001
    max_value=dt.datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.timezones(),
)
ACTIONS = st.builds(Action, name=TEXT, args=OBJECTS, id=NAMES, unparsed=st.none() | TEXT)
ATTACHMENTS = st.one_of(
    st.builds(Attachment, media_type=st.just("image/png"), url=NAMES, name=st.none() | TEXT),
    st.builds(Attachment, media_type=st.just("audio/wav"), data=NAMES, name=st.none() | TEXT),
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(Role))
    return Message(
        id=draw(NAMES),
        role=role,
        content=draw(TEXT),
        name=draw(st.none() | TEXT),
        tool_calls=draw(st.lists(ACTIONS, max_size=2)) if role is Role.ASSISTANT else (),  # type: ignore[arg-type]
        tool_call_id=draw(NAMES) if role is Role.TOOL else None,
        is_error=draw(st.booleans()),
        attachments=tuple(draw(st.lists(ATTACHMENTS, max_size=2))),
        created_at=draw(MOMENTS),
        expires_at=draw(st.none() | MOMENTS),
        cause_by=draw(st.none() | TEXT),
        sent_from=draw(st.none() | TEXT),
        send_to=tuple(draw(st.lists(TEXT, max_size=2))),
        pinned=draw(st.booleans()),
        tags=draw(st.frozensets(TEXT, max_size=3)),
        metadata=draw(OBJECTS),
    )


@given(messages())
def test_every_message_round_trips_through_json(message):
    again = Message.model_validate_json(message.model_dump_json())

    assert again == message
    assert again.created_at.tzinfo is dt.UTC


@given(messages())
def test_every_message_can_be_sent_as_strict_json(message):
    json.dumps(message.to_dict(), allow_nan=False, ensure_ascii=False).encode()


def test_tags_are_written_in_one_order_only():
    assert json.loads(Message.user("x", tags={"b", "c", "a"}).model_dump_json())["tags"] == [
        "a",
        "b",
        "c",
    ]


# -- the wire --------------------------------------------------------------------------------------


def test_to_dict_of_plain_messages():
    assert Message.system("Be brief.").to_dict() == {"role": "system", "content": "Be brief."}
    assert Message.user("Hi", name="Ann").to_dict() == {
        "role": "user",
        "content": "Hi",
        "name": "Ann",
    }


def test_to_dict_of_a_call_and_its_result():
    assert Message.assistant("", [CALL]).to_dict() == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Zürich"}'},
            }
        ],
    }
    assert Message.tool({"c": 3}, CALL).to_dict() == {
        "role": "tool",
        "content": '{"c":3}',
        "tool_call_id": "call_1",
    }


def test_to_dict_of_attachments():
    message = Message.user(
        "Look",
        attachments=[
            Attachment(media_type="image/png", url="https://x/y.png"),
            Attachment(media_type="image/jpeg", data="AAAA"),
            Attachment(media_type="audio/mpeg", data="BBBB"),
            Attachment(media_type="application/pdf", data="CCCC", name="a.pdf"),
            Attachment(media_type="application/pdf", url="https://x/b.pdf"),
        ],
    )

    assert message.to_dict()["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
        {
            "type": "file",
            "file": {"file_data": "data:application/pdf;base64,CCCC", "filename": "a.pdf"},
        },
        {"type": "file", "file": {"file_id": "https://x/b.pdf", "filename": "file"}},
    ]


def test_text_and_attachments_keep_their_order() -> None:
    before, after = (Attachment(media_type="image/png", url=f"https://x.org/{n}") for n in "ba")
    sound = Attachment(media_type="audio/wav", data="UklGRg==")
    said = Message.user(["Before:", before, "After:", after, "Which one?"], attachments=sound)
    assert said.content == "Before:\nAfter:\nWhich one?"
    for message in (said, Message.model_validate_json(said.model_dump_json())):
        parts = [part if isinstance(part, str) else part.url for part in message.parts()]
        assert parts == ["Before:", before.url, "After:", after.url, "Which one?", None]
        kinds = [part["type"] for part in message.to_dict()["content"]]
        assert kinds == ["text", "image_url", "text", "image_url", "text", "input_audio"]
    first = Message.user([before, "What is it?"])
    assert [type(part) for part in first.parts()] == [Attachment, str]
    assert Message.user(["What is it?", before]).attachments == (before,)  # as it always was
    far = Message.user("ab", attachments=[before.model_copy(update={"at": n}) for n in (9, 1, 1)])
    assert [part if isinstance(part, str) else part.at for part in far.parts()] == [
        "a",
        1,
        1,
        "b",
        9,
    ]
    with pytest.raises(MemoryUseError, match="texts and attachments, not 7"):
        Message.user(["x", 7])  # type: ignore[list-item]


def test_attachments_without_text_are_sent_alone():
    message = Message.user("", attachments=[Attachment(media_type="image/png", data="AAAA")])

    assert [part["type"] for part in message.to_dict()["content"]] == ["image_url"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"url": "https://x", "data": "AAAA"},
        {"url": ""},
        {"data": ""},
        {"url": "https://x", "media_type": "png"},
        {"url": "https://x", "media_type": ""},
        {"url": "https://x", "size": 1},
    ],
)
def test_what_is_not_an_attachment_is_refused(fields):
    with pytest.raises(ValidationError):
        Attachment(**{"media_type": "image/png", **fields})


# -- from what a caller has, and from what the library knows ---------------------------------------


def test_a_goal_may_be_text_a_message_or_the_fields_of_one():
    message = Message.user("x")

    assert as_message("x").role is Role.USER
    assert as_message(message) is message
    assert as_message({"role": "user", "content": "y"}).content == "y"


@pytest.mark.parametrize(
    ("role", "fields"),
    [
        (Role.ASSISTANT, {"tool_calls": (CALL,), "cause_by": "x"}),
        (Role.TOOL, {"tool_call_id": "1", "name": "weather", "is_error": True}),
        (Role.USER, {}),
    ],
)
def test_a_trusted_message_is_the_message_that_validation_would_have_made(role, fields):
    quick = trusted(role, "a\ud800", **fields)
    slow = Message(role=role, content="a\ud800", id=quick.id, created_at=quick.created_at, **fields)

    assert quick == slow
    assert quick.model_dump_json() == slow.model_dump_json()
    assert Message.model_validate_json(quick.model_dump_json()) == slow
    assert repr(quick) == repr(slow)
    assert quick.model_copy(update={"content": "y"}).content == "y"


def test_a_trusted_message_shares_nothing_with_the_next():
    first, second = trusted(Role.USER, "a"), trusted(Role.USER, "b")

    assert first.metadata is not second.metadata
    assert first.id != second.id
