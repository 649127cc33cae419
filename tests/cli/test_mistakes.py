"""A user's mistake ends with 2 and a message that helps, never with a traceback."""

from __future__ import annotations

import pytest

from tests.cli.support import invoke, run


@pytest.mark.parametrize(
    "args,message",
    [
        (["ask"], "Missing argument"),
        (["ask", " "], "The question is empty"),
        (["ask", "-"], "The question is empty"),
        (["aks", "hi"], "Did you mean 'ask'"),
        (["ask", "--modle", "x", "hi"], "--model"),
        (["ask", "--net", "raect", "hi"], "registered are: debate"),
        (["ask", "--memory", "elephant", "hi"], "registered are: auto, "),
        (["ask", "--max-steps", "0", "hi"], "0 is not in the range"),
        (["ask", "--max-steps", "many", "hi"], "--max-steps"),
        (["ask", "--timeout", "-1", "hi"], "-1.0 is not in the range"),
        (["ask", "--timeout", "inf", "hi"], "inf is not in the range"),
        (["ask", "--max-cost", "nan", "hi"], "a limit is a number above 0"),
        (["ask", "--tool", "add", "hi"], "write module:function"),
        (["ask", "--tool", ":add", "hi"], "write module:function"),
        (["ask", "--tool", "no_such_module:add", "hi"], "No module named 'no_such_module'"),
        (["ask", "--tool", "no_such.module:add", "hi"], "No module named 'no_such'"),
        (["ask", "--tool", "no_such_file.py:add", "hi"], "no file 'no_such_file.py'"),
        (["ask", "--tool", "json:dmp", "hi"], "Did you mean 'dump'"),
        (["ask", "--tool", "json:decoder", "hi"], "is not a tool"),
        (["chat", "--net", "raect"], "registered are: debate"),
        (["nets", "--draw", "raect"], "registered are: debate"),
        (["nets", "--format", "png"], "mermaid"),
    ],
)
def test_mistakes(args, message):
    result = invoke(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "attribute,message",
    [
        ("ad", "Did you mean 'add'?"),
        (
            "zzz",
            "Its functions and tools: add, brew_tea, crash, loud, pass_time, refuse, wait_long",
        ),
        ("number", "is not a tool"),
        ("Shelf.give", "there is no 'Shelf.give'"),
    ],
)
def test_a_name_that_is_not_a_tool_of_the_file(tools_file, attribute, message):
    result = invoke("ask", "-t", f"{tools_file}:{attribute}", "hi")
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_module_that_fails_is_reported_in_short_and_in_full_with_debug(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import no_such_dependency\n")
    short = invoke("ask", "-t", f"{path}:f", "hi")
    assert short.exit_code == 2
    assert "cannot be imported: ModuleNotFoundError" in short.stderr
    assert "--debug" in short.stderr
    assert "Traceback" not in short.stderr
    full = invoke("ask", "--debug", "-t", f"{path}:f", "hi")
    assert (full.exit_code, "broken.py" in full.stderr) == (2, True)
    assert "Traceback" in full.stderr


def test_a_script_that_leaves_when_imported_is_a_mistake(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("raise SystemExit(0)\n")
    result = invoke("ask", "-t", f"{path}:f", "hi")
    assert result.exit_code == 2
    assert "SystemExit" in result.stderr


def test_two_tools_of_one_name(tools_file, tmp_path):
    other = tmp_path / "other.py"
    other.write_text("def add(a: int) -> int:\n    'Add.'\n    return a\n")
    result = invoke("ask", "-t", f"{tools_file}:add", "-t", f"{other}:add", "hi")
    assert result.exit_code == 2
    assert "Two tools are named 'add'" in result.stderr


def test_a_tool_may_be_named_twice(tools_file):
    reference = f"{tools_file}:add"
    assert invoke("ask", "-t", reference, "-t", reference, "add 1 and 2").exit_code == 0


def test_tools_are_found_in_the_current_folder(tools_file):
    result = run("ask", "-t", "my_tools:Shelf.take", "add 1 and 2", cwd=tools_file.parent)
    assert result.returncode == 0
    assert "3" in result.stdout
    assert "imported" not in result.stdout
