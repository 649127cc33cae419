"""The memories of an experiment, and how each is made. Private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_brain.errors import AgentBrainError, ExperimentError
from agent_brain.experiments.choices.axis import in_words, name_of, read_axis, split_options
from agent_brain.experiments.choices.calls import check_call, parameters_of
from agent_brain.experiments.choices.references import load_object
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.memories.base import Memory
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.registry import create_memory, find_memory, memory_names
from agent_brain.tools.suggest import did_you_mean
from agent_brain.tools.toolset import ToolLike

PLACE = ("journal", "session", "tenant")  # options that an experiment gives


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a memory of a case is stored.

    Attributes:
        journal: The journal of the case.
        session: The session.
        tenant: The ID of the case.
        client: Returns the client of Chroma for the vectors of the folder.
    """

    journal: Journal
    session: str
    tenant: str
    client: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """A memory of an experiment.

    Attributes:
        name: Its name in the experiment.
        text: What was given, in words.
        key: Stands for what was given, in the IDs of cases.
        create: Makes it, of tools and a place.
    """

    name: str
    text: str
    key: Key
    create: Callable[[Sequence[ToolLike], Place], Memory]


def read_memories(given: object) -> dict[str, MemoryChoice]:
    """Return the memories by name.

    Raises:
        ExperimentError: Something is not a memory, or cannot be made.
    """
    found = read_axis("memories", given, _read)
    return {name: replace(choice, name=name) for name, choice in found.items()}


def _read(where: str, given: Any) -> MemoryChoice:
    thing, options = split_options(where, given)
    if isinstance(thing, Memory):
        raise ExperimentError(
            f"{where} is a memory: each case has one of its own, so give its name, a tuple (name, "
            "options), or a function of the tools that makes one"
        )
    if isinstance(thing, str) and ":" in thing:
        function: Any = load_object(f"{where}={thing!r}", thing)
        if not callable(function):
            raise ExperimentError(f"{where}={thing!r} is {function!r}: name a function")
        return _of_function(
            where, thing.rpartition(":")[2], in_words(thing, options), function, options
        )
    if isinstance(thing, str):
        return _of_name(where, thing, options)
    if callable(thing):
        return _of_function(where, name_of(thing), name_of(thing), thing, {})
    raise ExperimentError(
        f"{where}={thing!r}: give the name of a memory, a tuple (name, options), or a function of "
        "the tools that makes one"
    )


def _of_name(where: str, name: str, options: dict[str, Any]) -> MemoryChoice:
    factory = find_memory(name)
    if factory is None:
        raise ExperimentError(
            f"{where}: there is no memory named {name!r}; registered are "
            f"{', '.join(memory_names())}.{did_you_mean(name, memory_names())}"
        )
    _check_options(where, name, options)
    takes = _taken(where, factory)
    has_vectors = options.get("embedder") is not None and "client" in takes
    own_vectors = has_vectors and not {"path", "url", "client"} & options.keys()

    def create(tools: Sequence[ToolLike], place: Place) -> Memory:
        given: Any = {name: getattr(place, name) for name in PLACE if name in takes}
        if own_vectors:
            given["client"] = place.client()
        return create_memory(name, tools, **options, **given)

    return MemoryChoice(name, in_words(name, options), fingerprint(name, options, factory), create)


def _check_options(where: str, name: str, options: dict[str, Any]) -> None:
    if own := sorted({*PLACE} & options.keys()):
        raise ExperimentError(f"{where}: leave {', '.join(own)} to the experiment")
    shared = [key for key, value in options.items() if isinstance(value, Memory)]
    if shared:
        raise ExperimentError(
            f"{where}: {shared[0]}= is a memory, which all cases would share: give a function of "
            "the tools that makes both"
        )
    try:
        create_memory(name, (), **options)
    except AgentBrainError as error:
        raise ExperimentError(f"{where}: {error}") from error


def _of_function(
    where: str, name: str, text: str, function: Callable[..., Any], options: dict[str, Any]
) -> MemoryChoice:
    takes = _taken(where, function)
    given_names = [name for name in PLACE if name in takes]
    has_client = "client" in takes and "**" not in takes
    check_call(
        where, function, (), **options, **dict.fromkeys([*given_names, *["client"] * has_client])
    )

    def create(tools: Sequence[ToolLike], place: Place) -> Memory:
        given = {name: getattr(place, name) for name in given_names}
        if has_client:
            given["client"] = place.client()
        made = function(tools, **options, **given)
        if not isinstance(made, Memory):
            raise ExperimentError(f"{where}: {name}() returned {made!r}, which is not a memory")
        return made

    return MemoryChoice(name, text, fingerprint(function, options), create)


def _taken(where: str, function: Callable[..., Any]) -> set[str]:
    """Return which options a function takes; ``"**"`` if it takes any."""
    parameters = parameters_of(where, function)
    names = {p.name for p in parameters.values() if p.kind is not p.POSITIONAL_ONLY}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        names |= {*PLACE, "**"}
    return names
