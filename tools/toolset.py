"""Groups of tools: put together, chosen from, renamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias, TypeVar

from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolDefinitionError
from agent_brain.tools.function import as_tool

T = TypeVar("T")

Choice: TypeAlias = str | Callable[[BaseTool], object] | Iterable[str]


class Toolset:
    """Tools by name, none of them twice; goes wherever tools go. Its methods make new ones.

    ::

        files = Toolset([read, write, delete]).prefixed("fs_").filter(deny="fs_del*")
        brain = Brain(tools=[files, search])

    Args:
        tools: Tools, functions with type hints, and other toolsets.

    Raises:
        ToolDefinitionError: Two different tools have one name, or something is no tool.
    """

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self._tools = collect(tools)

    def __iter__(self) -> Iterator[BaseTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> BaseTool:
        return self._tools[name]

    def __add__(self, other: Iterable[ToolLike]) -> Toolset:
        return Toolset([*self, *flatten(other)])

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self._tools)})"

    def filter(self, *, allow: Choice | None = None, deny: Choice | None = None) -> Toolset:
        """Only the tools that ``allow`` means, less those that ``deny`` means.

        Args:
            allow: A name or a pattern (``"fs_*"``), several of them, or a function of a tool; None
                allows all.
            deny: The same; None denies none.
        """
        wanted, unwanted = chooser(allow, default=True), chooser(deny, default=False)
        return Toolset(tool for tool in self if wanted(tool) and not unwanted(tool))

    def renamed(self, names: Mapping[str, str] | Callable[[str], str]) -> Toolset:
        """The same tools under other names.

        Args:
            names: New names by old ones, or a function that makes a new name of an old one.

        Raises:
            ToolDefinitionError: It renames a tool that is not here, or two tools to one name.
        """
        if isinstance(names, Mapping):
            unknown = sorted(names.keys() - self._tools.keys())
            if unknown:
                raise ToolDefinitionError(
                    f"There is no tool {unknown[0]!r} to rename. Here are: {', '.join(self._tools)}"
                )
            table = dict(names)
        else:
            table = {name: names(name) for name in self._tools}
        return Toolset(
            tool if table.get(tool.name, tool.name) == tool.name else tool.renamed(table[tool.name])
            for tool in self
        )

    def prefixed(self, prefix: str) -> Toolset:
        """The same tools, their names behind ``prefix``."""
        return self.renamed(lambda name: prefix + name)


ToolLike: TypeAlias = BaseTool | Toolset | Callable[..., Any]


def several(tools: Iterable[T]) -> Iterable[T]:
    """``tools``, if they are several.

    Raises:
        ToolDefinitionError: One tool, one text, or something else that is not a collection of them.
    """
    if isinstance(tools, BaseTool | str | Mapping) or not isinstance(tools, Iterable):
        raise ToolDefinitionError(f"tools= takes a list, not {tools!r}: write tools=[…]")
    return tools


def flatten(tools: Iterable[ToolLike]) -> Iterator[BaseTool]:
    """Every tool in ``tools``: functions made tools, toolsets opened."""
    for tool in several(tools):
        if isinstance(tool, Toolset):
            yield from tool
        else:
            yield as_tool(tool)


def collect(
    tools: Iterable[ToolLike], known: Mapping[str, BaseTool] | None = None
) -> dict[str, BaseTool]:
    """Every tool in ``tools`` by its name; each may occur again, but its name is its own.

    Args:
        tools: What to collect.
        known: Tools whose names are taken already.

    Raises:
        ToolDefinitionError: Two different tools have one name.
    """
    found: dict[str, BaseTool] = {}
    for tool in flatten(tools):
        other = found.get(tool.name) or (known or {}).get(tool.name)
        if other is not None and other is not tool:
            raise ToolDefinitionError(
                f"Two tools are named {tool.name!r}: {other!r} and {tool!r}. Give one of them "
                "another name, as in @tool(name=…) or Toolset([…]).prefixed(…)"
            )
        found[tool.name] = tool
    return found


def chooser(choice: Choice | None, *, default: bool) -> Callable[[BaseTool], object]:
    """A function that tells whether ``choice`` means a tool; nothing chosen is ``default``.

    Raises:
        ToolDefinitionError: It is no choice.
    """
    if choice is None:
        return lambda tool: default
    if callable(choice):
        return choice
    patterns = [choice] if isinstance(choice, str) else choice
    if isinstance(patterns, Iterable):
        patterns = list(patterns)
    if not (isinstance(patterns, list) and all(isinstance(pattern, str) for pattern in patterns)):
        raise ToolDefinitionError(
            f"{choice!r} chooses no tools: give names, patterns such as 'fs_*', or a function"
        )
    return lambda tool: any(fnmatchcase(tool.name, pattern) for pattern in patterns)
