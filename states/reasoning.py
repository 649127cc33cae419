"""Reasoning: one model call that ends in tool calls or in the answer.

In text mode the call stands in the text. Only what ends the response is a call, and only in a place
where nothing is quoted: a call in a sentence, in a list, in a quotation or between other text is
text about a call, such as one that a web page asks for. Small models rarely write clean JSON, so
the form is read with patience.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeAlias

from agent_brain.common.aio import maybe_await
from agent_brain.common.json_values import json_value_at, json_values
from agent_brain.common.suggest import did_you_mean
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role, trusted
from agent_brain.states import prompts
from agent_brain.states.base import Choose, RoutedState, Target
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import ActionRequested, Event, TextDelta
from agent_brain.states.model_call import ModelCall, Words, correction
from agent_brain.states.models.llm import LLM, ArgumentsDelta
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import (
    OUTPUT,
    OUTPUT_NAME,
    Check,
    Checks,
    OutputType,
    Problem,
    check_names,
    checked_problem,
    output_tools,
    read_output,
    shape_of,
)
from agent_brain.states.session_state import Notes
from agent_brain.states.work import StreamItem
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

Mode = Literal["auto", "native", "text"]


ASSISTANT = Role.ASSISTANT  # looking up an enum member is slow


class ReasoningState(RoutedState):
    """Ask the model what to do next (Yao et al. 2022, "ReAct", https://arxiv.org/abs/2210.03629).

    With a model that calls tools natively, text without tool calls is the answer, streamed as it
    arrives. In text mode, for models that do not, the model writes a thought and at most one JSON
    action, and none of it is shown to the reader. Output that cannot be used goes back to the model
    with what is wrong, once. A tool call that was cut off is not run; its result is an error.

    Args:
        llm: The model.
        on_action: The next state if tool calls are requested.
        on_answer: The next state otherwise; None ends the run.
        choose: Returns the next state in place of ``on_answer`` (:class:`RoutedState`).
        prompt: The system prompt; the default depends on the mode.
        mode: ``"native"``, ``"text"``, or ``"auto"`` for what the model supports.
        as_thoughts: Stream the text as thoughts, as another state gives the answer.
        output_type: The type of the answer, as in :class:`AnswerState`. A model that calls tools
            natively is offered a tool that takes it, ``final_result``, or one for each member of a
            union of objects. An answer that is not valid goes back to the model.
        check: Returns what is wrong with data that fits the type (:class:`AskState`). The model may
            call tools before it answers again: what was wrong is then recorded for it.
        corrections: How often an answer goes back to the model, with those that ``check`` refuses
            in the whole run.
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
        on_answer: Enum | None = None,
        choose: Choose | None = None,
        prompt: prompts.Prompt | None = None,
        mode: Mode = "auto",
        as_thoughts: bool = False,
        output_type: OutputType | None = None,
        check: Check | None = None,
        corrections: int = 1,
        sent_from: str | None = None,
    ) -> None:
        super().__init__(on_answer, choose)
        if mode not in ("auto", "native", "text"):
            raise StateDefinitionError(
                f"mode={mode!r}: use 'auto', 'native' or 'text'."
                f"{did_you_mean(mode, ('auto', 'native', 'text'))}"
            )
        self.llm = as_llm(llm)
        self.on_action = on_action
        self.checks = Checks(check, corrections, output_type)
        self.prompt = prompts.checked(prompt)
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
            answering = _AgentCall(self, memory, messages, tools, words)
            yield answering
            if answering.answered:
                yield await self._answer(memory, answering)
                return
            await answering.record_refusals(memory)
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
        metadata = call.metadata()
        if as_thoughts and not calls:  # text that is not the answer yet
            metadata["thought"] = True
        if self.sent_from is None and not call.attachments and not metadata:
            return message
        made = {"sent_from": self.sent_from, "attachments": call.attachments}
        return message.model_copy(update={**made, "metadata": metadata})

    @property
    def on_answer(self) -> Enum | None:
        """The next state after an answer."""
        return self.on_done

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return ``on_action`` if tool calls are requested, else ``on_answer``."""
        if memory.control.next_actions:
            return self.on_action
        return self.on_done if self.choose is None else await super().next_state(memory)

    def targets(self) -> tuple[Target, ...]:
        """Return ``on_action`` and ``on_answer``."""
        return (self.on_action, *super().targets())


class Refusals(Notes):
    """How many answers of the run the program's check has refused."""

    count: int = 0


class _AgentCall(ModelCall):
    """A call of a model that may answer by calling an output tool.

    Attributes:
        answered: Whether it has; ``output`` is the data then, and ``actions`` is empty.
        refused: The answers that the check has refused, each with what is wrong with it.
    """

    answered = False
    refused: list[tuple[str, str]]
    growing = True
    _answer_id = ""  # of the call with the answer that comes

    def __init__(
        self,
        state: ReasoningState,
        memory: Memory,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        words: Words,
    ) -> None:
        self._outputs = outputs = state._outputs
        self._shape = shape_of(state.output_type)
        offered, check = (*tools, *outputs.values()), _AgentCall._read
        super().__init__(state.llm, messages, tools=offered, words=words, acts=True, check=check)
        self.refused = []
        self._names = {tool.name for tool in tools}
        self._check: Callable[[Any], Problem] | None = state.checks.of(memory)["check"]
        self.corrections = state.checks.corrections
        if self._check is not None:  # it counts what was refused in the whole run
            self.corrections = max(self.corrections - Refusals.read(memory).count, 0)

    async def record_refusals(self, memory: Memory) -> None:
        """Record what the check has refused, as the model goes on with tools before it answers."""
        if self.refused:
            with Refusals.change(memory) as refusals:
                refusals.count += len(self.refused)
            cause, thought = ReasoningState.__name__, {"thought": True}
            for answer, problem in self.refused:
                said, told = correction(answer, problem)
                said = said.model_copy(update={"cause_by": cause, "metadata": thought})
                await memory.update([said, told.model_copy(update={"cause_by": cause})])

    async def _problem_by(self, check: Callable[[Any], Problem]) -> str | None:
        problem = checked_problem(await maybe_await(check(self.output)))
        self.answered = problem is None
        if problem is not None:
            self.refused.append((self._written(), problem))
        return problem

    def _requested(self, action: Action) -> Iterable[ActionRequested]:
        events = super()._requested(action)
        return () if action.name in self._outputs else events

    def _show_arguments(self, piece: ArgumentsDelta) -> Iterable[Event]:
        tool = self._outputs.get(piece.name)
        if tool is None:
            return super()._show_arguments(piece)
        if self._partial is None:
            self._partial, self._answer_id = tool.shape.partial(), piece.id
        return self._grow(piece.text) if piece.id == self._answer_id else ()

    def _take_back_call(self, call_id: str, name: str) -> Iterable[Event]:
        if name not in self._outputs:
            return super()._take_back_call(call_id, name)
        return self._settle(used=False) if call_id == self._answer_id else ()

    def _output_data(self) -> Any:
        return self._shape.to_data(self.output) if self.answered else None

    def _read(self) -> Problem:
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
        if problem is None and self._check is not None:
            return self._problem_by(self._check)
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


_NAME_KEYS = ("name", "action", "tool", "function")
_ARGS_KEYS = ("args", "arguments", "action_input", "input", "parameters")
_WRAPPERS = ("function", "action", "tool_call")
_ALL_FENCED = re.compile(r"```\w*[ \t]*\n(?P<code>(?:(?!```).)*)\n```", re.DOTALL)
_FENCED = re.compile(
    r"^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)|\Z)", re.MULTILINE | re.DOTALL
)
_CALL = (
    r"(?:(?:\**action[ \t*]*:[ \t*]*|<tool_call>\s*)?(?=\{)"
    r"|\**action[ \t*]*:[ \t*`\"']*(?P<action>[\w.-]+)[ \t*`\"']*(?:\r?\n[ \t]*){1,3}"
    r"\**action[ _]input[ \t*]*:[ \t*]*"
    r"|<function=(?P<function>[\w.-]+)>[ \t]*)"
)
_NEXT = re.compile(rf"(?:(?:,|and|then)\s+)?{_CALL}", re.IGNORECASE)
_FIRST = re.compile(  # on a line of its own, behind a sentence or a thought
    rf"(?:^|(?<=[.!?])[ \t]+|(?<=</think>)\s*){_CALL}", re.IGNORECASE | re.MULTILINE
)
_REST = re.compile(r"\s*(?:</tool_call>|</function>)?\s*", re.IGNORECASE)
_OPEN_QUOTE = re.compile(r"""(?:<\w[^<>]{0,100}>|[\s:(]["'“‘«])\s*\Z""")
_LISTED = re.compile(r"[ \t]*(?:[>|]|(?:[*+-]|\d+[.)]|[A-Za-z][.)])(?:\s|\Z))")
_NO_OBJECT = re.compile(r"(?:(?!</function>)[^\n])*")
_NO_ARGS = ("none", "null", "n/a")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The thought and the action in a text.

    Attributes:
        thought: The text before the action, or all of it.
        action: The call that it asks for, if any.
        problem: Why the call cannot be read, if so; then there is no action.
    """

    thought: str
    action: Action | None = None
    problem: str | None = None


_Call: TypeAlias = tuple[str, dict[str, Any] | None]
"""The name and the arguments; None if these are unclear."""


def parse_reasoning(text: str) -> Parsed:
    """Split ``text`` into a thought and at most one action.

    An action is a JSON object with a tool's name (``name``, ``action`` or ``tool``) and its
    arguments (``args``, ``arguments`` or ``input``); or ``Action: name`` and, on the next line,
    ``Action Input: {…}``; or ``<function=name>{…}</function>``. It ends the text, and begins a line
    or follows a sentence; or the whole text is one code fence with nothing else in it. Small errors
    in the JSON are repaired. Anything else is part of the thought.
    """
    text = text.strip()
    whole = _ALL_FENCED.fullmatch(text)
    if whole:
        text = whole["code"].strip()
    try:
        ending = _objects_at_the_end(text)
    except ValueError as error:
        return Parsed(text, problem=str(error))
    calls = [(start, call) for start, call in ending if call is not None]
    if not calls or ending[-1][1] is None:
        return Parsed(text)
    start, (name, args) = calls[0]
    thought = text[:start].strip()
    if len(calls) > 1:
        return Parsed(thought, problem=f"there are {len(calls)} JSON actions; give exactly one")
    if args is None:
        return Parsed(thought, problem='"args" is not a JSON object of arguments by name')
    try:
        return Parsed(thought, Action(name=name, args=args))
    except (ValueError, RecursionError):
        return Parsed(thought, problem='"args" is nested too deeply')


def _objects_at_the_end(text: str) -> list[tuple[int, _Call | None]]:
    """Return the JSON objects that end ``text``: where they begin, and their calls.

    Raises:
        ValueError: The last one is not complete.
    """
    unfenced = _FENCED.sub(lambda fence: "`" * len(fence[0]), text)
    index = 0
    while begin := _FIRST.search(unfenced, index):
        start = begin.start()
        line = text[text.rfind("\n", 0, start) + 1 : start]
        listed = _LISTED.match(line) or line.count('"') % 2
        quoted = listed or _OPEN_QUOTE.search(text[max(0, start - 200) : start])
        found = []
        following: re.Match[str] | None = begin
        while following:
            call, end = _call_at(text, following)
            found.append((following.start(), call))
            index = _end_of(_REST, text, end)
            if index == len(text):
                return [] if quoted else found
            following = _NEXT.match(unfenced, index)
    return []


def _call_at(text: str, begin: re.Match[str]) -> tuple[_Call | None, int]:
    """Return the call that begins there, if the object is one, and the index after it.

    Raises:
        ValueError: Its JSON is not complete.
    """
    name = begin["action"] or begin["function"]
    if text.startswith("{", begin.end()):
        value, end = json_value_at(text, begin.end())
        value = value if isinstance(value, dict) else None
        if name is None:
            return (None if value is None else _call_in(value)), end
        return (name, value), end
    end = _end_of(_NO_OBJECT, text, begin.end())
    empty = text[begin.end() : end].strip().casefold() in _NO_ARGS
    closed = end == begin.end() and text.startswith("</function>", end)
    return (name, {} if empty or closed else None), end


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the index after what ``pattern``, which matches anything, matches at ``start``."""
    found = pattern.match(text, start)
    return start if found is None else found.end()


def _call_in(value: dict[str, Any]) -> _Call | None:
    """Return the name and arguments of the call that an object describes, if it does.

    An object without arguments must have no other keys. The arguments are None if they are unclear.
    """
    for key in _WRAPPERS:  # {"type": "function", "function": {"name": …, "arguments": …}}
        inner = value.get(key)
        if isinstance(inner, dict):
            return _call_in(inner)
    if not any(key in value for key in _ARGS_KEYS) and len(value) > 1:
        return None
    names = [value[key] for key in _NAME_KEYS if isinstance(value.get(key), str) and value[key]]
    if not names:
        return None
    args: Any = next((value[key] for key in _ARGS_KEYS if key in value), {})
    if isinstance(args, str):
        text = args.strip()
        args = next(json_values(text), None) if text.startswith("{") else text or {}
    args = {} if args is None else args
    return names[0], args if isinstance(args, dict) else None
