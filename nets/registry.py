"""The registry of nets by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from typing_extensions import Unpack

from agent_brain.common.registry import Registry
from agent_brain.nets.errors import UnknownNetError
from agent_brain.nets.net import Net
from agent_brain.nets.options import LIBRARY, NetOptions
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm

NetFactory = Callable[..., Net]

_registry = Registry[Net](
    "net",
    UnknownNetError,
    {name: f"agent_brain.nets.library.{name}:{name}" for name in LIBRARY.split()},
)


def register_net(name: str, factory: NetFactory) -> None:
    """Register a net, so that ``create_net(name)`` and ``Brain(name)`` make it.

    Args:
        name: The name; case is ignored, and ``-`` equals ``_``.
        factory: Called as ``factory(llm, **options)``; returns a net.

    Raises:
        UnknownNetError: The name belongs to another factory, or the factory cannot be called.
    """
    _registry.register(name, factory)


def create_net(name: str, llm: LLM | str, **options: Unpack[NetOptions]) -> Net:
    """Return a new net by its registered name.

    Args:
        name: The name; case is ignored, and ``-`` equals ``_``.
        llm: The model of its states, or the name of one.
        **options: Options of the net's function, such as ``output_type=``. Type checkers know those
            of the built-in nets; for others, call the function itself or pass a ``**dict``.

    Raises:
        UnknownNetError: The name is unknown, or the net does not take the options.
        StateDefinitionError: ``llm`` is neither a model nor a name.
    """
    factory = _registry.resolve(name, llm, options)
    return factory(as_llm(llm), **options)


def net_names() -> list[str]:
    """Return the registered names, sorted."""
    return _registry.names()


def find_net(name: str) -> NetFactory | None:
    """Return the function that is registered under ``name``; None if there is none."""
    return _registry.find(name)


def describe_net(name: str) -> str:
    """Return the first line of the documentation of a registered net."""
    factory = _registry.find(name)
    if factory is None:
        raise KeyError(name)
    return (inspect.getdoc(factory) or "").partition("\n")[0]
