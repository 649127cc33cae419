"""``chat`` with piped input: every line is a question of one session."""

from __future__ import annotations

import json

from agent_brain.states import LLMServerError
from tests.cli.support import in_order, invoke, json_lines, run

SCRIPTED = ("--net", "scripted", "--model", "demo")


def test_the_memory_is_kept_between_turns(script):
    model = script(["Hello Ann.", "Ann."])
    result = invoke("chat", *SCRIPTED, stdin="I am Ann\n\nWho am I?\n")
    assert (result.exit_code, result.stdout) == (0, "Hello Ann.\nAnn.\n")
    seen = [message.content for message in model.calls[1].messages]
    assert seen[-3:] == ["I am Ann", "Hello Ann.", "Who am I?"]
    assert in_order(result.stderr, ["  you       I am Ann\n", "  you       Who am I?\n"])


def test_a_line_without_an_end_counts():
    assert "391" in invoke("chat", stdin="what is 17 * 23?").stdout


def test_exit_leaves_and_other_commands_explain(script):
    script(["never"])
    result = invoke("chat", *SCRIPTED, stdin="/help\n/what\n /EXIT \nhi\n")
    assert (result.exit_code, result.stdout) == (0, "")
    assert in_order(result.stderr, ["Ctrl-C stops", "There is no command /what"])


def test_a_question_may_begin_with_a_slash(script):
    script(["A file."])
    assert invoke("chat", *SCRIPTED, stdin="/etc/passwd is what?\n").stdout == "A file.\n"


def test_empty_input_asks_nothing():
    assert invoke("chat").exit_code == 0


def test_a_failed_turn_does_not_end_the_chat_but_shows_in_its_code(script):
    script([LLMServerError("It fell over"), "Better now."])
    result = invoke("chat", *SCRIPTED, stdin="one\ntwo\n")
    assert (result.exit_code, result.stdout) == (1, "Better now.\n")
    assert "Error: It fell over" in result.stderr


def test_json_has_the_events_of_all_turns(script):
    script(["One.", "Two."])
    events = json_lines(invoke("chat", *SCRIPTED, "--json", stdin="1\n2\n").stdout)
    ends = [event["answer"] for event in events if event["kind"] == "run_finished"]
    assert ends == ["One.", "Two."]
    assert len({event["run_id"] for event in events}) == 2


def test_it_learns_about_its_user_and_shows_it_in_the_next_chat(script, tmp_path):
    quote = {"text": "Lives in Porto", "slot": "home", "message": "m1", "quote": "I live in Porto"}
    place = ("--folder", str(tmp_path / "store"))
    script(["Nice.", json.dumps({"facts": [quote]})])
    chat = ("chat", "--net", "scripted", "--learn", *place)
    first = invoke(*chat, stdin="I live in Porto\n")
    assert first.stdout == "Nice.\n"
    assert "learned 1 fact from 2 messages, 0 replaced, 0 refused" in first.stderr
    shown = invoke("user", "list", *place, "--tenant", "local", "--json").stdout
    assert json.loads(shown)["text"] == "Lives in Porto"
    model = script(["In Porto.", LLMServerError("It fell over")])
    result = invoke(*chat, "--session", "other", stdin="Where do I live? I like tea.\n")
    assert "home: Lives in Porto" in model.calls[0].messages[-2].content
    assert (result.exit_code, result.stdout) == (0, "In Porto.\n")
    assert "this chat will be learned from the next time: It fell over" in result.stderr


def test_learning_needs_a_folder_and_a_model(tmp_path):
    for args, told in (((), "--folder"), (("--folder", str(tmp_path)), "--model")):
        done = invoke("chat", "--learn", *args, stdin="hi\n")
        assert (done.exit_code, told in done.stderr) == (2, True)


def test_input_that_is_not_utf8_is_read():
    result = run("chat", stdin=b"what is 2 + 2?\n\xff\xfe\n")
    assert result.returncode == 0
    assert "4" in result.stdout.splitlines()[0]
