"""Tools of MCP servers, from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.support import invoke

SERVER = Path(__file__).parents[1] / "tools" / "mcp" / "servers" / "plain.py"


def test_a_server_script_brings_its_tools():
    result = invoke("ask", "-m", "demo", "--mcp", str(SERVER), "add 3 and 4")
    assert (result.exit_code, result.stdout) == (0, "3 + 4 = 7.\n")


def test_a_config_file_brings_the_tools_of_its_servers(tmp_path):
    config = {"mcpServers": {"numbers": {"command": sys.executable, "args": [str(SERVER)]}}}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps(config))
    result = invoke("ask", "-m", "demo", "--mcp", str(path), "add 30 and 4")
    assert result.stdout == "30 + 4 = 34.\n"


def test_an_unknown_server_is_a_mistake():
    result = invoke("ask", "-m", "demo", "--mcp", "no_such_server.py", "hi")
    assert result.exit_code == 2
    assert "no file 'no_such_server.py'" in result.stderr


def test_the_memory_option_overrides_the_file(tmp_path):
    net = tmp_path / "net.toml"
    net.write_text('net = "react"\nmemory = "windowed"\n[memory_options]\nmax_messages = 4\n')
    result = invoke("mcp", str(net), "-m", "demo", "--memory", "no_such")
    assert (result.exit_code, "no memory named 'no_such'" in result.stderr) == (2, True)
