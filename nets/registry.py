"""The registry of nets by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from typing_extensions import Unpack

from agent_brain.nets.errors import UnknownNetError
from agent_brain.nets.library.debate import debate
from agent_brain.nets.library.graph_of_thoughts import graph_of_thoughts
from agent_brain.nets.library.plan_execute import plan_execute
from agent_brain.nets.library.react import react
from agent_brain.nets.library.refact import refact
from agent_brain.nets.library.reflexion import reflexion
from agent_brain.nets.library.router import router
from agent_brain.nets.library.self_consistency import self_consistency
from agent_brain.nets.library.tree_of_thoughts import tree_of_thoughts
from agent_brain.nets.net import Net
from agent_brain.nets.options import NetOptions
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.tools.suggest import did_you_mean, wrong_option

NetFactory = Callable[..., Net]

_factories: dict[str, NetFactory] = {
    "debate": debate,
    "graph_of_thoughts": graph_of_thoughts,
    "plan_execute": plan_execute,
    "react": react,
    "refact": refact,
    "reflexion": reflexion,
    "router": router,
    "self_consistency": self_consistency,
    "tree_of_thoughts": tree_of_thoughts,
}


def register_net(name: str, factory: NetFactory) -> None:
    """Register a net, so that ``create_net(name)`` and ``Brain(name)`` make it.

    Args:
        name: The name; case is ignored, and ``-`` equals ``_``.
        factory: Called as ``factory(llm, **options)``; returns a net.

    Raises:
        UnknownNetError: The name belongs to another factory, or the factory cannot be called.
    """
    if not callable(factory):
        raise UnknownNetError(f"{factory!r} cannot make a net: register a function of a model")
    key = _key(name)
    if _factories.setdefault(key, factory) is not factory:
        raise UnknownNetError(
            f"A net named {name!r} is already registered ({_factories[key]!r}): use another name"
        )


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
    factory = _factories.get(_key(name)) if isinstance(name, str) else None
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
    return sorted(_factories)


def describe_net(name: str) -> str:
    """Return the first line of the documentation of a registered net."""
    factory = _factories[_key(name)]
    return (inspect.getdoc(factory) or "").partition("\n")[0]


def _key(name: str) -> str:
    return name.casefold().replace("-", "_")
