"""Tools that are offered to a model once it has searched for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.suggest import did_you_mean
from agent_brain.common.text import shorten
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import current_call
from agent_brain.tools.errors import ToolError
from agent_brain.tools.schemas import object_schema

if TYPE_CHECKING:
    from agent_brain.memories.recall.index import RecallIndex

SEARCH_TOOLS = "search_tools"
MOST = 20  # found at a time
SHOWN_TOKENS = 60  # of a description in what was found
NAMED = 40  # tools that are named if none was found

_SCHEMA = object_schema(
    {
        "query": {"type": "string", "minLength": 1, "description": "What the tool does, in words"},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": 5},
    },
    required=["query"],
)
_DESCRIPTION = (
    "Find tools by what they do. Most of your tools are not listed until you have found them; "
    "those that are found can be called from your next message on. Search for all that you will "
    "need before you say that you cannot do something."
)
_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+")


class ToolSearch(BaseTool):
    """A tool, ``search_tools``, with which a model finds the other ones.

    With many tools, those of an agent would fill each request. While this one is among them, a
    model is offered it alone, and what it has found in this conversation::

        brain = Brain(tools=[*three_hundred, ToolSearch()])
        brain = await Brain.create(tools=["servers.json", today, ToolSearch(always="today")])

    What was found is kept in the memory, in ``control.found_tools``. Tools that a memory or a net
    brings itself, such as those of a to-do list, are always offered.

    Args:
        search: Names and patterns (``"github_*"``) of the tools that must be found first. Default:
            all.
        always: Names and patterns of those that are offered from the start; wins over ``search``.
        description: What the model reads about it. Say here what can be found.

    Raises:
        ToolDefinitionError: The names are not texts. When tools are first offered: there is no tool
            of a name.
    """

    always_offered = True

    def __init__(
        self,
        search: str | Iterable[str] = "*",
        *,
        always: str | Iterable[str] = (),
        description: str = _DESCRIPTION,
    ) -> None:
        super().__init__(SEARCH_TOOLS, description, _SCHEMA, idempotent=True)
        self.search = _patterns("search", search)
        self.always = _patterns("always", always)
        self._checked = False
        self._indexed: tuple[tuple[BaseTool, ...], RecallIndex] | None = None

    def check_names(self, tools: Collection[str]) -> None:
        """Check, once, that there are tools of the names that are not patterns.

        Raises:
            ToolDefinitionError: There is none of a name.
        """
        if self._checked:
            return
        for option, names in (("search", self.search), ("always", self.always)):
            for name in names:
                if name not in tools and not set("*?[") & set(name):
                    raise ToolDefinitionError(
                        f"ToolSearch({option}={name!r}): there is no tool {name!r}."
                        f"{did_you_mean(name, tools)}"
                    )
        self._checked = True

    def hides(self, tool: BaseTool) -> bool:
        """Return whether a tool must be found before it is offered."""
        if tool.always_offered or _fits(tool.name, self.always):
            return False
        return _fits(tool.name, self.search)

    def offered(self, tools: Mapping[str, BaseTool], found: Iterable[str]) -> dict[str, BaseTool]:
        """Return those of ``tools`` that are offered: at the end the found ones, as found."""
        shown = {name: tool for name, tool in tools.items() if not self.hides(tool)}
        shown.update((name, tools[name]) for name in found if name in tools)
        return shown

    async def execute(self, **kwargs: Any) -> str:
        """Return a line for each tool that fits, the best first."""
        call = current_call()
        memory = None if call is None else call.memory
        if memory is None:
            raise ToolError("There is no memory whose tools could be searched here")
        hidden = {tool.name: tool for tool in memory.allowed_tools().values() if self.hides(tool)}
        found = self._find(kwargs["query"], hidden, kwargs.get("limit", 5))
        if not found:
            return _nothing(hidden)
        lines = [f"{name}: {_summary(hidden[name])}" for name in found]
        return "\n".join([*lines, "You can call these from now on."])

    def renamed(self, name: str) -> BaseTool:
        """Refuse: a memory knows the tool by its name."""
        raise ToolDefinitionError(
            f"{SEARCH_TOOLS!r} cannot be renamed: put ToolSearch() behind the toolset"
        )

    def _find(self, query: str, tools: Mapping[str, BaseTool], limit: int) -> list[str]:
        """Return the names of tools that are named in ``query``, then of those that fit."""
        named = [name for name in re.findall(r"[\w-]+", query) if name in tools]
        index = self._index(tuple(tools.values()))
        fitting = [hit.id for hit in index.search(_words(query), limit) if "words" in hit.why]
        return [*dict.fromkeys([*named, *fitting])][: max(limit, len(named))]

    def _index(self, tools: tuple[BaseTool, ...]) -> RecallIndex:
        """Return the index of these tools, which is kept until they are others."""
        if self._indexed is None or self._indexed[0] != tools:
            from agent_brain.memories.recall.index import RecallIndex
            from agent_brain.memories.recall.indexing import Item

            index = RecallIndex()
            # a conversation and a speaker each: the next one says nothing newer about the same
            index.add(Item(t.name, _text(t), thread=t.name, role=t.name) for t in tools)
            self._indexed = tools, index
        return self._indexed[1]


def found_in(text: str, tools: Collection[str]) -> list[str]:
    """Return the names of the tools in a result of :class:`ToolSearch`."""
    names = (line.partition(": ")[0] for line in text.splitlines())
    return [name for name in names if name in tools]


def _patterns(option: str, given: str | Iterable[str]) -> tuple[str, ...]:
    several = (
        (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    )
    if not all(isinstance(pattern, str) for pattern in several):
        raise ToolDefinitionError(f"ToolSearch({option}={given!r}): names or patterns as 'git_*'")
    return several


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _text(tool: BaseTool) -> str:
    """Return what is searched of a tool: its name and its words, and those of its arguments."""
    arguments = tool.input_schema.get("properties", {})
    told = [
        f"{_words(name)} {about.get('description', '') if isinstance(about, dict) else ''}"
        for name, about in arguments.items()
    ]
    return "\n".join([f"{tool.name} {_words(tool.name)}: {tool.description}", *told])


def _words(name: str) -> str:
    return _WORD_BREAK.sub(" ", name)


def _summary(tool: BaseTool) -> str:
    return shorten(" ".join(tool.description.split()), SHOWN_TOKENS).replace("\n", " ")


def _nothing(tools: Mapping[str, BaseTool]) -> str:
    if not tools:
        return "There are no other tools."
    more = f" and {len(tools) - NAMED} more" if len(tools) > NAMED else ""
    return (
        "No tool fits these words: search with others, or for a name. Some names without their "
        f"descriptions: {', '.join([*tools][:NAMED])}{more}."
    )
