"""Unique names for the tools of several servers."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

LONGEST = 64
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")

Listed = Mapping[str, Iterable[str]]  # server -> its own names of its tools
Names = dict[tuple[str, str], str]  # (server, its name of the tool) -> name for the model


def choose_names(listed: Listed, taken: Collection[str], before: Names) -> Names:
    """Choose a name for every tool: its own if that is unique, otherwise ``server_tool``.

    A name never changes later, so a conversation keeps its meaning when a server adds a tool.
    """
    tools = [(server, tool) for server, names in listed.items() for tool in dict.fromkeys(names)]
    chosen = {tool: before[tool] for tool in tools if tool in before}
    used = {*taken, *chosen.values()}
    wanted = {tool: fitting(tool[1]) for tool in tools if tool not in chosen}
    often = Counter(wanted.values())
    for tool, name in wanted.items():
        if often[name] > 1 or name in used:
            name = unused(fitting("_".join(tool)), used)
        chosen[tool] = name
        used.add(name)
    return chosen


def fitting(name: str) -> str:
    """Return ``name`` in the characters and the length that model APIs allow."""
    return _UNFIT.sub("_", name)[:LONGEST] or "_"


def unused(name: str, used: Collection[str]) -> str:
    """Return ``name``, with a number appended if it is in ``used``."""
    numbered = (f"{name[: LONGEST - 1 - len(str(n))]}_{n}" for n in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in used)
