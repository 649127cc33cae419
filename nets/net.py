"""A net: states keyed by the members of one Enum, an initial state, and the edges between them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agent_brain.nets.edges import Target, as_targets, declared_targets, known_targets
from agent_brain.nets.errors import NetDefinitionError, Problem
from agent_brain.nets.validation import ALLOWABLE, check_declared, check_graph, meant, name_of
from agent_brain.states.base import State, seal
from agent_brain.states.events import Event
from agent_brain.states.output_types import OutputType, shape_of
from agent_brain.states.resilience import ErrorHook, GuardedState, Hook
from agent_brain.tools.suggest import did_you_mean

if TYPE_CHECKING:
    from agent_brain.nets.diagrams.model import Picture

Transitions = Mapping[Any, Enum | Iterable[Target] | None]


@dataclass(frozen=True, slots=True)
class Node:
    """A state in its net, with what the Brain would otherwise look up at every step."""

    key: Enum
    name: str
    state: State
    targets: frozenset[Target]
    on_enter: bool
    on_exit: bool


class Net:
    """A thinking net. Immutable; one net object drives any number of runs at once.

    Args:
        states: State objects by the members of one Enum.
        initial: Where a run begins; default: the first of ``states``.
        transitions: The edges, for states where they are to be said explicitly: a member, several,
            or None for the end. Other states tell their edges themselves (see
            :meth:`agent_brain.states.State.next_state`).
        fallback: A state that gives the best answer it can when a limit stops the run.
        name: What to call it in events and diagrams.
        allow: Problems that the net has on purpose: codes such as ``"unreachable"``, or pairs of
            a code and the state that may have the problem. Only problems of the graph can be
            allowed (:data:`agent_brain.nets.validation.ALLOWABLE`).
        before: Called with the memory before each state runs.
        after: Called with the memory after each state ran without an error.
        on_error: Called with the memory and the error when a state raised; returning True swallows
            the error (see :class:`agent_brain.states.GuardedState`).

    Raises:
        NetDefinitionError: Everything that is wrong, in one error.
    """

    def __init__(
        self,
        states: Mapping[Any, State],
        *,
        initial: Enum | None = None,
        transitions: Transitions | None = None,
        fallback: Enum | None = None,
        name: str | None = None,
        allow: Collection[str | tuple[str, Enum]] = (),
        before: Hook | None = None,
        after: Hook | None = None,
        on_error: ErrorHook | None = None,
    ) -> None:
        self._states = MappingProxyType(dict(states))
        self._transitions = MappingProxyType(dict(transitions or {}))
        self._initial = initial if initial is not None else next(iter(self._states), None)
        self._fallback = fallback
        self._name = name or _name_from(self._states)
        self._allow = frozenset(allow)
        self._hooks: dict[str, Any] = {"before": before, "after": after, "on_error": on_error}
        self._edges = self._find_edges()
        problems = self.validate()
        if problems:
            raise NetDefinitionError(problems, name=self.name)
        self._nodes = {
            key: _node(key, self._hooked(state), self._edges[key]) for key, state in states.items()
        }
        self._by_name = {node.name: node for node in self._nodes.values()}
        self.parallel = any(_is_parallel(state) for state in self._states.values())
        for state in self._states.values():
            seal(state)

    @property
    def name(self) -> str:
        """What it is called in events and diagrams."""
        return self._name

    @property
    def states(self) -> Mapping[Enum, State]:
        """The states by their keys, read-only."""
        return self._states

    @property
    def initial(self) -> Enum:
        """Where a run begins."""
        assert self._initial is not None
        return self._initial

    @property
    def fallback(self) -> Enum | None:
        """Where a run that a limit stops gives its best answer."""
        return self._fallback

    @property
    def output_type(self) -> OutputType | None:
        """The type of ``Result.output``, if a state makes one (``output_type=``)."""
        return next(iter(self._output_types()), None)

    def restore_output(self, output: Any) -> Any:
        """``output``, as it was kept as JSON data, as an object of the type that the net makes.

        What is an object of that type already, or of no type that a state makes, is returned as it
        is.
        """
        if output is None:
            return None
        for kind in self._output_types():
            try:
                return shape_of(kind).restore(output)
            except ValidationError:
                continue
        return output

    def _output_types(self) -> Iterator[OutputType]:
        """The output types of the states, then those of the nets inside them."""
        states = self._states.values()
        own = (getattr(state, "output_type", None) for state in states)
        yield from (kind for kind in own if kind is not None)
        for state in states:
            for net in subnets_of(state).values():
                yield from net._output_types()

    @property
    def edges(self) -> Mapping[Enum, tuple[Target, ...]]:
        """Where each state may go; None is the end."""
        return self._edges

    def node(self, key: Enum) -> Node:
        """The state of that key, ready to run."""
        return self._nodes[key]

    def find(self, name: str) -> Node | None:
        """The state of that name (its member's name), or None."""
        return self._by_name.get(name)

    def validate(self) -> list[Problem]:
        """Everything that is wrong; ``Net(...)`` raises it, so a built net has nothing."""
        return [*self._check_shape(), *(p for p in self._check_wiring() if not self._allowed(p))]

    def allowed(self) -> list[Problem]:
        """The problems that the net has on purpose (``allow=``)."""
        return [problem for problem in self._check_wiring() if self._allowed(problem)]

    def replace(
        self,
        states: Mapping[Any, State] | None = None,
        *,
        initial: Enum | None = None,
        transitions: Transitions | None = None,
        fallback: Enum | None = None,
        name: str | None = None,
        allow: Collection[str | tuple[str, Enum]] | None = None,
    ) -> Net:
        """A net like this one with some things changed; this one stays as it is.

        Args:
            states: States to put in place of those of the same keys, or to add.
            initial: Another initial state.
            transitions: Explicit edges to put in place of those of the same states, or to add.
            fallback: Another fallback.
            name: Another name.
            allow: Other problems to allow.

        Raises:
            NetDefinitionError: The changed net is wrong.
        """
        return Net(
            {**self._states, **(states or {})},
            initial=self._initial if initial is None else initial,
            transitions={**self._transitions, **(transitions or {})},
            fallback=self._fallback if fallback is None else fallback,
            name=name or self.name,
            allow=self._allow if allow is None else allow,
            **self._hooks,
        )

    def __or__(self, extra: Mapping[Any, State]) -> Net:
        """``net | {KEY: state}``: this net with some states replaced or added."""
        return self.replace(extra) if isinstance(extra, Mapping) else NotImplemented

    def to_mermaid(self, run: Iterable[Event] | None = None) -> str:
        """The net as a mermaid state diagram; the events of a run highlight the way it took."""
        from agent_brain.nets.diagrams.mermaid import to_mermaid

        return to_mermaid(self._picture(run))

    def to_dot(self, run: Iterable[Event] | None = None) -> str:
        """The net as a Graphviz digraph; the events of a run highlight the way it took."""
        from agent_brain.nets.diagrams.dot import to_dot

        return to_dot(self._picture(run))

    def to_svg(self, run: Iterable[Event] | None = None) -> str:
        """The net as an SVG image; the events of a run highlight the way it took."""
        from agent_brain.nets.diagrams.svg import to_svg

        return to_svg(self._picture(run))

    def _picture(self, run: Iterable[Event] | None) -> Picture:
        from agent_brain.nets.diagrams.model import draw, way_of

        return draw(self, None if run is None else way_of(run))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """How a notebook shows the net."""
        return {"image/svg+xml": self.to_svg(), "text/plain": repr(self)}

    def _allowed(self, problem: Problem) -> bool:
        if problem.code not in ALLOWABLE:
            return False
        named = {(code, name_of(key)) for code, key in (a for a in self._allow if type(a) is tuple)}
        return problem.code in self._allow or any(
            (problem.code, state) in named for state in problem.states
        )

    def _check_wiring(self) -> Iterator[Problem]:
        yield from check_graph(self._edges, self._initial, self._fallback)
        yield from self._check_edges()

    def _check_edges(self) -> Iterator[Problem]:
        for key, state in self._states.items():
            if key in self._transitions and isinstance(state, State):
                known = known_targets(state, self._states)
                if known is not None:
                    yield from check_declared(key, self._edges[key], known)

    def _hooked(self, state: State) -> State:
        return GuardedState(state, **self._hooks) if any(self._hooks.values()) else state

    def __repr__(self) -> str:
        return f"<Net {self.name!r}: {', '.join(node.name for node in self._nodes.values())}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Net:
        return self

    def _find_edges(self) -> Mapping[Enum, tuple[Target, ...]]:
        edges: dict[Enum, tuple[Target, ...]] = {}
        states: Mapping[Enum, object] = self._states  # a caller may have given anything
        for key, state in states.items():
            if key in self._transitions:
                edges[key] = tuple(dict.fromkeys(as_targets(self._transitions[key])))
            elif isinstance(state, State):
                edges[key] = tuple(declared_targets(state, self._states))
            else:  # no state at all, which is a problem of its own: it may lead anywhere
                edges[key] = (*self._states, None)
        return MappingProxyType(edges)

    def _check_shape(self) -> Iterator[Problem]:
        if not self._states:
            yield Problem("empty", "The net has no states", "Give it at least one")
            return
        yield from _check_keys(self._states)
        for role, key in (("initial", self._initial), ("fallback", self._fallback)):
            if key is not None and key not in self._states:
                yield Problem(
                    f"unknown_{role}",
                    f"The {role} state {key!r} is no state of the net",
                    meant(key, self._states)
                    or f"Take one of: {', '.join(map(name_of, self._states))}",
                )
        codes = {allowed if isinstance(allowed, str) else allowed[0] for allowed in self._allow}
        for code in sorted(codes - {*ALLOWABLE}):
            yield Problem(
                "unknown_allowance",
                f"allow= names {code!r}, which is no problem that can be allowed",
                f"Take some of: {', '.join(ALLOWABLE)}.{did_you_mean(code, ALLOWABLE)}",
            )
        for key in self._transitions:
            if key not in self._states:
                yield Problem(
                    "unknown_source",
                    f"transitions= has edges from {key!r}, which is no state of the net",
                    meant(key, self._states) or "Add that state, or leave its edges out",
                )


def as_net(net: Net | Mapping[Any, State]) -> Net:
    """``net`` itself, or a net of a plain dict, whose first state is the initial one.

    Raises:
        NetDefinitionError: The dict is no sound net, or this is neither a net nor a dict.
    """
    if isinstance(net, Net):
        return net
    given: Any = net
    if not isinstance(given, Mapping):
        problem = Problem(
            "not_a_net",
            f"{given!r} is neither a Net nor a dict of states",
            "Give a net such as react(llm); create_net('react', llm) makes one by its name",
        )
        raise NetDefinitionError([problem])
    return Net(given)


def _check_keys(states: Mapping[Any, Any]) -> Iterator[Problem]:
    kinds = {type(key) for key in states if isinstance(key, Enum)}
    for key, state in states.items():
        if not isinstance(key, Enum):
            yield Problem(
                "not_an_enum",
                f"The key {key!r} is no member of an Enum",
                "Name the states by the members of one Enum",
            )
        if not isinstance(state, State):
            wrong = "is a class: pass an instance" if isinstance(state, type) else "is no State"
            yield Problem(
                "not_a_state",
                f"State {name_of(key)!r} is {state!r}, which {wrong}",
                "Derive it from agent_brain.states.State",
                (name_of(key),),
            )
        elif inspect.iscoroutinefunction(state.run) or inspect.isgeneratorfunction(state.run):
            yield Problem(
                "not_a_generator",
                f"{type(state).__name__}.run of state {name_of(key)!r} is no async generator",
                "Write it as 'async def run(self, memory)' with at least one 'yield' in it",
                (name_of(key),),
            )
        else:
            yield from _check_async(state, name_of(key))
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        yield Problem("several_enums", f"The keys are of several Enums: {names}", "Use one Enum")


def _check_async(state: State, name: str) -> Iterator[Problem]:
    for method in (state.next_state, state.on_enter, state.on_exit):
        if inspect.ismethod(method) and not inspect.iscoroutinefunction(method):
            yield Problem(
                "not_async",
                f"{type(state).__name__}.{method.__name__} of state {name!r} is not async",
                f"Write it as 'async def {method.__name__}(self, memory)'",
                (name,),
            )


def _name_from(states: Mapping[Enum, State]) -> str:
    key = next(iter(states), None)
    return type(key).__name__ if isinstance(key, Enum) else "net"


def _is_parallel(state: State) -> bool:
    return state.parallel or any(net.parallel for net in subnets_of(state).values())


def subnets_of(state: State) -> Mapping[str, Net]:
    """The nets that a state declares to run inside it, by name."""
    return getattr(state, "subnets", {})


def _node(key: Enum, state: State, targets: Iterable[Target]) -> Node:
    kind = type(state)
    return Node(
        key,
        key.name,
        state,
        frozenset(targets),
        on_enter=kind.on_enter is not State.on_enter,
        on_exit=kind.on_exit is not State.on_exit,
    )
