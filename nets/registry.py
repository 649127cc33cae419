"""Nets by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module

from typing_extensions import Unpack

from agent_brain.nets.errors import UnknownNetError
from agent_brain.nets.net import Net
from agent_brain.nets.options import NetOptions
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.tools.suggest import did_you_mean, wrong_option

NetFactory = Callable[..., Net]

_BUILT_IN = (  # functions in modules of their names, imported at first use
    "debate",
    "graph_of_thoughts",
    "plan_execute",
    "react",
    "refact",
    "reflexion",
    "router",
    "self_consistency",
    "tree_of_thoughts",
)
_factories: dict[str, NetFactory] = {}


def register_net(name: str, factory: NetFactory) -> None:
    """Make ``factory`` available as ``name``; case, and ``-`` for ``_``, make no difference.

    Args:
        name: What :func:`create_net` and ``Brain(net=…)`` will know it by.
        factory: Called as ``factory(llm, **options)``; returns a net.

    Raises:
        UnknownNetError: The name is taken by another factory, or the factory cannot be called.
    """
    if not callable(factory):
        raise UnknownNetError(f"{factory!r} is not callable: register a function of a model")
    known = _find(name)
    if known is not None and known is not factory:
        raise UnknownNetError(
            f"A net named {name!r} is already registered: {known!r}; take another name"
        )
    _factories[_key(name)] = factory


def create_net(name: str, llm: LLM | str, **options: Unpack[NetOptions]) -> Net:
    """A new net of the registered ``name``.

    Args:
        name: Case does not matter, nor ``-`` for ``_``.
        llm: The model its states use, or its name.
        **options: What the net's function takes, such as ``output_type=``. Type checkers know those
            of the built-in nets; for others call the net's own function, or pass a ``**dict``.

    Raises:
        UnknownNetError: No such name, or options that the net does not take.
        StateDefinitionError: ``llm`` is neither a model nor a name.
    """
    factory = _find(name) if isinstance(name, str) else None
    if factory is None:
        raise UnknownNetError(
            f"There is no net named {name!r}; registered are: {', '.join(net_names())}."
            f"{did_you_mean(name, net_names())}"
        )
    problem = wrong_option(factory, options)
    if problem is not None:
        raise UnknownNetError(f"Net {name!r}: {problem}")
    try:
        inspect.signature(factory).bind(llm, **options)
    except TypeError as error:
        raise UnknownNetError(f"Net {name!r}: {error}") from error
    return factory(as_llm(llm), **options)


def net_names() -> list[str]:
    """Every registered name, sorted."""
    return sorted({*_factories, *_BUILT_IN})


def describe_net(name: str) -> str:
    """What the registered net ``name`` is, in a line."""
    factory = _find(name)
    if factory is None:
        raise KeyError(name)
    return (inspect.getdoc(factory) or "").partition("\n")[0]


def _find(name: str) -> NetFactory | None:
    key = _key(name)
    if key not in _factories and key in _BUILT_IN:
        _factories[key] = getattr(import_module(f"agent_brain.nets.library.{key}"), key)
    return _factories.get(key)


def _key(name: str) -> str:
    return name.casefold().replace("-", "_")
