"""Memories by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.messages import MessagesMemory
from agent_brain.tools.base import BaseTool

MemoryFactory = Callable[..., Memory]

_factories: dict[str, MemoryFactory] = {"messages": MessagesMemory}


def register_memory(name: str, factory: MemoryFactory) -> None:
    """Make ``factory`` available as ``name`` (case-insensitive).

    Args:
        name: What :func:`create_memory` and ``Brain(memory=…)`` will know it by.
        factory: Called as ``factory(tools, **options)``.

    Raises:
        MemoryDefinitionError: The name is taken by another factory.
    """
    key = name.casefold()
    if _factories.setdefault(key, factory) is not factory:
        raise MemoryDefinitionError(
            f"A memory named {name!r} is already registered: {_factories[key]!r}; take another name"
        )


def create_memory(
    name: str, tools: Iterable[BaseTool | Callable[..., Any]] = (), **options: Any
) -> Memory:
    """A new memory of the registered ``name``.

    Raises:
        MemoryDefinitionError: No such name, or options that the memory does not take.
    """
    factory = _factories.get(name.casefold())
    if factory is None:
        raise MemoryDefinitionError(
            f"There is no memory named {name!r}; registered are: {', '.join(memory_names())}"
        )
    try:
        return factory(tools, **options)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise MemoryDefinitionError(f"Memory {name!r}: {error}") from error


def memory_names() -> list[str]:
    """Every registered name, sorted."""
    return sorted(_factories)
