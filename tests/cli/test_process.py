"""The command as a process: streams, signals and codes as a shell sees them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.support import COMMAND, PATIENCE, Process, environment, in_order, json_lines, run


def test_the_demo_shows_a_true_run_and_says_what_it_was():
    result = run("demo")
    assert result.returncode == 0
    assert result.stderr == ""
    assert in_order(
        result.stdout,
        [
            "net react",
            "> Which weekday is 24 December 2026",
            "state     REASONING",
            "thinking",
            'tool      date_math(operation="weekday", date="2026-12-24")',
            "tool      calculate(",
            "state     ACTION",
            "result    date_math: Thursday",
            "result    calculate: 36",
            "Thursday",
            "> Multiply that by 2.",
            "result    calculate: 72",
            "72",
            "rule-based program and no language model",
            "--model",
        ],
    )
    assert "\x1b" not in result.stdout


def test_the_demo_takes_a_question():
    result = run("demo", "How", "many", "letters are in strawberry?")
    assert result.returncode == 0
    assert "10" in result.stdout
    assert "Thursday" not in result.stdout


def test_version_and_help_load_nothing_heavy():
    code = (
        "import sys, agent_brain.cli\n"
        "sys.argv = ['agent-brain', '--help']\n"
        "try:\n    agent_brain.cli.main()\n"
        "finally:\n"
        "    print(sorted({'litellm', 'chromadb', 'agent_brain.brain'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE,
        check=True,
    )
    assert "Start with: agent-brain demo" in done.stdout
    assert done.stdout.endswith("[]\n")


def test_version():
    assert run("--version").stdout.startswith("agent-brain 0.")


@pytest.mark.parametrize("tool,asked", [("brew_tea", "Brew tea"), ("wait_long", "Wait long")])
def test_ctrl_c_cancels_the_run_and_ends_with_130(tools_file, tool, asked):
    marker = {"brew_tea": "brewing", "wait_long": "waiting"}[tool]
    with Process("ask", "-t", f"{tools_file}:{tool}", f"{asked} for 5 minutes or seconds") as ask:
        code, out, err = ask.interrupt_after(marker)
    assert (code, out) == (130, "")
    assert err.endswith("Cancelled\n")
    assert "Traceback" not in err
    assert ("stopped waiting" in err) == (tool == "wait_long")


def test_a_ctrl_c_that_wakes_nothing_by_itself_is_noticed(tmp_path):
    path = tmp_path / "deaf.py"
    path.write_text(
        "import signal, threading, time\n"
        "def hold_still(seconds: int) -> str:\n"
        "    'Hold still for some seconds.'\n"
        "    time.sleep(0.2)  # the event loop falls asleep\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
    )
    result = run("ask", "-t", f"{path}:hold_still", "Hold still for 5 seconds")
    assert result.returncode == 130
    assert result.stderr.endswith("Cancelled\n")


def test_a_tool_that_still_runs_at_the_end_is_named(tools_file):
    options = ("--timeout", "240", "-t", f"{tools_file}:brew_tea")
    result = run("ask", *options, "Brew tea for 5 minutes")
    assert result.returncode == 3
    assert result.stderr.endswith("Still running when the command ended: tool 'brew_tea'\n")


def test_json_of_a_cancelled_run_ends_with_its_end(tools_file):
    with Process("ask", "--json", "-t", f"{tools_file}:wait_long", "Wait long for 5 s") as ask:
        code, out, _ = ask.interrupt_after("waiting")
    assert code == 130
    last = json_lines(out)[-1]
    assert (last["kind"], last["stop_reason"]) == ("run_finished", "cancelled")


def test_ctrl_c_ends_a_chat_with_piped_input(tools_file):
    with Process("chat", stdin=True) as chat:
        code, out, _ = chat.interrupt_after("Note: ")
    assert (code, out) == (130, "")


def test_a_reader_that_leaves_ends_the_command_quietly():
    with subprocess.Popen(
        [*COMMAND, "ask", "--json", "what is 2 + 2?"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 141
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_an_encoding_that_lacks_a_character_does_not_make_it_fail(tools_file):
    options = ("-t", f"{tools_file}:loud")
    env = {"PYTHONIOENCODING": "ascii"}
    result = run("ask", *options, "shout with text = 'grüße'", env=env)
    assert result.returncode == 0
    assert "GR?" in result.stdout + result.stderr


@pytest.mark.parametrize(
    "module", ["agent_brain.cli.start", "click", "agent_brain.cli.app", "agent_brain.cli.compare"]
)
def test_ctrl_c_while_the_command_is_imported_shows_no_traceback(module):
    code = (
        "import runpy, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "sys.argv = ['agent-brain', 'compare', 'compare.toml']\n"
        "runpy.run_module('agent_brain', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
