"""The keyword options that several functions of a Brain share, with their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from agent_brain.limits import Limits
from agent_brain.states.hooks import Hook
from agent_brain.states.models.llm import LLM
from agent_brain.stuck import StuckPolicy
from agent_brain.tools.base import Approval

if TYPE_CHECKING:
    from agent_brain.memories.user.user_memory import UserMemory


class BrainOptions(TypedDict, total=False):
    """Options of a Brain beside its net, memory, tools and output type; see :class:`Brain`."""

    llm: LLM | str | None
    limits: Limits
    stuck: StuckPolicy | None
    dry_run: bool
    on_uncertain: Literal["tell", "pause"]
    hooks: Iterable[Hook]
    trace: bool
    net_options: Mapping[str, Any] | None
    memory_options: Mapping[str, Any] | None
    user: UserMemory | None


class ToolOptions(TypedDict, total=False):
    """Options of a Brain as a tool; see :class:`~agent_brain.tools.BaseTool`."""

    requires_approval: Approval
    idempotent: bool
    max_result_tokens: int | None
