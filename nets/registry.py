"""The registry of nets by name."""

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
    """Register a net, so that ``create_net(name)`` and ``Brain(name)`` make it.

    Args:
        name: The name; case is ignored, and ``-`` equals ``_``.
        factory: Called as ``factory(llm, **options)``; returns a net.

    Raises:
        UnknownNetError: The name belongs to another factory, or the factory cannot be called.
    """
    if not callable(factory):
        raise UnknownNetError(f"{factory!r} is not callable: register a function of a model")
    known = _find(name)
    if known is not None and known is not factory:
        raise UnknownNetError(
            f"A net named {name!r} is already registered ({known!r}): use another name"
        )
    _factories[_key(name)] = factory


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
    """Return the registered names, sorted."""
    return sorted({*_factories, *_BUILT_IN})


def describe_net(name: str) -> str:
    """Return the first line of the documentation of a registered net."""
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
