"""Messages and calls without an ID."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.serving.web.agents import agent_server

USER = {"id": "1", "role": "user", "content": "Hello!"}
CALL = {"id": "", "type": "function", "function": {"name": "add", "arguments": "{}"}}


@pytest.mark.parametrize(
    "messages",
    [
        [{**USER, "id": ""}],
        [{"id": "2", "role": "assistant", "content": "", "toolCalls": [CALL]}, USER],
        [{"id": "", "role": "assistant", "content": "Hi."}, USER],
        [
            {"id": "2", "role": "assistant", "content": "", "toolCalls": [{**CALL, "id": "c"}]},
            {"id": "", "role": "tool", "content": "3", "toolCallId": "c"},
            USER,
        ],
    ],
)
def test_a_message_or_a_call_without_an_id_is_refused(messages):
    with agent_server(["Hello."], user="ann") as agent:
        answer = post(agent.url, messages)

    assert answer.status_code == 400
    assert "an ID" in answer.json()["error"]["message"]


def post(url: str, messages: list[dict[str, Any]]) -> httpx.Response:
    empty = {"runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return httpx.post(f"{url}/ag-ui", json={"threadId": "t", "messages": messages, **empty})
