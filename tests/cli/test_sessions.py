"""``agent-brain sessions`` lists what is stored, and what happened step by step."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from agent_brain import Brain, Message
from agent_brain.cli.sessions.tables import how_long_ago, local_time
from agent_brain.errors import LLMConnectionError
from agent_brain.memories import MessagesMemory, WindowedMemory
from agent_brain.memories.sessions import reading
from agent_brain.memories.store import store as store_module
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.cli.stored import store, summarizing
from tests.cli.support import Terminal, in_order, invoke, json_lines, run, without_styles


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "j.db"


def sessions(command: str, place: Path | str, *args: str):
    return invoke("sessions", command, "--journal", str(place), *args)


# list


def test_sessions_are_listed_with_those_written_to_last_first(place):
    store(place, "first")
    store(place, "second", tenant="acme", question="What is the matter")
    lines = sessions("list", place).stdout.splitlines()
    assert in_order(lines[0], ["session", "tenant", "title", "status", "state", "entries"])
    assert in_order(
        lines[1], ["second", "acme", "What is the matter 0", "ended", "ANSWER", " now ", "12"]
    )
    assert in_order(lines[2], ["first", "question 0", "ended"])


def test_the_list_is_limited_to_a_number_and_to_a_tenant(place):
    store(place, "first")
    store(place, "second", tenant="acme")
    for chosen in ("--limit", "1"), ("--tenant", "acme"):
        [found] = json_lines(sessions("list", place, *chosen, "--json").stdout)
        assert found["session"] == "second"
    assert sessions("list", place, "--tenant", "ac").stdout == ""


def test_the_list_as_json_has_all_that_is_known(place):
    store(place)
    [found] = json_lines(sessions("list", place, "--json").stdout)
    assert datetime.fromisoformat(found.pop("updated")) > datetime.now(UTC) - timedelta(minutes=5)
    assert datetime.fromisoformat(found.pop("created")).tzinfo is not None
    assert found == {
        "session": "ann",
        "tenant": None,
        "title": "question 0",
        "status": "ended",
        "state": "ANSWER",
        "entries": 12,
        "wake_at": None,
        "resumable": False,
    }


def test_a_run_that_ended_early_is_listed_and_shown_as_such(place):
    said = ["The beginning", LLMConnectionError("cut")]
    with pytest.raises(LLMConnectionError):
        store(place, script=[said])
    assert in_order(sessions("list", place).stdout.splitlines()[1], ["ann", "ended early"])
    [found] = json_lines(sessions("list", place, "--json").stdout)
    assert (found["status"], found["resumable"]) == ("ended", True)
    assert "The beginning\n" in sessions("show", place, "ann").stdout
    assert "[This answer was cut off]" in sessions("show", place, "ann").stdout


@pytest.mark.parametrize("name", ["memory.db", "journal.db"])
def test_the_folder_of_other_commands_is_a_place_too(tmp_path, name):
    store(tmp_path / name)
    assert "ann" in invoke("sessions", "list", "--folder", str(tmp_path)).stdout


def test_the_place_may_be_in_the_environment_and_a_folder_overrides_it(place, tmp_path):
    store(place)
    (tmp_path / "f").mkdir()
    store(tmp_path / "f" / "memory.db", "bob")
    known = {"AGENT_BRAIN_JOURNAL": str(place)}
    assert "ann" in invoke("sessions", "list", env=known).stdout
    assert "bob" in invoke("sessions", "list", "--folder", str(tmp_path / "f"), env=known).stdout


@pytest.mark.parametrize("width", [40, 80, 200])
def test_on_a_terminal_the_table_fits_and_titles_are_cut_first(place, width):
    store(place, "a-name-of-20-letters", question="long " * 30)
    with Terminal(
        "sessions", "list", "--journal", str(place), env={"COLUMNS": str(width)}
    ) as shown:
        assert shown.finish() == 0
        lines = without_styles(shown.seen).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == 2
    if width >= 80:
        title = "long" if width > 80 else "…"
        assert in_order(lines[1], ["a-name-of-20-letters", title, "ended", "ANSWER", "12"])


@pytest.mark.parametrize(
    "ago,text",
    [
        (0, "now"),
        (59, "now"),
        (60, "1 minute ago"),
        (7_300, "2 hours ago"),
        (86_400 * 3, "3 days ago"),
    ],
)
def test_times_are_told_as_how_long_ago(ago, text):
    assert how_long_ago(datetime.now(UTC) - timedelta(seconds=ago)) == text


def test_an_unknown_time_is_not_told():
    assert how_long_ago(None) == local_time(None) == ""


# steps


def test_steps_are_listed_with_what_the_run_had_spent(place):
    numbers = store(place)
    lines = sessions("steps", place, "ann").stdout.splitlines()
    assert [int(line.split()[0]) for line in lines[1:]] == numbers
    assert in_order(lines[2], ["1", "ACTION", "running", "110 tokens, $0.0100"])
    assert in_order(lines[-1], ["ANSWER", "ended: done", "220 tokens, $0.0200"])
    as_json = json_lines(sessions("steps", place, "ann", "--json").stdout)
    assert [step["number"] for step in as_json] == numbers


def test_a_session_without_a_run_has_no_steps(place):
    async def update() -> None:
        async with MessagesMemory(journal=place, session="ann") as memory:
            await memory.update([Message.user("hello")])

    anyio.run(update)
    found = sessions("steps", place, "ann")
    assert (found.stdout, found.stderr) == ("", "No steps are kept\n")
    assert in_order(sessions("show", place, "ann").stdout, ["Before the steps", "you", "hello"])


# show


def test_a_session_is_shown_step_by_step(place):
    store(place)
    assert in_order(
        sessions("show", place, "ann").stdout,
        [
            *(
                "session 'ann', 12 entries",
                "#3",
                "a run begins with REASONING",
                "you",
                "question 0",
            ),
            *("#5", "REASONING → ACTION", "110 tokens, $0.0100", "tool", "look(number=0)"),
            *("#8", "ACTION → REASONING", "result", "look: seen 0"),
            *("#10", "REASONING → ANSWER", "110 tokens, $0.0100", "said", "answer 0"),
            *("#12", "ended: done"),
        ],
    )


def test_the_tokens_of_a_run_are_not_subtracted_from_those_of_the_next(place):
    store(place, count=3)
    shown = sessions("show", place, "ann").stdout
    assert shown.count("110 tokens, $0.0100") == shown.count("tokens") == 6


def test_long_texts_are_cut_unless_all_is_wanted(place):
    long = "word " * 500
    store(place, script=[[Action(name="look", args={"number": 1, "why": long})], long])
    cut, full = sessions("show", place, "ann"), sessions("show", place, "ann", "--full")
    assert cut.stdout.count("word") < 200
    assert full.stdout.count("word") >= 1000


def test_the_steps_as_json_have_messages_and_what_they_cost(place):
    numbers = store(place)
    parts = json_lines(sessions("show", place, "ann", "--json").stdout)
    assert [part["step"] for part in parts] == numbers
    assert parts[1]["messages"][0]["tool_calls"][0]["name"] == "look"
    assert sum(part["spent"]["cost"] for part in parts) == pytest.approx(0.02)


def test_messages_before_the_steps_that_are_kept_are_shown_apart(place):
    store(place, count=60, history=3)
    shown = sessions("show", place, "ann").stdout
    assert in_order(shown, ["Before the steps that are kept", "question 0", "#", "answer 59"])
    first = shown.split("#", 2)[1]
    assert first.count("question") <= 1


def test_a_waiting_run_shows_what_it_waits_for(place):
    store(place, script=[[Action(name="send", args={"to": "Bob"})]])
    assert in_order(
        sessions("show", place, "ann").stdout, ["waits: approval", "approval", 'send(to="Bob")']
    )


KILLED = '''
import os, sys
import anyio
from agent_brain import Brain, MessagesMemory
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

def fire(number: int) -> str:
    """Fire."""
    os._exit(9)

async def main():
    memory = MessagesMemory(journal=sys.argv[1], session="ann")
    llm = ScriptedLLM([[Action(name="fire", args={"number": 7})]])
    await Brain("react", memory, [fire], llm=llm).run("go")

anyio.run(main)
'''


def test_a_call_that_may_have_happened_is_shown_after_the_last_step(place):
    assert subprocess.run([sys.executable, "-c", KILLED, place], check=False).returncode == 9
    assert in_order(
        sessions("show", place, "ann").stdout,
        ["After the last step", "begun", "fire(number=7): it may have happened"],
    )


def test_a_person_is_asked_about_a_call_that_may_have_happened(place):
    assert subprocess.run([sys.executable, "-c", KILLED, place], check=False).returncode == 9

    def fire(number: int) -> str:
        """Fire."""
        return ""

    async def resume() -> None:
        async with MessagesMemory(journal=place, session="ann") as memory:
            brain = Brain("react", memory, [fire], llm=ScriptedLLM(), on_uncertain="pause")
            await brain.resume()

    anyio.run(resume)
    assert in_order(
        sessions("show", place, "ann").stdout,
        ["waits: approval", "approval", "fire(number=7): it may have happened"],
    )


def test_the_memory_as_of_a_step_is_shown_with_the_state_of_the_run(place):
    _, call, *_ = store(place, count=2)
    shown = sessions("show", place, "ann", "--step", str(call)).stdout
    assert in_order(shown, ["question 0", "look(number=0)", "control", "status: running"])
    assert in_order(shown, ["state: ACTION", "next", "look(number=0)"])
    assert "question 1" not in shown
    [found] = json_lines(sessions("show", place, "ann", "--step", str(call), "--json").stdout)
    assert [message["role"] for message in found["messages"]] == ["user", "assistant"]
    assert found["control"]["state"] == "ACTION"


def test_messages_that_have_expired_since_are_shown_as_of_a_step(place, monkeypatch):
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)

    async def talk() -> int:
        async with MessagesMemory(journal=place, session="ann") as memory:
            await memory.update([Message.user("short-lived", expires_at=in_an_hour)])
            await memory.checkpoint()
            [step] = await memory.steps()
            return step.number

    number = anyio.run(talk)
    for module in (reading, store_module):
        monkeypatch.setattr(module, "utc_now", lambda: in_an_hour)
    assert anyio.run(MessagesMemory(journal=place, session="ann", readonly=True).context) == []
    assert "short-lived" in sessions("show", place, "ann", "--step", str(number)).stdout


@pytest.mark.parametrize("memory", [WindowedMemory, summarizing])
def test_a_session_of_any_memory_is_shown(place, memory):
    numbers = store(place, count=4, memory=memory, max_messages=3)
    assert in_order(sessions("show", place, "ann").stdout, ["question 0", "question 3"])
    shown = sessions("show", place, "ann", "--step", str(numbers[-1])).stdout
    assert "answer 3" in shown


# what the terminal gets


EVIL = "\x1b]0;owned\x07\x1b[2Jevil\x9b31m\u202e"


@pytest.mark.parametrize("command", ["list", "steps", "show", "step", "diff", "fork", "missing"])
def test_control_characters_of_what_is_stored_never_reach_the_terminal(place, command):
    step = store(place, EVIL, question=EVIL, script=[f"{EVIL}\u2028answer"])[-1]
    store(place, "bob")
    args = {
        "list": ["list"],
        "steps": ["steps", EVIL],
        "show": ["show", EVIL],
        "step": ["show", EVIL, "--step", str(step)],
        "diff": ["diff", EVIL, "bob"],
        "fork": ["fork", EVIL, "--step", str(step), "--to", EVIL + "2"],
        "missing": ["show", EVIL + "3"],
    }[command]
    found = sessions(args[0], place, *args[1:])
    assert found.exit_code in (0, 1, 2)
    assert not {*"\x1b\x07\x9b\u202e\u2028"} & {*found.output}
    assert "Traceback" not in found.output


@pytest.mark.parametrize("args", [["list", "--json"], ["show", EVIL, "--json"]])
def test_json_is_safe_for_a_terminal_and_has_the_characters_escaped(place, args):
    store(place, EVIL, question=EVIL, script=[EVIL])
    found = sessions(args[0], place, *args[1:]).stdout
    assert not {*"\x1b\x07\x9b"} & {*found}
    assert json.dumps(EVIL) in json.dumps(json_lines(found))


# as a process


def test_it_works_as_a_process_and_a_reader_may_leave(place):
    store(place, count=2)
    done = run("sessions", "show", "ann", "--journal", str(place))
    assert (done.returncode, done.stderr) == (0, "")
    assert "question 1" in done.stdout
