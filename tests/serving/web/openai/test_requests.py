"""Requests of both APIs, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agent_brain.memories import Attachment
from agent_brain.serving.web.openai.chat_request import ChatRequest
from agent_brain.serving.web.openai.errors import ApiError, api_error
from agent_brain.serving.web.openai.response_request import ResponseRequest
from agent_brain.serving.web.openai.translate import Shown
from agent_brain.serving.web.requests import HttpError

PIXEL = "data:image/png;base64,iVBORw0KGgo="
CALL = {"id": "c1", "type": "function", "function": {"name": "double", "arguments": '{"n": 2}'}}
HELLO = {"role": "user", "content": "Hello."}


def chat(*messages: Any, **fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"model": "m", "messages": messages or [HELLO], **fields})


def respond(said: Any = "Hello.", **fields: Any) -> ResponseRequest:
    return ResponseRequest.model_validate({"model": "m", "input": said, **fields})


def test_the_last_user_message_is_the_task():
    said = chat(
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "2?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "assistant", "content": "4."},
        {"role": "user", "content": "And 3?", "name": "ann"},
    ).conversation()

    assert (said.task.content, said.task.name) == ("And 3?", "ann")
    assert [message.role for message in said.history] == [
        "system",
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert said.history[3].tool_calls[0].args == {"n": 2}
    assert said.history[4].tool_call_id == "c1"


def test_instructions_after_the_task_come_before_it():
    said = chat(HELLO, {"role": "system", "content": "Be brief."}).conversation()

    assert said.task.content == "Hello."
    assert [message.content for message in said.history] == ["Be brief."]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"role": "system", "content": "Be brief."}], "last message"),
        ([HELLO, {"role": "assistant", "content": "Hi."}], "last message"),
        ([{"role": "user", "content": " "}], "empty"),
        ([{"role": "robot", "content": "Hi."}, HELLO], "Unknown role 'robot'"),
        ([{"role": "tool", "content": "4"}, HELLO], "tool_call_id"),
        ([{"role": "tool", "tool_call_id": "c1", "content": "4"}, HELLO], "does not follow"),
        ([{"role": "assistant", "tool_calls": [CALL]}, HELLO], "must follow for all tool calls"),
    ],
)
def test_messages_that_cannot_be_a_conversation_are_refused(messages, problem):
    with pytest.raises(ApiError, match=problem) as raised:
        chat(*messages).conversation()
    assert raised.value.status == 400
    assert raised.value.param is not None
    assert raised.value.param.startswith("messages")


def test_images_sounds_and_files_are_attachments():
    parts = [
        {"type": "text", "text": "What"},
        {"type": "text", "text": "is it?"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.jpg?x=1"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {
            "type": "file",
            "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"},
        },
    ]
    task = chat({"role": "user", "content": parts}).conversation().task

    assert task.content == "What\nis it?"
    assert [each.media_type for each in task.attachments] == [
        "image/png",
        "image/jpeg",
        "image/*",
        "audio/mpeg",
        "application/pdf",
    ]
    assert task.attachments[-1].name == "a.pdf"

    mixed = chat({"role": "user", "content": [parts[2], parts[0], parts[3], parts[1]]})
    order = [type(part) for part in mixed.conversation().task.parts()]
    assert order == [Attachment, str, Attachment, str]


def test_an_empty_file_is_refused_by_its_name():
    file = {"filename": "notes.txt", "file_data": "data:text/plain;base64,"}
    with pytest.raises(ApiError, match=r"The file 'notes.txt' is empty"):
        chat({"role": "user", "content": [{"type": "file", "file": file}]}).conversation()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url"},
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1/secret"}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_url", "image_url": {"url": "data:image/png,rubbish"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "flac"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "text", "text": 3},
        {"type": "video"},
        {},
    ],
)
def test_parts_that_cannot_be_read_are_refused_by_place(part):
    with pytest.raises(ApiError) as raised:
        chat({"role": "user", "content": [{"type": "text", "text": "Hi."}, part]}).conversation()
    assert raised.value.param == "messages[0].content[1]"


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"functions": [{"name": "f"}]},
        {"tool_choice": "required"},
        {"n": 2},
        {"stop": ["\n"]},
        {"logprobs": True},
        {"logit_bias": {"50256": -100}},
        {"modalities": ["text", "audio"]},
        {"web_search_options": {}},
    ],
)
def test_fields_that_would_silently_not_be_honoured_are_refused(fields):
    with pytest.raises(ApiError) as raised:
        chat(**fields).check()
    assert (raised.value.status, raised.value.code) == (400, "unsupported_parameter")
    assert raised.value.param in fields


def test_fields_without_an_effect_are_ignored():
    request = chat(
        tools=[],
        tool_choice="auto",
        n=1,
        response_format={"type": "text"},
        stop=None,
        temperature=0.2,
        top_p=1,
        seed=7,
        user="ann",
        logprobs=False,
        parallel_tool_calls=True,
        reasoning_effort="low",
        something_new={"a": 1},
    )
    request.check()

    assert (request.max_tokens, request.max_completion_tokens) == (None, None)


@pytest.mark.parametrize(
    "fields", [{"max_tokens": 0}, {"max_completion_tokens": -1}, {"messages": []}]
)
def test_values_out_of_range_are_refused(fields):
    with pytest.raises(ValidationError):
        chat(**fields)


def test_a_request_may_change_what_is_shown():
    asked = chat(agent_brain={"show_tools": True}).agent_brain

    assert asked.over(Shown()) == Shown(tools=True)
    assert asked.over(Shown(thoughts=True)) == Shown(tools=True, thoughts=True)
    assert chat().agent_brain.over(Shown(tools=True)) == Shown(tools=True)


@pytest.mark.parametrize(
    "error",
    [
        "Too large",
        {"type": "http_error", "code": 500, "message": "Too large"},
        {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "Too large"}]},
        {"type": "mcp_tool_execution_error", "content": "Too large"},
    ],
)
def test_a_call_that_failed_may_be_sent_back(error):
    call = {"type": "mcp_call", "id": "m1", "name": "double", "arguments": "{}", "error": error}
    assert respond([call]).read_input().messages[-1].content == "Too large"


def test_input_is_a_text_or_items():
    items = [
        {"role": "user", "content": "2 and 3?"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "double", "arguments": '{"n": 2}'},
        {"type": "function_call", "call_id": "c2", "name": "double", "arguments": '{"n": 3}'},
        {"type": "function_call_output", "call_id": "c1", "output": "4"},
        {"type": "function_call_output", "call_id": "c2", "output": "6"},
        {"type": "mcp_call", "id": "m1", "name": "double", "arguments": "{}", "output": "8"},
        {
            "type": "message",
            "role": "assistant",
            "status": "incomplete",
            "content": [{"type": "output_text", "text": "4, 6."}],
        },
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "And?"},
                {"type": "input_image", "image_url": PIXEL},
            ],
        },
    ]
    messages = respond(items).read_input().messages

    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert [call.id for call in messages[1].tool_calls] == ["c1", "c2"]
    assert [message.metadata.get("partial") for message in messages[-2:]] == [True, None]
    assert messages[-1].attachments[0].media_type == "image/png"
    assert respond("Hello.").read_input().messages[0].content == "Hello."


def test_approvals_are_decisions():
    found = respond(
        [
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_c1", "approve": True},
            {
                "type": "mcp_approval_response",
                "approval_request_id": "mcpr_c2",
                "approve": False,
                "reason": "no",
            },
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_c3", "approve": False},
        ]
    ).read_input()

    assert (found.approve, found.deny, found.messages) == (["c1"], {"c2": "no", "c3": ""}, [])


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{"type": "reasoning"}],
        [{"type": "item_reference", "id": "x"}],
        [{"type": "message", "role": "user", "content": 3}],
        [{"type": "message", "content": "Hi."}],
        [{"type": "function_call", "name": "f", "arguments": "{}"}],
        [{"type": "function_call_output", "output": "4"}],
        [{"type": "mcp_approval_response", "approval_request_id": "mcpr_1"}],
        [{}],
    ],
)
def test_items_that_cannot_be_read_are_refused(items):
    with pytest.raises(ApiError) as raised:
        respond(items).read_input()
    assert raised.value.status == 400


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "web_search"}]},
        {"background": True},
        {"max_tool_calls": 3},
        {"prompt": {"id": "p"}},
        {"previous_response_id": "resp_1", "conversation": "c"},
        {"previous_response_id": "resp_1", "store": False},
    ],
)
def test_what_a_response_cannot_honour_is_refused(fields):
    with pytest.raises(ApiError):
        respond(**fields).check()


def test_what_a_response_can_ignore_is_ignored():
    respond(
        tools=[],
        background=False,
        text={"format": {"type": "text"}, "verbosity": "low"},
        temperature=1,
        truncation="auto",
        include=["reasoning.encrypted_content"],
        store=True,
    ).check()


def test_a_conversation_is_named_by_its_id_or_an_object():
    assert respond(conversation="s1").conversation_id == "s1"
    assert respond(conversation={"id": "s1"}).conversation_id == "s1"
    assert respond().conversation_id is None


def test_errors_hide_secrets_and_what_is_not_known():
    from agent_brain.errors import LLMAuthenticationError, LLMRateLimitError

    limited = api_error(LLMRateLimitError("slow down, sk-abcdefghijklmnop"))
    assert (limited.status, limited.code) == (429, "rate_limit_exceeded")
    assert "abcdefgh" not in limited.message
    assert api_error(LLMAuthenticationError("no key")).status == 500
    assert api_error(KeyError("a detail")).message == "The run failed: KeyError"


def test_a_server_that_is_full_says_so_with_its_status():
    error = api_error(HttpError(503, "overloaded", "Try again later", {"retry-after": "1"}))
    assert (error.status, error.type, error.code) == (503, "server_error", "overloaded")
    assert error.headers == {"retry-after": "1"}
