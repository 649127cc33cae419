"""Names of tools, such that models take them and no two are alike."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

LONGEST = 64
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")

Listed = Mapping[str, Sequence[str]]  # server -> what it calls its tools
Names = dict[tuple[str, str], str]  # (server, what it calls the tool) -> what the model calls it


def choose_names(listed: Listed, taken: Collection[str], before: Names) -> Names:
    """A name for every tool.

    A tool keeps its own name as long as nobody else has it; all those that share one are called
    ``server_tool``. A name once given stays, so that a conversation does not come to mean something
    else when a server adds a tool.

    Args:
        listed: What the servers call their tools.
        taken: Names of other tools.
        before: The names given so far.
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
    """``name`` in the letters, and of the length, that model APIs allow."""
    return _UNFIT.sub("_", name)[:LONGEST] or "_"


def unused(name: str, used: Collection[str]) -> str:
    """``name``, or with a number behind it, so that it is not in ``used``."""
    if name not in used:
        return name
    for number in itertools.count(2):
        numbered = f"{name[: LONGEST - 1 - len(str(number))]}_{number}"
        if numbered not in used:
            return numbered
    raise AssertionError("unreachable: there is always another number")
