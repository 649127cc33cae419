from __future__ import annotations

from tests.cli.support import invoke


def test_nets_are_listed_with_what_they_are(script):
    script([])
    lines = invoke("nets").stdout.splitlines()
    assert lines == sorted(lines)
    assert any(line.startswith("react     ReAct") for line in lines)
    assert "scripted  What the test says." in lines


def test_a_net_is_drawn_for_mermaid():
    result = invoke("nets", "--draw", "React")
    assert result.exit_code == 0
    assert "stateDiagram-v2\n    [*] --> REASONING\n" in result.stdout


def test_a_net_is_drawn_for_graphviz():
    result = invoke("nets", "--draw", "react", "--format", "dot")
    assert result.stdout.startswith('digraph "react" {')
