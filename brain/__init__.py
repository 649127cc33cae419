"""Agent Brain: LLM agents as finite state machines.

Small stateless states, wired into a net, driven by a brain over a memory::

    from agent_brain import Brain, tool

    @tool
    def add(a: int, b: int) -> int:
        "Add two whole numbers."
        return a + b

    result = Brain("react", tools=[add]).run_sync("What is 17 + 25?")

Names are imported when they are first used: ``import agent_brain`` itself is cheap, and neither
litellm nor chromadb is loaded before something needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_brain.brain import (
        Brain,
    )
    from agent_brain.errors import (
        AgentBrainError,
        BrainDefinitionError,
        BrainUseError,
        ResumeError,
    )
    from agent_brain.limits import (
        Limits,
        StopReason,
    )
    from agent_brain.memories import (
        LayeredMemory,
        Memory,
        Message,
        MessagesMemory,
        Role,
        SQLiteJournal,
        SummaryMemory,
        TodoMemory,
        VectorMemory,
        WindowedMemory,
        create_memory,
        register_memory,
    )
    from agent_brain.nets import (
        Net,
        ParallelState,
        SubnetState,
        create_net,
        react,
        register_net,
    )
    from agent_brain.result import (
        Result,
    )
    from agent_brain.run import (
        Run,
    )
    from agent_brain.states import (
        LLM,
        ActionState,
        AnswerState,
        FunctionState,
        LiteLLM,
        ReasoningState,
        State,
    )
    from agent_brain.stuck import (
        StuckPolicy,
    )
    from agent_brain.tools import (
        Action,
        BaseTool,
        ToolError,
        tool,
    )

_HOMES = {
    "Action": "tools",
    "ActionState": "states",
    "AgentBrainError": "errors",
    "AnswerState": "states",
    "BaseTool": "tools",
    "Brain": "brain",
    "BrainDefinitionError": "errors",
    "BrainUseError": "errors",
    "FunctionState": "states",
    "LLM": "states",
    "LayeredMemory": "memories",
    "Limits": "limits",
    "LiteLLM": "states",
    "Memory": "memories",
    "Message": "memories",
    "MessagesMemory": "memories",
    "Net": "nets",
    "ParallelState": "nets",
    "ReasoningState": "states",
    "Result": "result",
    "ResumeError": "errors",
    "Role": "memories",
    "Run": "run",
    "SQLiteJournal": "memories",
    "State": "states",
    "StopReason": "limits",
    "StuckPolicy": "stuck",
    "SubnetState": "nets",
    "SummaryMemory": "memories",
    "TodoMemory": "memories",
    "ToolError": "tools",
    "VectorMemory": "memories",
    "WindowedMemory": "memories",
    "create_memory": "memories",
    "create_net": "nets",
    "react": "nets",
    "register_memory": "memories",
    "register_net": "nets",
    "tool": "tools",
}

__all__ = [
    "LLM",
    "Action",
    "ActionState",
    "AgentBrainError",
    "AnswerState",
    "BaseTool",
    "Brain",
    "BrainDefinitionError",
    "BrainUseError",
    "FunctionState",
    "LayeredMemory",
    "Limits",
    "LiteLLM",
    "Memory",
    "Message",
    "MessagesMemory",
    "Net",
    "ParallelState",
    "ReasoningState",
    "Result",
    "ResumeError",
    "Role",
    "Run",
    "SQLiteJournal",
    "State",
    "StopReason",
    "StuckPolicy",
    "SubnetState",
    "SummaryMemory",
    "TodoMemory",
    "ToolError",
    "VectorMemory",
    "WindowedMemory",
    "create_memory",
    "create_net",
    "react",
    "register_memory",
    "register_net",
    "tool",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"agent_brain.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
