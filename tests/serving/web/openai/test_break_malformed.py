"""Malformed parts and items are refused as OpenAI refuses them, and are no failure of the server."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain.serving.web.openai.chat_request import ChatRequest
from agent_brain.serving.web.openai.errors import ApiError
from agent_brain.serving.web.openai.response_request import ResponseRequest

PARTS: list[Any] = [
    {"type": ["text"]},
    {"type": {}},
    {"type": "input_audio", "input_audio": {"format": ["mp3"], "data": "AA=="}},
    {"type": "image_url", "image_url": {"url": "https://["}},
    {"type": "input_image", "image_url": "https://[x"},
]


@pytest.mark.parametrize("part", PARTS)
def test_a_malformed_part_of_a_chat_is_refused(part):
    said = [{"role": "user", "content": [part]}]
    request = ChatRequest.model_validate({"model": "m", "messages": said})

    with pytest.raises(ApiError) as raised:
        request.conversation()

    assert raised.value.status == 400
    assert raised.value.param == "messages[0].content[0]"


@pytest.mark.parametrize("part", [*PARTS, "text", 1, None])
def test_a_malformed_part_of_an_input_is_refused(part):
    said = [{"role": "user", "content": [part]}]
    request = ResponseRequest.model_validate({"model": "m", "input": said})

    with pytest.raises(ApiError) as raised:
        request.read_input()

    assert raised.value.status == 400
    assert raised.value.param == "input[0].content[0]"


@pytest.mark.parametrize("call_id", [1, ["c"], {"c": 1}])
def test_the_id_of_a_call_may_be_anything_as_long_as_it_fits(call_id):
    call = {"type": "function_call", "call_id": call_id, "name": "double", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": call_id, "output": "4"}
    request = ResponseRequest.model_validate({"model": "m", "input": [call, output]})

    called, answered = request.read_input().messages

    assert answered.tool_call_id == called.tool_calls[0].id
