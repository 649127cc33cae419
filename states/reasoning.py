"""Reasoning: one model call that ends in tool calls or in the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from enum import Enum
from typing import Literal

from agent_brain.common.suggest import did_you_mean
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role, trusted
from agent_brain.states import prompts
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import ActionRequested, TextDelta
from agent_brain.states.model_call import ModelCall, Words
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_tools import (
    OUTPUT,
    OUTPUT_NAME,
    OutputTool,
    check_names,
    output_tools,
    read_output,
)
from agent_brain.states.output_types import OutputType, shape_of
from agent_brain.states.parsing import parse_reasoning
from agent_brain.states.work import StreamItem
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

Mode = Literal["auto", "native", "text"]


ASSISTANT = Role.ASSISTANT  # looking up an enum member is slow


class ReasoningState(State):
    """Ask the model what to do next (Yao et al. 2022, "ReAct", https://arxiv.org/abs/2210.03629).

    With a model that calls tools natively, text without tool calls is the answer, streamed as it
    arrives. In text mode, for models that do not, the model writes a thought and at most one JSON
    action, and none of it is shown to the reader. Output that cannot be used goes back to the model
    once with what is wrong. A tool call that was cut off is not run; its result is an error.

    Args:
        llm: The model.
        on_action: The next state if tool calls are requested.
        on_answer: The next state otherwise.
        prompt: The system prompt; the default depends on the mode.
        mode: ``"native"``, ``"text"``, or ``"auto"`` for what the model supports.
        as_thoughts: Stream the text as thoughts, as another state gives the answer.
        output_type: The type of the answer, as in :class:`AnswerState`. A model that calls tools
            natively is offered a tool that takes it, ``final_result``, or one for each member of a
            union of objects. An answer that is not valid goes back to the model once.
        sent_from: The sender of its messages, where several agents speak.

    Raises:
        LLMRefusalError: While running: the model refused without any text.
        MalformedOutputError: While running: the second response could not be used either.
    """

    def __init__(
        self,
        llm: LLM | str,
        *,
        on_action: Enum,
        on_answer: Enum,
        prompt: prompts.Prompt | None = None,
        mode: Mode = "auto",
        as_thoughts: bool = False,
        output_type: OutputType | None = None,
        sent_from: str | None = None,
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
        self.as_thoughts = as_thoughts
        self.output_type = output_type
        self.sent_from = sent_from
        self._outputs = {} if output_type is None else output_tools(shape_of(output_type))

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Call the model; stream and record its text and the tool calls that it requests."""
        await self.llm.open()
        native = self.llm.supports_tools if self.mode == "auto" else self.mode == "native"
        tools = tuple(memory.offered_tools().values())
        messages = await prompts.assemble(
            memory, self._prompt(native=native), tools, plain=not native
        )
        as_thoughts = self.as_thoughts or not native
        words: Words = "thought" if as_thoughts else "shown"
        if self._outputs and native:
            check_names(self._outputs, [tool.name for tool in tools])
            answering = _AgentCall(self.llm, messages, tools, self._outputs, words)
            yield answering
            if answering.answered:
                yield await self._answer(memory, answering)
                return
            call: ModelCall = answering
        else:
            check = _problem if native else _read_text
            offered = tools if native else ()
            call = ModelCall(self.llm, messages, tools=offered, words=words, acts=True, check=check)
            yield call
        text, actions = call.text, call.actions
        if not native and call.output is not None:
            text, actions = call.output.thought, [call.output.action]
            yield ActionRequested(call.output.action, call.id)
        await memory.update([self._message(text, actions, call, as_thoughts=as_thoughts)])
        memory.control.request_calls(actions)
        if call.finish is not None and call.cut is not None:
            _answer_cut_calls(memory, call.cut)

    def _prompt(self, *, native: bool) -> prompts.Prompt:
        """Return the system prompt; in text mode it always says how a tool is called."""
        if not native:
            if isinstance(self.prompt, str) and ("{tools}" in self.prompt or not self.prompt):
                return self.prompt
            return prompts.joined(self.prompt, prompts.REASONING_TEXT)
        prompt = prompts.REASONING if self.prompt is None else self.prompt
        if not self._outputs:
            return prompt
        names = " or ".join(self._outputs)
        return prompts.joined(prompt, prompts.OUTPUT_TOOL.replace("{outputs}", names))

    async def _answer(self, memory: Memory, call: _AgentCall) -> TextDelta:
        """Record the data in a call of an output tool; return its text for the reader."""
        memory.control.output = call.output
        text = shape_of(self.output_type).write(call.output)
        metadata = {**call.metadata(), OUTPUT: True}
        message = Message.assistant(
            text, cause_by=type(self).__name__, sent_from=self.sent_from, metadata=metadata
        )
        await memory.update([message])
        memory.control.request_calls([])
        return TextDelta(text, response_id=call.id)

    def _message(
        self, text: str, actions: list[Action], call: ModelCall, *, as_thoughts: bool
    ) -> Message:
        calls = tuple(actions)
        cause = type(self).__name__
        message = trusted(ASSISTANT, text, tool_calls=calls, cause_by=cause)
        if self.sent_from is not None:
            message = message.model_copy(update={"sent_from": self.sent_from})
        metadata = call.metadata()
        if as_thoughts and not calls:  # text that is not the answer yet
            metadata["thought"] = True
        return message.model_copy(update={"metadata": metadata}) if metadata else message

    async def next_state(self, memory: Memory) -> Enum:
        """Return ``on_action`` if tool calls are requested, else ``on_answer``."""
        return self.on_action if memory.control.next_actions else self.on_answer

    def targets(self) -> tuple[Enum, Enum]:
        """Return ``on_action`` and ``on_answer``."""
        return self.on_action, self.on_answer


class _AgentCall(ModelCall):
    """A call of a model that may answer by calling an output tool.

    Attributes:
        answered: Whether it has; ``output`` is the data then, and ``actions`` is empty.
    """

    answered = False

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        outputs: dict[str, OutputTool],
        words: Words,
    ) -> None:
        offered = (*tools, *outputs.values())
        check = _AgentCall._read
        super().__init__(llm, messages, tools=offered, words=words, acts=True, check=check)
        self._outputs = outputs
        self._names = {tool.name for tool in tools}

    def _requested(self, action: Action) -> Iterable[ActionRequested]:
        events = super()._requested(action)
        return () if action.name in self._outputs else events

    def _read(self) -> str | None:
        """Read the answer; with other calls beside it, these run and the model is asked again."""
        answers = [action for action in self.actions if action.name in self._outputs]
        others = [action for action in self.actions if action.name not in self._outputs]
        if unknown := [a.name for a in others if a.name not in self._names]:
            if unknown[0].startswith(OUTPUT_NAME):
                return f"there is no tool {unknown[0]!r}: call {' or '.join(self._outputs)}"
        if not answers:
            return _problem(self)
        if others:
            self.actions = others
            return None
        if self.cut is not None and answers[-1].unparsed is not None:
            return self.cut
        self.output, problem = read_output(answers, self._outputs)
        self.answered = problem is None
        return problem


def _problem(call: ModelCall) -> str | None:
    """Return why a response cannot be used, if it cannot."""
    if call.actions or not call.is_empty:
        return None
    empty = "it was empty: neither text nor a tool call"
    return f"{call.cut} before it said anything" if call.cut else empty


def _read_text(call: ModelCall) -> str | None:
    """Parse the thought and the action in the text; return what is wrong, if anything."""
    problem = _problem(call)
    if problem or call.actions:
        return problem
    parsed = parse_reasoning(call.text)
    if parsed.action is None and parsed.problem is None:
        return None
    if parsed.problem or call.cut:
        return call.cut or parsed.problem
    call.output = parsed
    return None


def _answer_cut_calls(memory: Memory, cut: str) -> None:
    """Answer the calls whose arguments are not whole, so that they are not run."""
    calls = memory.control.next_actions
    for action in calls:
        if action.unparsed is not None or (action is calls[-1] and not action.args):
            text = (
                f"Your call of {action.name!r} was not run: {cut} before its arguments were "
                "complete. Make the call again, with shorter arguments"
            )
            result = Message.tool(text, action, is_error=True, cause_by=ReasoningState.__name__)
            memory.control.finish_call(action, result)
