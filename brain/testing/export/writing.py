"""From a story to the text of a pytest file."""

from __future__ import annotations

import pprint
import re
from collections.abc import Iterator
from typing import Any

from agent_brain.memories.message import Message
from agent_brain.nets.registry import net_names
from agent_brain.states.errors import LLMError
from agent_brain.states.models.llm import Finish, Thought
from agent_brain.states.usage import Usage
from agent_brain.testing.cassettes.scrub import Scrubber
from agent_brain.testing.export.errors import ExportError
from agent_brain.testing.export.story import Story
from agent_brain.testing.export.turns import Piece
from agent_brain.tools.action import Action

_FACTORY = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def write_test(story: Story, *, name: str, net: str | None, scrubber: Scrubber) -> str:
    """The text of the file.

    Raises:
        ExportError: The net is not registered, and no factory was named.
    """
    imports: dict[str, set[str]] = {"agent_brain.testing": {"ScriptedLLM", "run_net"}}
    made = _net(net or story.net, imports)
    writer = _Writer(imports, scrubber)
    body = [
        "    async def scenario() -> None:",
        *_indent(writer.model(story), 8),
        *_indent(writer.tools(story), 8),
        *_indent(writer.call(story, made), 8),
        *_indent(writer.end(story), 8),
        "",
        "    anyio.run(scenario)",
    ]
    lines = [
        f'"""A run of {story.net!r} as it was: the model is scripted, the tools are fakes."""',
        "",
        "from __future__ import annotations",
        "",
        "import anyio",
        *(
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(imports.items())
        ),
        "",
        "",
        f"def {name}() -> None:",
        *body,
    ]
    return "\n".join(lines) + "\n"


def _net(net: str, imports: dict[str, set[str]]) -> str:
    if match := _FACTORY.fullmatch(net):
        imports.setdefault(match[1], set()).add(match[2])
        return f"{match[2]}(llm)"
    if net not in net_names():
        raise ExportError(
            f"The net {net!r} is not registered: say which function makes it of a model, as in "
            'net="my_project.nets:make_net"'
        )
    imports.setdefault("agent_brain", set()).add("create_net")
    return f"create_net({net!r}, llm)"


class _Writer:
    def __init__(self, imports: dict[str, set[str]], scrubber: Scrubber) -> None:
        self._imports = imports
        self._scrubber = scrubber

    def model(self, story: Story) -> list[str]:
        lines = ["llm = ScriptedLLM(", "    ["]
        for turn in story.turns:
            lines.append("        [")
            for piece in turn:
                lines += _indent(self._piece(piece).splitlines(), 12, comma=True)
            lines.append("        ],")
        lines.append("    ],")
        if not story.native:
            lines.append("    native=False,")
        return [*lines, ")"]

    def tools(self, story: Story) -> list[str]:
        lines = ["tools = ["]
        for tool, replies in story.replies.items():
            self._import("agent_brain.testing", "ToolSpy")
            lines += ["    ToolSpy(", f"        {tool!r},", "        replies=["]
            for text, is_error in replies:
                written = self._value(text)
                if is_error:
                    self._import("agent_brain", "ToolError")
                    written = f"ToolError({written})"
                lines += _indent(written.splitlines(), 12, comma=True)
            lines += ["        ],", "    ),"]
        return [*lines, "]"] if story.replies else []

    def call(self, story: Story, made: str) -> list[str]:
        message = Message.model_validate(story.goal)
        goal = self._value(message.content)
        if message.attachments or message.name:
            self._import("agent_brain", "Message")
            plain = {k: v for k, v in story.goal.items() if k not in ("id", "created_at") and v}
            goal = f"Message.model_validate({self._value(plain)})"
        arguments = [made, goal]
        if story.replies:
            arguments.append("tools=tools")
        arguments += [*(f"{name}={value!r}" for name, value in story.limits.items()), "check=False"]
        lines = [line for text in arguments for line in _indent(text.splitlines(), 4, comma=True)]
        return ["run = await run_net(", *lines, ")"]

    def end(self, story: Story) -> Iterator[str]:
        yield from self._assert("run.path", story.path)
        if story.failed is not None:
            error = story.failed["error"]
            yield f"assert type(run.error).__name__ == {error['type']!r}, run.error"
        elif story.finished is not None:
            yield "assert run.error is None"
            yield "assert run.result is not None"
            yield f"assert run.result.stop_reason == {str(story.finished['stop_reason'])!r}"
            yield from self._assert("run.result.answer", story.finished["answer"])
        for index, (tool, calls) in enumerate(story.calls.items()):
            wanted = [
                line
                for args in calls
                for line in _indent(self._value(args).splitlines(), 4, comma=True)
            ]
            yield f"tools[{index}].assert_calls(  # {tool}"
            yield from wanted
            yield ")"
        if story.metered:
            yield "llm.assert_complete()"

    def _assert(self, what: str, value: Any) -> Iterator[str]:
        written = self._value(value).splitlines()
        yield f"assert {what} == {written[0]}" if len(written) == 1 else f"assert {what} == ("
        if len(written) > 1:
            yield from _indent(written, 4)
            yield ")"

    def _piece(self, piece: Piece) -> str:
        if isinstance(piece, Thought):
            self._import("agent_brain.states", "Thought")
            return f"Thought({self._value(str(piece))})"
        if isinstance(piece, str):
            return self._value(piece)
        if isinstance(piece, Usage):
            self._import("agent_brain.states", "Usage")
            return repr(piece)
        if isinstance(piece, Finish):
            self._import("agent_brain.states", "Finish")
            return f"Finish({piece.reason!r})"
        if isinstance(piece, Action):
            self._import("agent_brain", "Action")
            unparsed = "" if piece.unparsed is None else f", unparsed={self._value(piece.unparsed)}"
            known = f"name={piece.name!r}, id={piece.id!r}{unparsed}"
            return f"Action({known}, args={self._value(piece.args)})"
        return self._error(piece)

    def _error(self, error: Exception) -> str:
        kind = type(error).__name__
        self._import("agent_brain.errors", kind)
        assert isinstance(error, LLMError)
        known = {"provider": error.provider, "model": error.model}
        fields = "".join(f", {key}={value!r}" for key, value in known.items() if value)
        return f"{kind}({self._value(error.message)}{fields})"

    def _value(self, value: Any) -> str:
        """Plain data as Python writes it, without secrets."""
        clean = self._scrubber.data(value)
        return pprint.pformat(clean, width=80, sort_dicts=False)

    def _import(self, module: str, name: str) -> None:
        self._imports.setdefault(module, set()).add(name)


def _indent(lines: Iterator[str] | list[str], width: int, *, comma: bool = False) -> list[str]:
    indented = [f"{' ' * width}{line}" if line else "" for line in lines]
    if comma and indented:
        indented[-1] += ","
    return indented
