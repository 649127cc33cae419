"""The keyword options of a brain, of one run of it, and of a brain as a tool."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from agent_brain.common.suggest import did_you_mean
from agent_brain.errors import BrainUseError
from agent_brain.human_input import Approve, Deny
from agent_brain.limits import Limits
from agent_brain.memories.message import Message, Role
from agent_brain.states.hooks import Hook, ModelRequest
from agent_brain.states.models.llm import LLM
from agent_brain.stuck import StuckPolicy
from agent_brain.tools.base import Approval
from agent_brain.tools.toolset import ToolLike

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


class RunOptions(TypedDict, total=False):
    """Options of one run. None of them is stored: a run that is resumed takes them again.

    Attributes:
        llm: A model, or a LiteLLM model name, that makes all model calls of the states, those of
            inner nets too. Requests are prepared for the models of the net: one that calls tools
            natively cannot be replaced by one that does not.
        tools: More tools, besides those of the memory.
        limits: In place of the limits of the brain.
        prompt: Text that is added to the system prompts of the states.
        output_type: The type of the answer, as for the constructor of a brain, for a net that was
            given by name. ``Result.output`` is of this type.
    """

    llm: LLM | str | None
    tools: Iterable[ToolLike]
    limits: Limits | None
    prompt: str | None
    output_type: Any


class ResumeOptions(RunOptions, total=False):
    """The arguments of :meth:`Brain.resume`."""

    approve: Approve | None
    deny: Deny | None
    edit: Mapping[str, Mapping[str, Any]] | None
    input: object
    deps: object


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that no run has.

    Raises:
        BrainUseError: There are some, or one has a wrong value.
    """
    known = RunOptions.__annotations__
    for name in options.keys() - known.keys():
        raise BrainUseError(f"A run has no option {name}=.{did_you_mean(name, known)}")
    limits, prompt = options.get("limits"), options.get("prompt")
    if not (limits is None or isinstance(limits, Limits)):
        raise BrainUseError(f"limits={limits!r}: pass limits=Limits(…)")
    if not (prompt is None or isinstance(prompt, str)):
        raise BrainUseError(f"prompt={prompt!r:.100}: a text")


class OneRun(Hook):
    """Has another model make the calls of states, and adds to their system prompts.

    Args:
        llm: The model; None for those of the net.
        prompt: The text to add; None for none.
    """

    def __init__(self, llm: LLM | None, prompt: str | None) -> None:
        self.llm = llm
        self.prompt = prompt

    async def before_model_call(self, request: ModelRequest) -> ModelRequest | None:
        """Return the request to the other model, with the other prompt.

        Raises:
            BrainUseError: The model does not call tools, and the request offers some.
        """
        if request.purpose is not None:  # made by the memory
            return None
        changes: dict[str, Any] = {}
        if self.llm is not None:
            await self.llm.open()
            if request.tools and not self.llm.supports_tools:
                raise BrainUseError(
                    f"llm={self.llm.model!r} does not call tools natively, and state "
                    f"{request.state} offers some: give the net a model that is like it"
                )
            changes["llm"] = self.llm
        if self.prompt:
            changes["messages"] = _with_prompt([*request.messages], self.prompt)
        return dataclasses.replace(request, **changes)


def _with_prompt(messages: list[Message], prompt: str) -> list[Message]:
    if not messages or messages[0].role is not Role.SYSTEM:
        return [Message.system(prompt), *messages]
    text = f"{messages[0].content}\n\n{prompt}"
    return [messages[0].model_copy(update={"content": text}), *messages[1:]]
