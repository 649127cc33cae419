"""Memories by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from importlib import import_module

from typing_extensions import Unpack

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.options import MemoryOptions
from agent_brain.tools.suggest import did_you_mean, wrong_option
from agent_brain.tools.toolset import ToolLike

MemoryFactory = Callable[..., Memory]

_BUILT_IN = {  # imported at first use
    "layered": ("agent_brain.memories.layered", "make_layered"),
    "messages": ("agent_brain.memories.messages", "MessagesMemory"),
    "summary": ("agent_brain.memories.summary", "SummaryMemory"),
    "todo": ("agent_brain.memories.todo", "make_todo"),
    "vector": ("agent_brain.memories.vector", "VectorMemory"),
    "windowed": ("agent_brain.memories.windowed", "WindowedMemory"),
}
_factories: dict[str, MemoryFactory] = {}


def register_memory(name: str, factory: MemoryFactory) -> None:
    """Register ``factory`` under ``name`` (case-insensitive).

    Example::

        register_memory("short", lambda tools, **options: WindowedMemory(tools, max_messages=10))
        brain = Brain("react", "short")

    Args:
        name: The name for :func:`create_memory` and ``Brain(memory=…)``.
        factory: Called as ``factory(tools, **options)``.

    Raises:
        MemoryDefinitionError: The name belongs to another factory, or ``factory`` is not callable.
    """
    if not callable(factory):
        raise MemoryDefinitionError(
            f"{factory!r} is not callable: register a class, or a function that takes tools"
        )
    known = _find(name)
    if known is not None and known is not factory:
        raise MemoryDefinitionError(
            f"A memory named {name!r} is already registered: {known!r}; choose another name"
        )
    _factories[name.casefold()] = factory


def create_memory(
    name: str, tools: Iterable[ToolLike] = (), **options: Unpack[MemoryOptions]
) -> Memory:
    """Return a new memory of the kind registered under ``name``.

    Args:
        name: The name (case-insensitive).
        tools: The tools that the agent may call.
        **options: Options of the memory, such as ``journal=``. Type checkers know those of the
            built-in memories; for others call the class, or pass a ``**dict``.

    Raises:
        MemoryDefinitionError: The name is not registered, or the memory does not take an option.
    """
    factory = _find(name) if isinstance(name, str) else None
    if factory is None:
        raise MemoryDefinitionError(
            f"There is no memory named {name!r}; registered are: {', '.join(memory_names())}."
            f"{did_you_mean(name, memory_names())}"
        )
    problem = wrong_option(factory, options) if options else None
    if problem is not None:
        raise MemoryDefinitionError(f"Memory {name!r}: {problem}")
    try:
        return factory(tools, **options)
    except TypeError as error:
        try:
            inspect.signature(factory).bind(tools, **options)
        except TypeError as wrong:
            raise MemoryDefinitionError(f"Memory {name!r}: {wrong}") from wrong
        # from a memory that passes options to another one
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None or unknown[1] not in options:
            raise
        hint = did_you_mean(unknown[1], MemoryOptions.__annotations__)
        raise MemoryDefinitionError(
            f"Memory {name!r}: there is no option {unknown[1]!r}.{hint}"
        ) from error


def memory_names() -> list[str]:
    """Return all registered names, sorted."""
    return sorted({*_factories, *_BUILT_IN})


def _find(name: str) -> MemoryFactory | None:
    key = name.casefold()
    if key not in _factories and key in _BUILT_IN:
        module, attribute = _BUILT_IN[key]
        _factories[key] = getattr(import_module(module), attribute)
    return _factories.get(key)
