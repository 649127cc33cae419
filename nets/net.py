"""Nets: states by the members of one Enum, an initial state, and the edges between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agent_brain.common.suggest import did_you_mean
from agent_brain.nets.edges import Target, as_targets, declared_targets, known_targets
from agent_brain.nets.errors import NetDefinitionError, Problem
from agent_brain.nets.validation import (
    ALLOWABLE,
    check_declared,
    check_graph,
    check_hooks,
    check_keys,
    is_target,
    meant,
    name_of,
)
from agent_brain.states.base import State, seal
from agent_brain.states.events import Event
from agent_brain.states.function import FunctionState, StateFunction, is_state_function
from agent_brain.states.hooks import Hook as ModelHook
from agent_brain.states.hooks import as_hooks
from agent_brain.states.output_types import OutputType, shape_of
from agent_brain.states.resilience import ErrorHook, GuardedState, Hook
from agent_brain.tools.toolset import ToolLike, collect

if TYPE_CHECKING:
    from agent_brain.nets.diagrams.model import Diagram

Transitions = Mapping[Any, Enum | Iterable[Target] | None]


@dataclass(frozen=True, slots=True)
class Node:
    """A state in its net, with what the Brain needs at every step."""

    key: Enum
    name: str
    state: State
    targets: frozenset[Target]
    on_enter: bool
    on_exit: bool
    decides: bool  # its next_state is, or calls, code of the program
    on_error: Node | None = field(default=None, repr=False, compare=False)
    following: dict[int, Node] = field(default_factory=dict, repr=False, compare=False)


class Net:
    """A net of states. It is immutable, and one object serves any number of concurrent runs.

    For example::

        net = Net({Step.DRAFT: Draft(), Step.CHECK: Check()})
        result = await Brain(net).run("Write about the sea")

    Args:
        states: State objects, or functions for :class:`FunctionState`, by the members of one Enum.
        initial: The initial state. Default: the first of ``states``.
        transitions: Explicit edges of states: a member, several, or None for the end. Other states
            declare their edges themselves (see :meth:`agent_brain.states.State.next_state`).
        fallback: A state that gives the best answer it can when a limit stops the run.
        name: The name in events and diagrams.
        allow: Problems to allow: codes such as ``"unreachable"``, or pairs of a code and a state.
            Only problems of the graph can be allowed
            (:data:`agent_brain.nets.validation.ALLOWABLE`).
        before: Called with the memory before each state runs.
        after: Called with the memory after each state ran without an error.
        on_error: Called with the memory and the error when a state raised; returning True swallows
            the error (see :class:`agent_brain.states.GuardedState`). Or a mapping of states to
            the next states after their errors, which then do not end the run; the text of the error
            is in ``memory.control.error``.
        hooks: Hooks around every model call and tool call (:class:`agent_brain.states.Hook`).
        tools: Tools that are offered while the net runs, besides those of the memory.

    Raises:
        NetDefinitionError: The net has problems; the error lists all of them.
        ToolDefinitionError: Two of the tools have the same name.
    """

    def __init__(
        self,
        states: Mapping[Any, State | StateFunction],
        *,
        initial: Enum | None = None,
        transitions: Transitions | None = None,
        fallback: Enum | None = None,
        name: str | None = None,
        allow: Collection[str | tuple[str, Enum]] = (),
        before: Hook | None = None,
        after: Hook | None = None,
        on_error: ErrorHook | Mapping[Any, Enum] | None = None,
        hooks: Iterable[ModelHook] = (),
        tools: Iterable[ToolLike] = (),
    ) -> None:
        self._states = MappingProxyType({k: _as_state(s) for k, s in dict(states).items()})
        self._transitions = MappingProxyType(dict(transitions or {}))
        self._initial = initial if initial is not None else next(iter(self._states), None)
        self._fallback = fallback
        self._name = name or _name_from(self._states)
        self._allow = frozenset(allow)
        edges = dict(on_error) if isinstance(on_error, Mapping) else {}
        self._error_edges: Mapping[Enum, Enum] = MappingProxyType(edges)
        hook = None if isinstance(on_error, Mapping) else on_error
        self._hooks: dict[str, Any] = {"before": before, "after": after, "on_error": hook}
        self.hooks = as_hooks(hooks)
        self.tools = tuple(collect(tools, {}).values())
        self._edges = self._find_edges()
        problems = self.validate()
        if problems:
            raise NetDefinitionError(problems, name=self.name)
        self._nodes = {
            key: _node(key, self._hooked(state), self._edges[key])
            for key, state in self._states.items()
        }
        for node in self._nodes.values():  # by identity, which costs no call of Enum.__hash__
            keys = [key for key in node.targets if key is not None]
            if (target := self._error_edges.get(node.key)) is not None:
                object.__setattr__(node, "on_error", self._nodes[target])
            node.following.update({id(key): self._nodes[key] for key in keys})
        self._by_name = {node.name: node for node in self._nodes.values()}
        self.parallel = any(_is_parallel(state) for state in self._states.values())
        for state in self._states.values():
            seal(state)

    @property
    def name(self) -> str:
        """The name in events and diagrams."""
        return self._name

    @property
    def states(self) -> Mapping[Enum, State]:
        """The states by their keys (read-only)."""
        return self._states

    @property
    def initial(self) -> Enum:
        """The initial state."""
        assert self._initial is not None
        return self._initial

    @property
    def fallback(self) -> Enum | None:
        """The state that answers when a limit stops the run, if any."""
        return self._fallback

    @property
    def output_type(self) -> OutputType | None:
        """The type of ``Result.output``, if a state has an ``output_type``."""
        return next(iter(self._output_types()), None)

    def restore_output(self, output: Any, class_name: str | None = None) -> Any:
        """Return stored JSON data as an object of the net's output type.

        Data that does not fit any output type, and objects of one, are returned unchanged.

        Args:
            output: The data, or an object.
            class_name: The name of the class that it was of, as data may fit several.
        """
        if output is None:
            return None
        shapes = map(shape_of, self._output_types())
        for shape in sorted(shapes, key=lambda shape: not shape.has(class_name)):
            try:
                return shape.restore(output, class_name)
            except ValidationError:
                continue
        return output

    def _output_types(self) -> Iterator[OutputType]:
        """Yield the output types of the states, then those of inner nets."""
        states = self._states.values()
        own = (getattr(state, "output_type", None) for state in states)
        yield from (kind for kind in own if kind is not None)
        for state in states:
            for net in subnets_of(state).values():
                yield from net._output_types()

    @property
    def edges(self) -> Mapping[Enum, tuple[Target, ...]]:
        """The targets of each state; None is the end."""
        return self._edges

    @property
    def error_edges(self) -> Mapping[Enum, Enum]:
        """The targets of states with an entry in ``on_error=``."""
        return self._error_edges

    def node(self, key: Enum) -> Node:
        """Return the state of a key, ready to run."""
        return self._nodes[key]

    def find(self, name: str) -> Node | None:
        """Return the state with the name of its Enum member, or None."""
        return self._by_name.get(name)

    def validate(self) -> list[Problem]:
        """Return all problems. ``Net(...)`` raises them, so a net that was built has none."""
        return [*self._check_shape(), *(p for p in self._check_wiring() if not self._allowed(p))]

    def allowed(self) -> list[Problem]:
        """Return the problems that ``allow=`` allows."""
        return [problem for problem in self._check_wiring() if self._allowed(problem)]

    def replace(
        self,
        states: Mapping[Any, State | StateFunction] | None = None,
        *,
        initial: Enum | None = None,
        transitions: Transitions | None = None,
        fallback: Enum | None = None,
        name: str | None = None,
        allow: Collection[str | tuple[str, Enum]] | None = None,
    ) -> Net:
        """Return a changed copy.

        Args:
            states: States to replace or add, by their keys.
            initial: Another initial state.
            transitions: Explicit edges to replace or add.
            fallback: Another fallback.
            name: Another name.
            allow: Other problems to allow.

        Raises:
            NetDefinitionError: The changed net has problems.
        """
        return Net(
            {**self._states, **(states or {})},
            initial=self._initial if initial is None else initial,
            transitions={**self._transitions, **(transitions or {})},
            fallback=self._fallback if fallback is None else fallback,
            name=name or self.name,
            allow=self._allow if allow is None else allow,
            hooks=self.hooks,
            tools=self.tools,
            **{**self._hooks, "on_error": self._error_edges or self._hooks["on_error"]},
        )

    def __or__(self, extra: Mapping[Any, State | StateFunction]) -> Net:
        """Return a copy with states replaced or added: ``net | {KEY: state}``."""
        return self.replace(extra) if isinstance(extra, Mapping) else NotImplemented

    def to_mermaid(self, run: Iterable[Event] | None = None) -> str:
        """Return a Mermaid state diagram; events of a run highlight its path."""
        from agent_brain.nets.diagrams.mermaid import to_mermaid

        return to_mermaid(self._diagram(run))

    def to_dot(self, run: Iterable[Event] | None = None) -> str:
        """Return a Graphviz digraph; events of a run highlight its path."""
        from agent_brain.nets.diagrams.dot import to_dot

        return to_dot(self._diagram(run))

    def to_svg(self, run: Iterable[Event] | None = None) -> str:
        """Return an SVG image; events of a run highlight its path."""
        from agent_brain.nets.diagrams.svg import to_svg

        return to_svg(self._diagram(run))

    def _diagram(self, run: Iterable[Event] | None) -> Diagram:
        from agent_brain.nets.diagrams.model import draw

        return draw(self, run)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show the net in a notebook."""
        return {"image/svg+xml": self.to_svg(), "text/plain": repr(self)}

    def _allowed(self, problem: Problem) -> bool:
        if problem.code not in ALLOWABLE:
            return False
        named = {(code, name_of(key)) for code, key in (a for a in self._allow if type(a) is tuple)}
        return problem.code in self._allow or any(
            (problem.code, state) in named for state in problem.states
        )

    def _check_wiring(self) -> Iterator[Problem]:
        edges: dict[Enum, tuple[Target, ...]] = dict(self._edges)
        for key, target in self._error_edges.items():
            if key in edges and is_target(target):
                edges[key] = (*edges[key], target)
        yield from check_graph(edges, self._initial, self._fallback)
        for key, state in self._states.items():
            if key in self._transitions and isinstance(state, State):
                known = known_targets(state, self._states)
                if known is not None:
                    yield from check_declared(key, self._edges[key], known)

    def _hooked(self, state: State) -> State:
        return GuardedState(state, **self._hooks) if any(self._hooks.values()) else state

    def __repr__(self) -> str:
        known = vars(self)  # also of one that could not be made
        names = (str(getattr(key, "name", key)) for key in known.get("_states", ()))
        return f"<Net {known.get('_name')!r}: {', '.join(names)}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Net:
        return self

    def _find_edges(self) -> Mapping[Enum, tuple[Target, ...]]:
        edges: dict[Enum, tuple[Target, ...]] = {}
        states: Mapping[Enum, object] = self._states  # in fact, any object
        for key, state in states.items():
            if key in self._transitions:
                edges[key] = tuple(dict.fromkeys(as_targets(self._transitions[key])))
            elif isinstance(state, State):
                edges[key] = tuple(declared_targets(state, self._states))
            else:  # not a state, which is reported elsewhere
                edges[key] = (*self._states, None)
        return MappingProxyType(edges)

    def _check_shape(self) -> Iterator[Problem]:
        if not self._states:
            yield Problem("empty", "The net has no states", "Add at least one")
            return
        yield from check_keys(self._states)
        yield from check_hooks(self._hooks, self._error_edges)
        for role, key in (("initial", self._initial), ("fallback", self._fallback)):
            if key is not None and key not in self._states:
                yield Problem(
                    f"unknown_{role}",
                    f"The {role} state {key!r} is not a state of the net",
                    meant(key, self._states)
                    or f"Use one of: {', '.join(map(name_of, self._states))}",
                )
        codes = {allowed if isinstance(allowed, str) else allowed[0] for allowed in self._allow}
        for code in sorted(codes - {*ALLOWABLE}):
            yield Problem(
                "unknown_allowance",
                f"allow= has {code!r}, which is not a problem that can be allowed",
                f"Use some of: {', '.join(ALLOWABLE)}.{did_you_mean(code, ALLOWABLE)}",
            )
        sources = [("transitions=", key) for key in self._transitions]
        for option, key in [*sources, *(("on_error=", key) for key in self._error_edges)]:
            if key not in self._states:
                yield Problem(
                    "unknown_source",
                    f"{option} has edges from {key!r}, which is not a state of the net",
                    meant(key, self._states) or "Add that state, or remove its edges",
                )


def as_net(net: Net | Mapping[Any, State | StateFunction]) -> Net:
    """Return ``net`` itself, or a net made of a dict of states.

    Raises:
        NetDefinitionError: The dict has problems, or it is neither a net nor a dict.
    """
    if isinstance(net, Net):
        return net
    given: Any = net
    if not isinstance(given, Mapping):
        problem = Problem(
            "not_a_net",
            f"{given!r} is neither a Net nor a dict of states",
            "Pass a net such as react(llm), or create_net('react', llm)",
        )
        raise NetDefinitionError([problem])
    return Net(given)


def _as_state(given: Any) -> State:
    """Return a state, or that of a function; what is neither is reported with the problems."""
    return FunctionState(given) if is_state_function(given) else given


def _name_from(states: Mapping[Enum, State]) -> str:
    key = next(iter(states), None)
    return type(key).__name__ if isinstance(key, Enum) else "net"


def _is_parallel(state: State) -> bool:
    return state.parallel or any(net.parallel for net in subnets_of(state).values())


def subnets_of(state: State) -> Mapping[str, Net]:
    """Return the nets that run inside a state, by name."""
    return getattr(state, "subnets", {})


def _node(key: Enum, state: State, targets: Iterable[Target]) -> Node:
    kind, choose = type(state), getattr(state, "choose", None)
    return Node(
        key,
        key.name,
        state,
        frozenset(targets),
        on_enter=kind.on_enter is not State.on_enter,
        on_exit=kind.on_exit is not State.on_exit,
        decides=choose is not None or kind.next_state.__module__ not in _ROUTES,
    )


_ROUTES = ("agent_brain.states.base", "agent_brain.states.reasoning")
