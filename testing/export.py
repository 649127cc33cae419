"""Writing a pytest file from the events of a run."""

from __future__ import annotations

import os
import pprint
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

from agent_brain.common.secrets import Scrubber
from agent_brain.memories.message import Message
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.nets.registry import net_names
from agent_brain.states.errors import LLMError
from agent_brain.states.events import Event
from agent_brain.states.models.llm import Finish, Thought
from agent_brain.states.usage import Usage
from agent_brain.testing.exported_run import ExportedRun, ExportError, export_events
from agent_brain.tools.action import Action

_FACTORY = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_TEST = '''"""A run of {net!r} as it was: the model is scripted, the tools are fakes."""

from __future__ import annotations

import anyio
{imports}


def {name}() -> None:
    async def scenario() -> None:
{body}
    anyio.run(scenario)
'''


def export_test(
    events: Iterable[Event | Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    net: str | None = None,
    scrub: Iterable[str | re.Pattern[str]] = (),
) -> Path:
    """Write a test that repeats a run without its model and its tools.

    The model is scripted with what it said, the tools return what they returned, and the test
    asserts the states, the calls and the end as they were: an answer or an error. Change what it
    asserts to what should have happened, and it fails until the bug is fixed. The file needs no
    plugin and no fixture, and contains no secrets.

    Args:
        events: All events of one run, in order: as objects, or as returned by ``to_dict()``.
        path: The file to write; the test is named after it.
        net: ``"module:function"`` of a function that takes a model and returns the net. Not needed
            for registered nets.
        scrub: Regular expressions of further secrets.

    Returns:
        The path.

    Raises:
        ExportError: The events are not enough: the run was resumed, ended by a timeout or a
            cancellation, or had concurrent branches; or the net is unknown.
    """
    target = Path(path)
    if target.suffix != ".py":
        raise ExportError(f"{str(target)!r} is not a Python file: pytest would not find it")
    name = re.sub(r"\W+", "_", target.stem.removeprefix("test_")).strip("_") or "run"
    text = write_test(export_events(events), name, net=net, scrub=scrub)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def write_test(
    run: ExportedRun,
    name: str,
    *,
    net: str | None = None,
    scrub: Iterable[str | re.Pattern[str]] = (),
) -> str:
    """Return the text of a test that repeats a run; see :func:`export_test`.

    Args:
        run: The run.
        name: The name of the test, without ``test_``.
        net: As for :func:`export_test`.
        scrub: As for :func:`export_test`.

    Raises:
        ExportError: The net is unknown.
    """
    writer = _Writer(Scrubber(scrub))
    body = "".join(writer.body(run, writer.net(net or run.net)))
    imports = "\n".join(
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(writer.imports.items())
    )
    return _TEST.format(
        net=run.net, imports=imports, name=f"test_{name}", body=indent(body, " " * 8)
    )


def _block(opening: str, items: Iterable[str], closing: str) -> str:
    """Return a call or a list with one item a line."""
    return "\n".join([opening, *(indent(f"{item},", "    ") for item in items), closing])


class _Writer:
    def __init__(self, scrubber: Scrubber) -> None:
        self.imports: dict[str, set[str]] = {}
        self._scrubber = scrubber

    def net(self, net: str) -> str:
        if match := _FACTORY.fullmatch(net):
            return f"{self._use(match[1], match[2])}(llm)"
        if net not in net_names():
            raise ExportError(
                f"The net {net!r} is not registered: name the function that takes a model and "
                'returns the net, as in net="my_project.nets:make_net"'
            )
        return f"{self._use('agent_brain', 'create_net')}({net!r}, llm)"

    def body(self, run: ExportedRun, net: str) -> Iterator[str]:
        testing = "agent_brain.testing"
        turns = [_block("[", map(self._piece, turn), "]") for turn in run.turns]
        options = [] if run.native else ["native=False"]
        script = _block("[", turns, "]")
        yield _block(f"llm = {self._use(testing, 'ScriptedLLM')}(", [script, *options], ")\n")
        arguments = [net, self._goal(run.goal)]
        if run.tools:
            spy = self._use(testing, "ToolSpy")
            replies = [
                _block("replies=[", map(self._reply, made), "]") for made in run.tools.values()
            ]
            pairs = zip(run.tools, replies, strict=True)
            tools = [_block(f"{spy}(", [repr(tool), returns], ")") for tool, returns in pairs]
            yield _block("tools = [", tools, "]\n")
            arguments.append("tools=tools")
        arguments += [*(f"{name}={value!r}" for name, value in run.limits.items()), "check=False"]
        yield _block(f"run = await {self._use(testing, 'run_net')}(", arguments, ")\n")
        yield from self._end(run)

    def _end(self, run: ExportedRun) -> Iterator[str]:
        yield self._assert("run.path", run.path)
        if run.error is not None:
            yield f"assert type(run.error).__name__ == {run.error!r}, run.error\n"
        else:
            yield "assert run.error is None\n"
            yield "assert run.result is not None\n"
            yield self._assert("run.result.stop_reason", run.stop_reason)
            yield self._assert("run.result.answer", run.answer)
        for index, (tool, calls) in enumerate(run.tools.items()):
            opening = f"tools[{index}].assert_calls(  # {tool}"
            args = [self._value(call.action.args) for call in calls if call.action is not None]
            yield _block(opening, args, ")\n")
        if run.turns:
            yield "llm.assert_complete()\n"

    def _goal(self, goal: Message) -> str:
        if not goal.attachments and not goal.name:
            return self._value(goal.content)
        fields = goal.model_dump(mode="json", exclude={"id", "created_at"})
        known = {name: value for name, value in fields.items() if value}
        return f"{self._use('agent_brain', 'Message')}.model_validate({self._value(known)})"

    def _reply(self, call: RecordedCall) -> str:
        result = call.messages[0]
        text = self._value(result.content)
        return f"{self._use('agent_brain', 'ToolError')}({text})" if result.is_error else text

    def _assert(self, what: str, value: Any) -> str:
        written = self._value(value)
        if "\n" in written:
            written = f"(\n{indent(written, '    ')}\n)"
        return f"assert {what} == {written}\n"

    def _piece(self, piece: object) -> str:
        match piece:
            case Thought():
                return f"{self._use('agent_brain.states', 'Thought')}({self._value(str(piece))})"
            case str():
                return self._value(piece)
            case Usage():
                self._use("agent_brain.states", "Usage")
                return repr(piece)
            case Finish():
                return f"{self._use('agent_brain.states', 'Finish')}({piece.reason!r})"
            case Action():
                fields = {"name": piece.name, "id": piece.id, "unparsed": piece.unparsed}
                known = [f"{k}={self._value(v)}" for k, v in fields.items() if v is not None]
                args = f"args={self._value(piece.args)}"
                return f"{self._use('agent_brain', 'Action')}({', '.join([*known, args])})"
        assert isinstance(piece, LLMError)
        kind = self._use("agent_brain.errors", type(piece).__name__)
        known = [f"{k}={v!r}" for k in ("provider", "model") if (v := getattr(piece, k))]
        return f"{kind}({', '.join([self._value(piece.message), *known])})"

    def _value(self, value: Any) -> str:
        """Write plain data as Python does, without secrets."""
        return pprint.pformat(self._scrubber.data(value), width=80, sort_dicts=False)

    def _use(self, module: str, name: str) -> str:
        self.imports.setdefault(module, set()).add(name)
        return name
