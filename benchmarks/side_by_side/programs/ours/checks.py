"""Which mistakes Agent Brain finds before a run."""

import json
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

from agent_brain import Brain, Memory, Net, react, tool
from agent_brain.testing import ScriptedLLM

Step = Enum("Step", "A B")


async def to_a(memory: Memory) -> Literal[Step.A]:
    return Step.A


async def to_b(memory: Memory) -> Literal[Step.B]:
    return Step.B


async def end(memory: Memory) -> None:
    return None


@tool
def write(text: str) -> str:
    """Write."""
    return text


@tool(name="write")
def another(text: str) -> str:
    """Write."""
    return text


def refused(make: Callable[[], Any]) -> bool:
    try:
        make()
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return True
    return False


print(
    json.dumps(
        {
            "edge": refused(lambda: Net({Step.A: to_b})),
            "unreachable": refused(lambda: Net({Step.A: end, Step.B: end})),
            "loop": refused(lambda: Net({Step.A: to_b, Step.B: to_a})),
            "tools": refused(lambda: Brain(react(ScriptedLLM(), tools=[write, another]))),
            "approval": None,  # a tool says so itself
            "type": refused(lambda: react(ScriptedLLM(), output_type=object())),
        }
    )
)
