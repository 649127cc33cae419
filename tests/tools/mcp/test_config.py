"""Configurations: what is accepted and refused; values are never shown."""

from __future__ import annotations

import json
import sys

import pytest

from agent_brain.tools.mcp import McpConfigError
from agent_brain.tools.mcp.config import read_sources
from agent_brain.tools.mcp.spec import HttpServer, StdioServer


def read(**servers):
    return read_sources([{"mcpServers": servers}], environ={"TOKEN": "s3cr3t", "EMPTY": ""})


def problems_of(*sources, **servers):
    with pytest.raises(McpConfigError) as caught:
        read_sources(
            [*sources, *([{"mcpServers": servers}] if servers else [])], environ={"TOKEN": "s3cr3t"}
        )
    assert "s3cr3t" not in str(caught.value)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


def test_a_program_with_everything():
    [spec] = read(
        git={
            "command": "uvx",
            "args": ["mcp-server-git", "--token=${TOKEN}"],
            "env": {"KEY": "${TOKEN}", "LEVEL": "${LEVEL:-info}"},
            "cwd": "/srv",
            "timeout": 5,
            "startTimeout": 2.5,
            "approval": "destructive",
        }
    )

    assert spec == StdioServer(
        name="git",
        command="uvx",
        args=["mcp-server-git", "--token=s3cr3t"],
        env={"KEY": "s3cr3t", "LEVEL": "info"},
        cwd="/srv",
        timeout=5.0,
        start_timeout=2.5,
        approval="destructive",
        secrets=frozenset({"s3cr3t", "info"}),
    )


def test_an_address_with_everything():
    [spec] = read(
        far={
            "type": "http",
            "url": "https://example.org/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
            "timeout": None,
        }
    )

    assert isinstance(spec, HttpServer)
    assert (spec.url, spec.timeout) == ("https://example.org/mcp", None)
    assert spec.headers == {"Authorization": "Bearer s3cr3t"}


def test_keys_of_other_programs_do_no_harm_and_disabled_servers_are_left_out():
    [spec] = read(
        one={"command": "a", "autoApprove": ["x"], "folder": "${workspaceFolder}"},
        two={"command": "b", "disabled": True},
    )

    assert spec.name == "one"


def test_nothing_secret_is_in_a_repr():
    specs = read(
        a={"command": "/bin/${TOKEN}", "args": ["${TOKEN}"], "env": {"KEY": "plain-but-env"}},
        b={
            "url": "https://u:${TOKEN}@example.org/${TOKEN}?k=${TOKEN}",
            "headers": {"X": "hush-hush"},
        },
    )

    shown = repr(specs) + " ".join(spec.place for spec in specs)
    assert "s3cr3t" not in shown
    assert "plain-but-env" not in shown
    assert "hush-hush" not in shown
    assert "/bin/***" in shown
    assert "https://example.org/***" in shown


def test_a_variable_that_is_set_to_nothing_is_nothing_or_its_default():
    [spec] = read(a={"command": "x", "args": ["<${EMPTY}>", "<${EMPTY:-d}>", "$TOKEN", "${}"]})

    assert isinstance(spec, StdioServer)
    assert spec.args == ["<>", "<d>", "$TOKEN", "${}"]


def test_missing_variables_are_all_named():
    [problem] = problems_of(
        a={"command": "x", "args": ["${ONE}"], "env": {"K": "${TWO} ${ONE} ${TOKEN}"}}
    )

    assert problem.startswith("server 'a': environment variables that are not set: ONE, TWO. ")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("uvx", "it must be an object with command or url"),
        ({}, "give it either command (a program) or url (a running server)"),
        ({"command": "x", "url": "http://y"}, "give it either command"),
        ({"command": " "}, "command: String should have at least 1 character"),
        ({"command": ["x"]}, "command: Input should be a valid string"),
        ({"command": "x", "args": "y"}, "args: Input should be a valid list"),
        ({"command": "x", "args": [1]}, "args.0: Input should be a valid string"),
        ({"command": "x", "env": {"A": 1}}, "env.A: Input should be a valid string"),
        ({"command": "x", "cwd": 5}, "cwd: Input should be a valid string"),
        ({"command": "x", "headers": {}}, "headers goes with url, not with command"),
        ({"url": "http://y", "env": {}}, "env goes with command, not with url"),
        ({"url": "ftp://y"}, "url: It must begin with http:// or https:// and name a host"),
        ({"url": "http://"}, "url: It must begin with http:// or https:// and name a host"),
        ({"url": "http://y", "headers": {"A": None}}, "headers.A: Input should be a valid string"),
        ({"url": "http://y", "type": "sse"}, "type: Input should be 'stdio', 'http'"),
        ({"url": "http://y", "type": "stdio"}, "type 'stdio' goes with command, not url"),
        ({"url": "http://y", "type": "carrier pigeon"}, "type: Input should be 'stdio', 'http'"),
        ({"command": "x", "timeout": 0}, "timeout: Input should be greater than 0"),
        ({"command": "x", "timeout": True}, "timeout: Input should be a valid number"),
        (
            {"command": "x", "startTimeout": float("inf")},
            "startTimeout: Input should be a finite number",
        ),
        ({"command": "x", "approval": "maybe"}, "approval: Input should be 'never', 'destructive'"),
        ({"command": "x", "arg": []}, "there is no 'arg': did you mean 'args'?"),
    ],
)
def test_what_is_refused(entry, problem):
    [found] = problems_of(a=entry)

    assert found.startswith(f"server 'a': {problem}")


NO_SOURCE = (
    "'uvx mcp-server-git' is neither an http(s):// address nor the path of a .py, .js or .json "
    'file; a server that is a command goes into {"mcpServers": {name: {"command": …}}}'
)


def test_everything_that_is_wrong_is_said_at_once(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{\n oops }")
    listed = tmp_path / "list.json"
    listed.write_text("[]")
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"servers": {}}))

    found = problems_of(
        "ws://example.org",
        "uvx mcp-server-git",
        tmp_path / "gone.py",
        str(broken),
        str(listed),
        str(other),
        a={"command": "x", "args": "${GONE}", "timeout": -1},
        b={"url": "nowhere"},
    )

    assert [problem.partition(str(tmp_path))[0] for problem in found] == [
        "an address must begin with http:// or https:// and name a host, not with ws://…",
        NO_SOURCE,
        "there is no file '",
        "'",
        "'",
        "'",
        (
            "server 'a': environment variables that are not set: GONE. Set them, or give a default, "
            "as in "
            "${NAME:-default}"
        ),
        "server 'a': timeout: Input should be greater than 0",
        "server 'a': args: Input should be a valid list",
        "server 'b': url: It must begin with http:// or https:// and name a host",
    ]
    assert "is not JSON" in found[3]
    assert "in line 2" in found[3]
    assert "must hold an object" in found[4]
    assert "this one has 'servers'" in found[5]


def test_scripts_run_with_this_python_or_with_node(tmp_path, monkeypatch):
    (tmp_path / "a.py").touch()
    (tmp_path / "b.js").touch()
    node = tmp_path / "node"
    node.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    first, second = read_sources([tmp_path / "a.py", str(tmp_path / "b.js")])

    assert isinstance(first, StdioServer)
    assert isinstance(second, StdioServer)
    assert (first.name, first.command, first.args) == (
        "a",
        sys.executable,
        [str(tmp_path / "a.py")],
    )
    assert (second.name, second.command) == ("b", str(node))


def test_without_node_a_script_for_it_is_refused(tmp_path, monkeypatch):
    (tmp_path / "b.js").touch()
    monkeypatch.setenv("PATH", str(tmp_path))

    [problem] = problems_of(tmp_path / "b.js")

    assert "needs Node.js" in problem


def test_servers_of_one_name_are_numbered():
    specs = read_sources(
        ["http://example.org/a", "http://example.org:8000/b", "https://sub.example.org"]
    )

    assert [spec.name for spec in specs] == ["example_org", "example_org_2", "sub_example_org"]


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    import importlib.util

    import anyio

    from agent_brain import Brain
    from agent_brain.testing import ScriptedLLM

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    async def create():
        await Brain.create(tools=["http://example.org/mcp"], llm=ScriptedLLM([]))

    with pytest.raises(McpConfigError, match=r"pip install 'agent-brain\[mcp\]'"):
        anyio.run(create)
