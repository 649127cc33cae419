"""Agent Brain: LLM agents as finite state machines.

Small stateless states form a net, which a brain runs over a memory::

    from agent_brain import Brain, tool

    @tool
    def add(a: int, b: int) -> int:
        "Add two whole numbers."
        return a + b

    result = Brain("react", tools=[add]).run_sync("What is 17 + 25?")

Names are imported at first use: ``import agent_brain`` is cheap, and litellm and chromadb are
loaded only when something needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.brain import Brain as Brain
    from agent_brain.errors import AgentBrainError as AgentBrainError
    from agent_brain.errors import BrainDefinitionError as BrainDefinitionError
    from agent_brain.errors import BrainUseError as BrainUseError
    from agent_brain.errors import ResumeError as ResumeError
    from agent_brain.limits import Limits as Limits
    from agent_brain.limits import StopReason as StopReason
    from agent_brain.memories import AutoMemory as AutoMemory
    from agent_brain.memories import LayeredMemory as LayeredMemory
    from agent_brain.memories import Memory as Memory
    from agent_brain.memories import Message as Message
    from agent_brain.memories import MessagesMemory as MessagesMemory
    from agent_brain.memories import Role as Role
    from agent_brain.memories import SharedMemory as SharedMemory
    from agent_brain.memories import SQLiteJournal as SQLiteJournal
    from agent_brain.memories import SummaryMemory as SummaryMemory
    from agent_brain.memories import TodoMemory as TodoMemory
    from agent_brain.memories import ToolSearch as ToolSearch
    from agent_brain.memories import VectorMemory as VectorMemory
    from agent_brain.memories import WindowedMemory as WindowedMemory
    from agent_brain.memories import create_memory as create_memory
    from agent_brain.memories import register_memory as register_memory
    from agent_brain.nets import Net as Net
    from agent_brain.nets import ParallelState as ParallelState
    from agent_brain.nets import SubnetState as SubnetState
    from agent_brain.nets import create_net as create_net
    from agent_brain.nets import react as react
    from agent_brain.nets import register_net as register_net
    from agent_brain.options import RunOptions as RunOptions
    from agent_brain.recording.player import Difference as Difference
    from agent_brain.recording.replay import Replay as Replay
    from agent_brain.recording.run import ReplayError as ReplayError
    from agent_brain.result import Result as Result
    from agent_brain.run import Run as Run
    from agent_brain.states import LLM as LLM
    from agent_brain.states import ActionState as ActionState
    from agent_brain.states import AnswerState as AnswerState
    from agent_brain.states import FunctionState as FunctionState
    from agent_brain.states import LiteLLM as LiteLLM
    from agent_brain.states import ReasoningState as ReasoningState
    from agent_brain.states import State as State
    from agent_brain.stuck import StuckPolicy as StuckPolicy
    from agent_brain.teams.run import TeamResult as TeamResult
    from agent_brain.teams.run import TeamRun as TeamRun
    from agent_brain.teams.team import Team as Team
    from agent_brain.tools import Action as Action
    from agent_brain.tools import BaseTool as BaseTool
    from agent_brain.tools import ToolContext as ToolContext
    from agent_brain.tools import ToolError as ToolError
    from agent_brain.tools import tool as tool
    from agent_brain.usage.budgets import UsageBudget as UsageBudget
    from agent_brain.usage.ledger import UsageLedger as UsageLedger
