"""The registry of nets by name, with the built-in nets and the types of their options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from typing_extensions import Unpack

from agent_brain.common.registry import Registry
from agent_brain.nets.errors import UnknownNetError
from agent_brain.nets.net import Net
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_brain.nets.composition import NetLike
    from agent_brain.nets.library.graph_operations import Operation
    from agent_brain.nets.library.router import Choose, Routes
    from agent_brain.nets.library.tree_of_thoughts import Assess, Propose
    from agent_brain.nets.library.voting import Judge
    from agent_brain.states.evaluation import Evaluate
    from agent_brain.states.output_types import Check
    from agent_brain.states.prompts import Prompt
    from agent_brain.states.reasoning import Mode
    from agent_brain.tools.toolset import ToolLike

LIBRARY = (
    "debate graph_of_thoughts plan_execute react refact reflexion router self_consistency "
    "tree_of_thoughts"
)


class NetOptions(TypedDict, total=False):
    """The options of all built-in nets; their functions document them.

    A net refuses those that it does not take.
    """

    answer_llm: LLM | str | None
    answer_prompt: Prompt
    attempt: NetLike | None
    attempts: int
    breadth: int
    check: Check | None
    choose: Choose | LLM | str | None
    corrections: int
    depth: int
    evaluate: LLM | Evaluate | Assess | str | None
    evaluate_prompt: Prompt
    fallback: bool
    max_calls: int
    max_concurrency: int | None
    max_plans: int
    max_steps: int
    mode: Mode
    moderator: LLM | str | None
    moderator_prompt: Prompt
    normalise: Callable[[str], str]
    operations: Sequence[Operation | Mapping[str, Any]]
    output_type: Any
    path: NetLike | None
    paths: int
    persona_prompt: str
    personas: Mapping[str, str | NetLike] | None
    plan_llm: LLM | str | None
    plan_prompt: Prompt
    prompt: Prompt | None
    propose: LLM | Propose | str
    propose_prompt: Prompt
    reflect_llm: LLM | str | None
    reflect_prompt: Prompt
    rounds: int
    routes: Routes | None
    step: NetLike | None
    step_prompt: Prompt | None
    strategy: Literal["bfs", "dfs"]
    thoughts: int
    threshold: float
    tools: Iterable[ToolLike]
    vote: LLM | Judge | str
    vote_prompt: Prompt


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
