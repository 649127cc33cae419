"""``ask`` with real litellm and real sockets, against a server that plays a script."""

from __future__ import annotations

import anyio
import pytest

from tests.cli.support import Terminal, in_order, invoke, json_lines
from tests.support.openai_server import (
    Cut,
    Failure,
    OpenAIServer,
    Reasoning,
    Reply,
    Stall,
    tool_calls,
)

KEY = "sk-very-secret-key-0123456789"


def ask(server, *args, variable="OPENAI_BASE_URL"):
    env = {variable: server.url, "OPENAI_API_KEY": KEY}
    return invoke("ask", "--model", "openai/x", *args, env=env)


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_text(variable):
    with OpenAIServer([Reply(Reasoning("Hm"), Reasoning("m."), "Hel", "lo")]) as server:
        result = ask(server, "hi", variable=variable)
    assert (result.exit_code, result.stdout) == (0, "Hello\n")
    assert result.stderr == "  thinking  Hmm.\n"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_tool_calls_in_many_deltas(tools_file):
    calls = tool_calls(("c1", "add", '{"a": 1, "b": 2}'), ("c2", "add", '{"a": "x", "b": 2}'))
    with OpenAIServer([Reply("Let me add.", *calls), Reply("It is 3.")]) as server:
        result = ask(server, "-v", "-t", f"{tools_file}:add", "1 + 2?")
    assert (result.exit_code, result.stdout) == (0, "It is 3.\n")
    assert in_order(
        result.stderr,
        [
            "said      Let me add.",
            "tool      add(a=1, b=2)",
            'tool      add(a="x", b=2)',
            "2 model calls, 36 tokens",
        ],
    )
    assert "result    add: 3" in result.stderr
    assert "error     add: Invalid arguments" in result.stderr


def test_arguments_that_are_not_json_go_back_to_the_model(tools_file):
    calls = tool_calls(("c1", "add", '{"a": 1, "b": oops'))
    with OpenAIServer([Reply(*calls), Reply("Sorry.")]) as server:
        result = ask(server, "-t", f"{tools_file}:add", "1 + 2?")
    assert (result.exit_code, result.stdout) == (0, "Sorry.\n")
    assert "error     add: " in result.stderr
    assert server.requests[1].body["messages"][-1]["role"] == "tool"


def test_a_key_that_is_not_accepted_fails_and_is_not_shown():
    with OpenAIServer([Failure(401, f"Incorrect API key provided: {KEY}")]) as server:
        result = ask(server, "--debug", "hi")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "provider 'openai', model 'openai/x'" in result.stderr
    assert "OPENAI_API_KEY is set, but was not accepted" in result.stderr
    assert KEY not in result.stderr
    assert len(server.requests) == 1


def test_a_missing_key():
    result = invoke("ask", "--model", "openai/x", "hi", env={"OPENAI_API_KEY": ""})
    assert (result.exit_code, result.stdout) == (1, "")
    assert "export OPENAI_API_KEY=…" in result.stderr


def test_a_model_without_a_provider():
    result = invoke("ask", "--model", "no-such-model", "hi")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "write PROVIDER/MODEL, as 'openai/gpt-4.1'" in result.stderr


def test_a_rate_limit_passes():
    with OpenAIServer([Failure(429, headers={"Retry-After": "0"}), Reply("Hello")]) as server:
        result = ask(server, "hi")
    assert (result.exit_code, result.stdout) == (0, "Hello\n")
    assert len(server.requests) == 2


def test_a_server_that_keeps_failing():
    failure = Failure(500, headers={"Retry-After": "0"})
    with OpenAIServer([failure] * 9) as server:
        result = ask(server, "hi")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"tried {len(server.requests)} times" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_connection_cut_half_way(option):
    with OpenAIServer([Reply("Half an ", Cut())]) as server:
        result = ask(server, *option, "hi")
    assert result.exit_code == 1
    assert "Error: The connection to the provider failed or broke" in result.stderr
    if option:
        assert json_lines(result.stdout)[-1]["kind"] == "run_failed"
    else:
        assert result.stdout == ""
        assert "said      Half an" in result.stderr


def test_an_answer_that_its_model_did_not_finish_has_a_note():
    with OpenAIServer([Reply("Half an", finish="length")]) as server:
        result = ask(server, "hi")
    assert (result.exit_code, result.stdout) == (0, "Half an\n")
    assert "Note: the answer was cut off at the limit of output tokens" in result.stderr


def test_a_stall_ends_with_the_timeout_and_keeps_what_came():
    with OpenAIServer([Reply("Half an ", Stall())]) as server:
        result = ask(server, "--timeout", "5", "hi")
    assert (result.exit_code, result.stdout) == (3, "Half an \n")
    assert "(--timeout)" in result.stderr


@pytest.mark.thorough
def test_a_terminal_shows_text_as_it_comes_and_ctrl_c_closes_the_connection():
    with OpenAIServer([Reply("Half an ", Stall())]) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        with Terminal("ask", "--model", "openai/x", "hi", env=env) as terminal:
            terminal.expect("Half an ")
            terminal.type("\x03")
            terminal.expect("\nCancelled\n")
            assert terminal.finish() == 130
        anyio.run(server.wait_until_left)
