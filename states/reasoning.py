"""Thinking: one model call that ends in tool calls or in the closing words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Literal

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role, trusted
from agent_brain.states import prompts
from agent_brain.states.asking import correction
from agent_brain.states.base import State
from agent_brain.states.errors import MalformedOutputError, StateDefinitionError
from agent_brain.states.events import ActionRequested, Event, TextDelta, UsageReported
from agent_brain.states.llm import LLM, Thought
from agent_brain.states.models import as_llm
from agent_brain.states.parsing import parse_reasoning
from agent_brain.states.streams import closing
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.suggest import did_you_mean

Mode = Literal["auto", "native", "text"]


class ReasoningState(State):
    """Ask the model what to do next (Yao et al. 2022, "ReAct", https://arxiv.org/abs/2210.03629).

    With a model that calls tools natively, text without tool calls is the answer, streamed as it
    comes. In the text mode, for models that do not, the model writes a thought and at most one JSON
    action, and none of it is meant for the reader. Output that cannot be used goes back to the
    model once with what was wrong.

    Args:
        llm: The model.
        on_action: Where to go when tools are to be called.
        on_answer: Where to go when the model has none to call.
        prompt: What the model is told first; the default depends on the mode.
        mode: ``"native"``, ``"text"``, or ``"auto"`` for what the model supports.

    Raises:
        MalformedOutputError: While running: the model's second try was no better.
    """

    def __init__(
        self,
        llm: LLM | str,
        *,
        on_action: Enum,
        on_answer: Enum,
        prompt: prompts.Prompt | None = None,
        mode: Mode = "auto",
    ) -> None:
        if mode not in ("auto", "native", "text"):
            raise StateDefinitionError(
                f"mode={mode!r}: use 'auto', 'native' or 'text'."
                f"{did_you_mean(mode, ('auto', 'native', 'text'))}"
            )
        self.llm = as_llm(llm)
        self.on_action = on_action
        self.on_answer = on_answer
        self.prompt = prompt
        self.mode: Mode = mode

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        """Stream the model's words; record them, and the calls in them, when they are whole."""
        await self.llm.open()
        native = is_native(self.mode, self.llm)
        turn = _NativeTurn() if native else _TextTurn()
        tools = tuple(memory.offered_tools().values())
        prompt = self.prompt
        if prompt is None:
            prompt = prompts.REASONING if native else prompts.REASONING_TEXT
        messages = await prompts.assemble(memory, prompt, tools, plain=not native)
        for attempt in (1, 2):
            stream = self.llm.stream(messages, tools=tools if native else ())
            async with closing(stream) as items:
                async for item in items:
                    yield turn.see(item)
            for event in turn.end():
                yield event
            if turn.problem is None:
                break
            if attempt == 2:
                raise MalformedOutputError(
                    f"The model's output could not be used: {turn.problem}",
                    output=turn.text,
                    model=self.llm.model,
                )
            messages = [*messages, *correction(turn.text, turn.problem)]
            turn = type(turn)()
        await memory.update([turn.message(cause_by=type(self).__name__)])
        memory.next_actions = turn.actions

    async def next_state(self, memory: Memory) -> Enum:
        """``on_action`` if tools are to be called, else ``on_answer``."""
        return self.on_action if memory.control.next_actions else self.on_answer


def is_native(mode: Mode, llm: LLM) -> bool:
    """Whether tools are called natively in this mode with this model."""
    return llm.supports_tools if mode == "auto" else mode == "native"


class _NativeTurn:
    """What one call of a model that asks for tools natively says."""

    def __init__(self) -> None:
        self.text = ""
        self.actions: list[Action] = []
        self.problem: str | None = None
        self._parts: list[str] = []

    def see(self, item: str | Action | Usage) -> str | Event:
        """Take in a piece, and say how it is to be streamed."""
        if isinstance(item, str):
            if type(item) is not Thought:
                self._parts.append(item)
            return item
        if isinstance(item, Action):
            if any(item.id == other.id for other in self.actions):  # some servers number badly
                item = Action(name=item.name, args=item.args, unparsed=item.unparsed)
            self.actions.append(item)
            return ActionRequested(item)
        return UsageReported(item)

    def message(self, cause_by: str) -> Message:
        """What is recorded of it."""
        return trusted(Role.ASSISTANT, self.text, tool_calls=tuple(self.actions), cause_by=cause_by)

    def end(self) -> Sequence[Event]:
        """Take stock when the call is over; what there is to stream only now."""
        self.text = "".join(self._parts)
        if not self.actions and not self.text.strip():
            self.problem = "it was empty: neither text nor a tool call"
        return ()


class _TextTurn(_NativeTurn):
    """What one call of a model says that writes its actions as JSON into its text."""

    def see(self, item: str | Action | Usage) -> str | Event:
        """As for native calls, but none of the text is meant for the reader."""
        seen = super().see(item)
        return TextDelta(seen, thought=True) if isinstance(seen, str) else seen

    def message(self, cause_by: str) -> Message:
        """As for native calls; closing words are marked as a thought: they are no answer yet."""
        if self.actions:
            return super().message(cause_by)
        return Message.assistant(self.text, cause_by=cause_by, metadata={"thought": True})

    def end(self) -> Sequence[Event]:
        """Read the thought and the action out of the text."""
        super().end()
        parsed = parse_reasoning(self.text)
        self.problem = self.problem or parsed.problem
        if parsed.action is None:
            return ()
        self.text = parsed.thought
        self.actions = [parsed.action]
        return (ActionRequested(parsed.action),)
