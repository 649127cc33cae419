"""The memories of an experiment, and how each is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from agent_brain.common.references import load_object
from agent_brain.errors import ExperimentError
from agent_brain.experiments.choices.axis import (
    check_call,
    in_words,
    name_of,
    parameters_of,
    read_axis,
    split_options,
)
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.memories.base import Memory
from agent_brain.memories.registry import create_memory, find_memory
from agent_brain.tools.toolset import ToolLike

PLACE = ("journal", "session", "tenant")  # options that an experiment gives


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """A memory of an experiment.

    Attributes:
        name: Its name in the experiment.
        text: What was given, in words.
        key: Stands for what was given, in the IDs of cases.
        make: Makes it, of tools and options.
        options: The options that were given.
        takes: What it takes of a place.
    """

    name: str
    text: str
    key: Key
    make: Callable[..., Any]
    options: Mapping[str, Any]
    takes: Collection[str]

    def create(
        self, tools: Sequence[ToolLike], *, client: Callable[[], Any], **place: Any
    ) -> Memory:
        """Make it for a case.

        Args:
            tools: The tools of the case.
            client: Returns the client of Chroma for the vectors of the folder.
            **place: Where it is stored: the journal, the session, and the ID of the case.

        Raises:
            ExperimentError: What makes it returned something else.
        """
        given = {name: place[name] for name in self.takes if name in place}
        if "client" in self.takes:
            given["client"] = client()
        made = self.make(tools, **self.options, **given)
        if not isinstance(made, Memory):
            raise ExperimentError(f"{self.name}() returned {made!r}, which is not a memory")
        return made


def read_memories(given: object) -> dict[str, MemoryChoice]:
    """Return the memories by name.

    Raises:
        ExperimentError: Something is not a memory, or cannot be made.
    """
    return read_axis("memories", given, _read)


def _read(where: str, given: Any) -> MemoryChoice:
    thing, options = split_options(where, given)
    if isinstance(thing, Memory):
        raise ExperimentError(
            f"{where} is a memory: each case has one of its own, so give its name, a tuple (name, "
            "options), or a function of the tools that makes one"
        )
    if isinstance(thing, str) and ":" not in thing:
        return _of_name(where, thing, options)
    if isinstance(thing, str):
        function = load_object(f"{where}={thing!r}", thing, ExperimentError)
        name, text = thing.rpartition(":")[2], in_words(thing, options)
    else:
        function, name, text = thing, name_of(thing), name_of(thing)
    if not callable(function):
        raise ExperimentError(
            f"{where}={thing!r} is {function!r}: give the name of a memory, a tuple (name, "
            "options), or a function of the tools that makes one"
        )
    takes = _taken(where, function)
    check_call(where, function, (), **options, **dict.fromkeys(takes))
    return MemoryChoice(name, text, fingerprint(function, options), function, options, takes)


def _of_name(where: str, name: str, options: dict[str, Any]) -> MemoryChoice:
    if own := sorted({*PLACE} & options.keys()):
        raise ExperimentError(f"{where}: leave {', '.join(own)} to the experiment")
    shared = [key for key, value in options.items() if isinstance(value, Memory)]
    if shared:
        raise ExperimentError(
            f"{where}: {shared[0]}= is a memory, which all cases would share: give a function of "
            "the tools that makes both"
        )
    create_memory(name, (), **options)
    factory = cast("Callable[..., Memory]", find_memory(name))
    takes = _taken(where, factory)
    if options.get("embedder") is None or {"path", "url", "client"} & options.keys():
        takes.discard("client")
    key = fingerprint(name, options, factory)
    make = partial(create_memory, name)
    return MemoryChoice(name, in_words(name, options), key, make, options, takes)


def _taken(where: str, function: Callable[..., Any]) -> set[str]:
    """Return what a function takes of a place; the client of Chroma only if it names it."""
    parameters = parameters_of(where, function).values()
    names = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        names |= {*PLACE}
    return names & {*PLACE, "client"}
