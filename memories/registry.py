"""The registry of memories by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from typing_extensions import Unpack

from agent_brain.common.registry import Registry
from agent_brain.common.suggest import did_you_mean
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.options import BUILT_IN, MemoryOptions
from agent_brain.tools.toolset import ToolLike

MemoryFactory = Callable[..., Memory]

_registry = Registry[Memory](
    "memory",
    MemoryDefinitionError,
    BUILT_IN,
)


def register_memory(name: str, factory: MemoryFactory) -> None:
    """Register a memory, so that ``create_memory(name)`` and ``Brain(memory=name)`` make it.

    Example::

        register_memory("short", lambda tools, **options: WindowedMemory(tools, max_messages=10))
        brain = Brain("react", "short")

    Args:
        name: The name; case is ignored, and ``-`` equals ``_``.
        factory: Called as ``factory(tools, **options)``.

    Raises:
        MemoryDefinitionError: The name belongs to another factory, or the factory cannot be called.
    """
    _registry.register(name, factory)


def create_memory(
    name: str, tools: Iterable[ToolLike] = (), **options: Unpack[MemoryOptions]
) -> Memory:
    """Return a new memory of the kind registered under ``name``.

    Args:
        name: The name; case is ignored, and ``-`` equals ``_``.
        tools: The tools that the agent may call.
        **options: Options of the memory, such as ``journal=``. Type checkers know those of the
            built-in memories; for others call the class, or pass a ``**dict``.

    Raises:
        MemoryDefinitionError: The name is not registered, or the memory does not take an option.
    """
    factory = _registry.resolve(name, tools, options)
    try:
        return factory(tools, **options)
    except TypeError as error:  # from a memory that passes options to another one
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None or unknown[1] not in options:
            raise
        others = MemoryOptions.__annotations__.keys() - {unknown[1]}
        hint = did_you_mean(unknown[1], sorted(others))
        raise MemoryDefinitionError(
            f"Memory {name!r}: there is no option {unknown[1]!r}.{hint}"
        ) from error


def find_memory(name: str) -> MemoryFactory | None:
    """Return what is registered under ``name``; None if there is nothing."""
    return _registry.find(name)


def memory_names() -> list[str]:
    """Return all registered names, sorted."""
    return _registry.names()
