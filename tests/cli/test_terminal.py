"""The command in a real terminal: order, colours, keys."""

from __future__ import annotations

import signal

import pytest

from tests.cli.support import Terminal, in_order, json_lines, run, without_styles
from tests.support.openai_server import OpenAIServer, Reply, Stall


def test_everything_is_shown_in_order_and_in_colours():
    with Terminal("ask", "what is 17 * 23?") as terminal:
        assert terminal.finish() == 0
        seen = terminal.seen
    assert in_order(
        without_styles(seen),
        [
            "Note: no model was chosen",
            "  thinking  I will call",
            '  tool      calculate(expression="17 * 23")\n',
            "  result    calculate: 391\n",
            "\n17 * 23 = 391.\n",
        ],
    )
    assert "\x1b[2;3m  thinking" in seen
    assert "\x1b[36m  tool" in seen
    assert "\x1b[32m  result" in seen
    assert "\n17 * 23 = 391.\n" in seen


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted_or_not_known(env):
    with Terminal("ask", "what is 17 * 23?", env=env) as terminal:
        assert terminal.finish() == 0
        assert "tool      calculate" in terminal.seen
        assert "\x1b" not in terminal.seen


def test_escape_sequences_of_others_do_nothing(tools_file):
    question = "shout with text = '\x1b[31mred\x1b]0;title\x07'"
    with Terminal("ask", "-t", f"{tools_file}:loud", question) as terminal:
        assert terminal.finish() == 0
        assert "␛[31MRED" in terminal.seen
        assert "\x07" not in terminal.seen
        assert "\x1b]" not in terminal.seen
        assert "\x1b[31M" not in terminal.seen


def test_ctrl_c_stops_an_answer_and_the_chat_continues(tools_file):
    with Terminal("chat", "-t", f"{tools_file}:wait_long") as terminal:
        terminal.expect("you> ")
        terminal.type("Wait long for 5 seconds\n")
        terminal.expect("waiting\n")
        terminal.type("\x03")
        terminal.expect("Cancelled; the chat continues")
        terminal.expect("you> ")
        terminal.type("what was my first question?\n")
        terminal.expect("Wait long for 5 seconds")
        terminal.expect("you> ")
        terminal.type("\x04")
        assert terminal.finish() == 0


@pytest.mark.parametrize(
    ("command", "number"),
    [
        pytest.param(["ask", "Count."], signal.SIGTERM, id="ask-15"),
        pytest.param(["chat"], signal.SIGINT, id="chat-2"),
        pytest.param(["ask", "Count."], signal.SIGINT, id="ask-2", marks=pytest.mark.thorough),
        pytest.param(["chat"], signal.SIGTERM, id="chat-15", marks=pytest.mark.thorough),
    ],
)
def test_what_was_said_is_kept_when_the_command_is_told_to_end(command, number, tmp_path):
    place = ("--net", "tests.cli.plain_model:net", "--folder", str(tmp_path))
    with OpenAIServer([Reply("One, two, ", Stall()), Reply("One, two, three.")]) as model:
        with Terminal(*command, *place, env={"OPENAI_BASE_URL": model.url}) as terminal:
            if command == ["chat"]:
                terminal.expect("you> ")
                terminal.type("Count.\n")
            terminal.expect("One, two, ")
            terminal.tell(number)
            if (command, number) == (["chat"], signal.SIGINT):
                terminal.expect("Cancelled; the chat continues")
                terminal.expect("you> ")  # a Ctrl-D that nobody waits for is lost
                terminal.type("\x04")
                assert terminal.finish() == 0
            else:
                assert terminal.finish() == 130
        model.release()
        (info,) = json_lines(run("sessions", "list", "--json", "--folder", str(tmp_path)).stdout)
        assert (info["status"], info["resumable"]) == ("ended", True)
        assert "One, two," in run("sessions", "show", "default", "--folder", str(tmp_path)).stdout
        again = run("resume", *place, env={"OPENAI_BASE_URL": model.url})
        assert (again.returncode, again.stdout) == (0, "One, two, three.\n")


def test_exit_leaves_the_chat():
    with Terminal("chat") as terminal:
        terminal.expect("you> ")
        terminal.type("/exit\n")
        assert terminal.finish() == 0


PAYS = '''
from agent_brain import tool


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"
'''


def test_ctrl_c_at_a_decision_leaves_the_run_waiting(tmp_path):
    (tmp_path / "pays.py").write_text(PAYS)
    kept = ("--model", "demo", "--tool", f"{tmp_path / 'pays.py'}:pay", "--folder", str(tmp_path))
    for command in (["ask", *kept, "call pay amount=3"], ["resume", *kept]):
        with Terminal(*command) as terminal:
            terminal.expect("later> ")
            terminal.type("\x03")
            terminal.expect("Cancelled")
            assert terminal.finish() == 130
    with Terminal("resume", *kept) as terminal:
        terminal.expect("later> ")
        terminal.type("yes\n")
        terminal.expect("paid 3")
        assert terminal.finish() == 0


SLOW = '''

from agent_brain import State


class Slow(State):
    """Say nothing until a file is there."""

    async def run(self, memory):
        import anyio

        while not await anyio.Path(GO).exists():
            await anyio.sleep(0.01)
        yield "Done at last."

    async def next_state(self, memory) -> None:
        return None


from enum import Enum


class Step(Enum):
    THINKING = "thinking"


net = {Step.THINKING: Slow()}
'''


def test_a_status_line_is_shown_and_removed(tmp_path):
    go = tmp_path / "go"
    (tmp_path / "slow.py").write_text(f"GO = {str(go)!r}\n{SLOW}")
    net = ("--model", "demo", "--net", f"{tmp_path / 'slow.py'}:net")
    with Terminal("ask", *net, "hi") as terminal:
        terminal.expect("  waiting   THINKING …")
        go.write_text("")
        terminal.expect("\r\x1b[K")
        terminal.expect("Done at last.\n")
        assert terminal.finish() == 0
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with Terminal("ask", *net, "hi", env=env) as terminal:
            assert terminal.finish() == 0
            assert "waiting" not in terminal.seen
    piped = run("ask", *net, "hi")
    assert (piped.stdout, piped.stderr) == ("Done at last.\n", "")
