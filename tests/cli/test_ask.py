"""``ask`` in this process: its output on stdout and stderr, and its exit codes."""

from __future__ import annotations

import json

from agent_brain.states import LLMServerError
from agent_brain.states.models.llm import Thought
from agent_brain.tools import Action
from tests.cli.support import in_order, invoke, json_lines

SCRIPTED = ("--net", "scripted", "--model", "demo")


def call(name, **args):
    return Action(name=name, args=args)


def test_the_answer_goes_to_stdout_and_the_steps_to_stderr(script, tools_file):
    script(
        [
            [Thought("I should\nadd."), "Let me see.", call("add", a=1, b=2)],
            ["It is", " 3."],
        ]
    )
    result = invoke("ask", *SCRIPTED, "-t", f"{tools_file}:add", "1 + 2?")
    assert result.exit_code == 0
    assert result.stdout == "It is 3.\n"
    assert in_order(
        result.stderr,
        [
            "  thinking  I should\n            add.\n",
            "  said      Let me see.\n",
            "  tool      add(a=1, b=2)\n",
            "adding\n",
            "  result    add: 3\n",
        ],
    )
    assert "\x1b" not in result.stderr


def test_without_a_model_the_demo_model_answers_and_a_note_says_so():
    result = invoke("ask", "what is 17 * 23?")
    assert result.exit_code == 0
    assert "391" in result.stdout
    assert result.stderr.startswith("Note: no model was chosen")
    assert "--model" in result.stderr


def test_a_net_with_a_model_of_its_own_needs_no_note(tmp_path):
    (tmp_path / "own.py").write_text(
        "from agent_brain import react\n"
        "from agent_brain.testing import ScriptedLLM\n"
        "net = react(ScriptedLLM(['Mine.']))\n"
    )
    result = invoke("ask", "--net", f"{tmp_path}/own.py:net", "Who?")
    assert (result.exit_code, result.stdout, "Note" in result.stderr) == (0, "Mine.\n", False)


def test_the_demo_model_that_was_asked_for_needs_no_note():
    assert "Note" not in invoke("ask", "-m", "demo", "what is 17 * 23?").stderr


def test_the_environment_names_the_model():
    result = invoke("ask", "what is 2 + 2?", env={"AGENT_BRAIN_MODEL": "demo"})
    assert (result.exit_code, "Note" in result.stderr) == (0, False)


def test_a_dash_reads_the_question_from_stdin():
    assert "391" in invoke("ask", "-", stdin="what is\n17 * 23?\n").stdout


def test_words_need_no_quotes():
    assert "391" in invoke("ask", "what", "is", "17", "*", "23?").stdout


def test_json_is_one_event_a_line_and_ends_with_the_end(script, tools_file):
    script([call("add", a=1, b=2), "3\u2028\x85\x9b31m"])
    result = invoke("ask", *SCRIPTED, "--json", "-t", f"{tools_file}:add", "1 + 2?")
    events = json_lines(result.stdout)
    assert [e["kind"] for e in events][:2] == ["run_started", "state_entered"]
    assert events[-1]["kind"] == "run_finished"
    assert events[-1]["answer"] == "3\u2028\x85\x9b31m"
    assert result.stdout.count("\n") == len(events)
    assert "\x9b" not in result.stdout
    assert result.stderr == "imported\nadding\n"


def test_a_failed_model_ends_with_1_and_a_message_without_traceback(script):
    script([["Half an ans", LLMServerError("It fell over", provider="p", model="m")]])
    result = invoke("ask", *SCRIPTED, "q")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "said      Half an ans\n" in result.stderr
    assert "Error: It fell over (provider 'p', model 'm', state 'REASONING')\n" in result.stderr
    assert "Traceback" not in result.stderr


def test_json_of_a_failed_run_ends_with_its_failure(script):
    script([LLMServerError("It fell over")])
    result = invoke("ask", *SCRIPTED, "--json", "q")
    assert result.exit_code == 1
    last = json_lines(result.stdout)[-1]
    assert (last["kind"], last["error"]["type"]) == ("run_failed", "LLMServerError")


def test_an_unexpected_error_says_how_to_get_its_traceback(script):
    script([ZeroDivisionError("oops")])
    result = invoke("ask", *SCRIPTED, "q")
    assert result.exit_code == 1
    assert "Error: ZeroDivisionError: oops\n" in result.stderr
    assert "Raised in state 'REASONING'" in result.stderr
    assert "--debug" in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback(script):
    script([ZeroDivisionError("oops")])
    result = invoke("ask", *SCRIPTED, "--debug", "q")
    assert (result.exit_code, "Traceback" in result.stderr) == (1, True)


def test_debug_shows_where_a_tool_raised(script, tools_file):
    script([call("crash", why="x"), "It crashed."])
    result = invoke("ask", *SCRIPTED, "--debug", "-t", f"{tools_file}:crash", "q")
    assert result.exit_code == 0
    assert "my_tools.py" in result.stderr


def test_tool_errors_are_reported_and_the_run_continues(script, tools_file):
    script([[call("refuse", why="x"), call("crash", why="x"), call("nothing")], "I could not."])
    options = ("-t", f"{tools_file}:refuse", "-t", f"{tools_file}:crash")
    result = invoke("ask", *SCRIPTED, *options, "q")
    assert (result.exit_code, result.stdout) == (0, "I could not.\n")
    for error in (  # in the order in which the calls end
        "  error     refuse: I would rather not\n",
        "  error     crash: Tool 'crash' raised ZeroDivisionError: boom\n",
        "  error     nothing: There is no tool 'nothing'",
    ):
        assert error in result.stderr
    assert "Traceback" not in result.stderr


def test_a_step_limit_ends_with_3_and_the_text_so_far(script, tools_file):
    script([["So far so good.", call("add", a=1, b=2)]])
    options = ("--max-steps", "2", "-t", f"{tools_file}:add")
    result = invoke("ask", *SCRIPTED, *options, "q")
    assert (result.exit_code, result.stdout) == (3, "So far so good.\n")
    assert "Stopped: the limit of steps was reached (--max-steps)" in result.stderr


def test_a_stuck_run_ends_with_3(script, tools_file):
    script([call("add", a=1, b=2)] * 9)
    result = invoke("ask", *SCRIPTED, "-t", f"{tools_file}:add", "q")
    assert (result.exit_code, result.stdout) == (3, "3\n")  # the last result: the best there is
    assert "  stuck     the same was done" in result.stderr
    assert "Stopped: the run repeated itself" in result.stderr


def test_a_timeout_ends_with_3_and_stops_the_tool(tools_file):
    options = ("--timeout", "240", "-t", f"{tools_file}:wait_long")
    result = invoke("ask", *options, "Wait long for 300 seconds")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "stopped waiting\n" in result.stderr
    assert "Stopped: the limit of time was reached (--timeout)" in result.stderr


def test_verbose_shows_states_and_usage():
    err = invoke("ask", "-v", "what is 2 + 2?").stderr
    assert in_order(err, ["state     REASONING", "tool  ", "state     ACTION", "result", "ANSWER"])
    assert "  end       done, 4 steps, 2 model calls" in err


def test_what_a_model_writes_is_never_markup_nor_control(script, tools_file):
    script([[Thought("[bold]\x1b[2Jthink"), call("shout", text="[red]\x07\x1b[31m")], "[blink]x"])
    result = invoke("ask", *SCRIPTED, "-t", f"{tools_file}:loud", "q")
    assert result.stdout == "[blink]x\n"
    assert "thinking  [bold]␛[2Jthink" in result.stderr
    assert "[RED]␇␛[31M" in result.stderr
    assert "\x1b" not in result.stderr


def test_long_arguments_and_results_are_cut(script, tools_file):
    script([call("shout", text="a" * 9000), "done"])
    result = invoke("ask", *SCRIPTED, "-t", f"{tools_file}:loud", "q")
    assert max(map(len, result.stderr.splitlines())) < 700
    assert "characters)" in result.stderr


def test_json_arguments_that_are_not_json_are_shown_as_such(script):
    script([Action(name="add", unparsed='{"a": 1, "b'), "Sorry."])
    result = invoke("ask", *SCRIPTED, "q")
    assert '  tool      add(not JSON: {"a": 1, "b)\n' in result.stderr


def test_the_json_option_keeps_lone_surrogates_readable(script):
    script(["a\ud800b"])
    result = invoke("ask", *SCRIPTED, "--json", "q")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [e["text"][0] for e in events if e["kind"] == "text_delta"] == ["a"]


def test_the_demo_runs_in_this_process_too():
    result = invoke("demo", "what is 17 * 23?")
    assert (result.exit_code, "391" in result.stdout) == (0, True)
