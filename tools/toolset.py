"""Groups of tools: sets, sources that change, and the tools that nets in files can name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, TypeAlias, TypeVar

from agent_brain.common.aio import not_async
from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.suggest import did_you_mean
from agent_brain.tools.base import BaseTool
from agent_brain.tools.function import as_tool

T = TypeVar("T")

_BUILT_IN = ("ask_user", "calculate", "convert_units", "current_time")

Choice: TypeAlias = str | Callable[[BaseTool], object] | Iterable[str]


class Toolset:
    """Tools with unique names, accepted wherever tools are. Its methods return new toolsets.

    ::

        from agent_brain import Brain
        from agent_brain.tools import Toolset
        from agent_brain.tools.builtin import calculate, file_tools

        files = Toolset(file_tools(".")).prefixed("fs_").filter(deny="fs_search*")
        brain = Brain(tools=[files, calculate])

    Args:
        tools: Tools, functions with type hints, and other toolsets.

    Raises:
        ToolDefinitionError: Two different tools share a name, or something is not a tool.
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
        """Return the tools that match ``allow`` and do not match ``deny``.

        Args:
            allow: A name or a pattern (``"fs_*"``), several of them, or a function of a tool; None
                allows all.
            deny: The same; None denies none.
        """
        wanted, unwanted = chooser(allow, default=True), chooser(deny, default=False)
        return Toolset(tool for tool in self if wanted(tool) and not unwanted(tool))

    def renamed(self, names: Mapping[str, str] | Callable[[str], str]) -> Toolset:
        """Return the same tools under other names.

        Args:
            names: New names by old ones, or a function from the old name to the new one.

        Raises:
            ToolDefinitionError: A tool does not exist, or two tools would share a name.
        """
        if isinstance(names, Mapping):
            unknown = sorted(names.keys() - self._tools.keys())
            if unknown:
                raise ToolDefinitionError(
                    f"There is no tool {unknown[0]!r} to rename. "
                    f"The tools are: {', '.join(self._tools)}"
                )
            table = dict(names)
        else:
            table = {name: names(name) for name in self._tools}
        return Toolset(
            tool if table.get(tool.name, tool.name) == tool.name else tool.renamed(table[tool.name])
            for tool in self
        )

    def prefixed(self, prefix: str) -> Toolset:
        """Return the same tools with ``prefix`` before their names."""
        return self.renamed(lambda name: prefix + name)


class ToolSource(ABC):
    """Base class for sources of tools that may change and must be closed.

    A brain checks ``changed`` between two steps, so it must be cheap, and calls :meth:`refresh`
    only if it is true.
    """

    @property
    @abstractmethod
    def tools(self) -> Sequence[BaseTool]:
        """The tools as last listed."""

    @property
    @abstractmethod
    def changed(self) -> bool:
        """Whether there is something to refresh."""

    @abstractmethod
    async def refresh(self, taken: Collection[str] = ()) -> None:
        """List the tools again; those that cannot be listed now stay unchanged.

        Args:
            taken: Names that other tools use, to be avoided.
        """

    @property
    def gives_context(self) -> bool:
        """Whether :meth:`context` may return anything."""
        return False

    async def context(self) -> Sequence[str]:
        """Return what each request of a model shows, as it is now; nothing by default."""
        return ()

    @abstractmethod
    async def aclose(self) -> None:
        """Release all resources; is idempotent."""


ToolLike: TypeAlias = BaseTool | Toolset | Callable[..., Any]


def several(tools: Iterable[T]) -> Iterable[T]:
    """Return ``tools``, or raise ToolDefinitionError if they are not a collection of tools."""
    if isinstance(tools, BaseTool | str | Mapping) or not isinstance(tools, Iterable):
        raise ToolDefinitionError(f"tools= takes a list, not {tools!r}: write tools=[…]")
    return tools


def flatten(tools: Iterable[ToolLike]) -> Iterator[BaseTool]:
    """Yield every tool in ``tools``, with functions made into tools and toolsets expanded."""
    for tool in several(tools):
        if isinstance(tool, Toolset):
            yield from tool
        else:
            yield as_tool(tool)


def collect(
    tools: Iterable[ToolLike], known: Mapping[str, BaseTool] | None = None
) -> dict[str, BaseTool]:
    """Return every tool in ``tools`` by its name. A tool may occur twice."""
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


@contextmanager
def offered(available: dict[str, BaseTool], tools: Iterable[BaseTool]) -> Iterator[None]:
    """Inside, add tools to those that are available; those that are there already stay.

    Raises:
        ToolDefinitionError: Another tool has the name of one.
    """
    added = {n: tool for n, tool in collect(tools, available).items() if n not in available}
    available.update(added)
    try:
        yield
    finally:
        for name, tool in added.items():
            if available.get(name) is tool:
                del available[name]


def chooser(choice: Choice | None, *, default: bool) -> Callable[[BaseTool], object]:
    """Return a function that says whether a tool matches ``choice``; ``default`` for None.

    Raises:
        ToolDefinitionError: ``choice`` is an async function, or nothing that selects tools.
    """
    if choice is None:
        return lambda tool: default
    if callable(choice):
        return not_async(
            choice, lambda why: ToolDefinitionError(f"A function that selects tools {why}")
        )
    several = isinstance(choice, Iterable) and not isinstance(choice, str)
    patterns: list[str] = list(choice) if several else [choice]  # type: ignore[list-item]
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise ToolDefinitionError(
            f"{choice!r} does not select tools: give names, patterns such as 'fs_*', or a function"
        )
    return lambda tool: any(fnmatchcase(tool.name, pattern) for pattern in patterns)


_registered: dict[str, BaseTool] = {}


def register_tool(tool: ToolLike) -> None:
    """Register a tool under its name, so that nets in files can name it.

    Args:
        tool: A tool, or a function.

    Raises:
        ToolDefinitionError: The name belongs to another tool, or it cannot be a tool.
    """
    [made] = collect([tool]).values()
    known = _registered.get(made.name)
    if made.name in _BUILT_IN or (known is not None and known is not made):
        raise ToolDefinitionError(
            f"A tool named {made.name!r} is already registered: use another name"
        )
    _registered[made.name] = made


def tool_names() -> list[str]:
    """Return the names of the built-in and the registered tools, sorted."""
    return sorted([*_BUILT_IN, *_registered])


def named_tools(names: Iterable[str]) -> list[BaseTool]:
    """Return the tools of these names.

    Raises:
        ToolDefinitionError: There is no tool of one of the names.
    """
    return [_named(name) for name in names]


def _named(name: str) -> BaseTool:
    from agent_brain.tools import builtin

    if name in _BUILT_IN:
        tool: BaseTool = getattr(builtin, name)
        return tool
    if name not in _registered:
        raise ToolDefinitionError(
            f"There is no tool named {name!r}; registered are: {', '.join(tool_names())}."
            f"{did_you_mean(name, tool_names())} Register yours with register_tool(…), or pass it "
            "in code or with --tool"
        )
    return _registered[name]
