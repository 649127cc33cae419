"""Which mistakes Pydantic AI finds before a run; the flow between agents is plain Python."""

import json
import sys
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent
from scripted import Scripted


def write(text: str) -> str:
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
            "edge": None,
            "unreachable": None,
            "loop": None,
            "tools": refused(lambda: Agent(Scripted([]), tools=[write, write])),
            "approval": None,
            "type": refused(lambda: Agent(Scripted([]), output_type=[str, object()])),
        }
    )
)
