"""The edges of a state, derived from its declarations."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

import pytest

from agent_brain import Brain
from agent_brain.memories import Memory
from agent_brain.nets import Net
from agent_brain.nets.edges import declared_targets
from agent_brain.states import (
    ActionState,
    AnswerState,
    AskState,
    GuardedState,
    ReasoningState,
    State,
)
from agent_brain.testing import ScriptedLLM
from tests.nets.states import Go, N, Other, To

if TYPE_CHECKING:
    from somewhere import Unknown  # type: ignore[import-not-found]


class Exactly(Go):
    async def next_state(self, memory: Memory) -> Literal[N.B, N.C]:
        raise NotImplementedError


class OrTheEnd(Go):
    async def next_state(self, memory: Memory) -> Literal[N.B, None]:
        raise NotImplementedError


class OptionalLiteral(Go):
    async def next_state(self, memory: Memory) -> Optional[Literal[N.B]]:  # noqa: UP045
        raise NotImplementedError


class LiteralOrNone(Go):
    async def next_state(self, memory: Memory) -> Literal[N.B] | None:
        raise NotImplementedError


class TwoLiterals(Go):
    async def next_state(self, memory: Memory) -> Union[Literal[N.B], Literal[N.C]]:  # noqa: UP007
        raise NotImplementedError


class OnlyTheEnd(Go):
    async def next_state(self, memory: Memory) -> None:
        return None


class UnknownParameter(Go):
    async def next_state(self, memory: Unknown) -> Literal[N.B]:
        raise NotImplementedError


class UnknownReturn(Go):
    async def next_state(self, memory: Memory) -> Unknown:
        raise NotImplementedError


class BrokenReturn(Go):
    async def next_state(self, memory: Memory) -> enum.Nowhere:  # type: ignore[name-defined]
        raise NotImplementedError


class Unannotated(Go):
    async def next_state(self, memory):
        raise NotImplementedError


class Strings(Go):
    async def next_state(self, memory: Memory) -> Literal["B"]:  # type: ignore[override]
        raise NotImplementedError


class Decorated(Go):
    @functools.lru_cache  # noqa: B019
    async def next_state(self, memory: Memory) -> Literal[N.B]:
        raise NotImplementedError


EVERYTHING = [N.A, N.B, N.C, N.D, None]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (Exactly(), [N.B, N.C]),
        (OrTheEnd(), [N.B, None]),
        (OptionalLiteral(), [N.B, None]),
        (LiteralOrNone(), [N.B, None]),
        (TwoLiterals(), [N.B, N.C]),
        (OnlyTheEnd(), [None]),
        (UnknownParameter(), [N.B]),
        (Decorated(), [N.B]),
        (Go(), EVERYTHING),
        (UnknownReturn(), EVERYTHING),
        (BrokenReturn(), EVERYTHING),
        (Unannotated(), EVERYTHING),
        (Strings(), ["B"]),  # not a member: the net refuses it
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, State) else "",
)
def test_the_annotation_of_next_state_declares_the_edges(state, expected):
    assert declared_targets(state, list(N)) == expected


def test_an_enum_local_to_a_function_is_found_in_the_closure():
    class Local(Enum):
        A = 1
        B = 2

    class Step(Go):
        async def next_state(self, memory: Memory) -> Literal[Local.B]:
            return Local.B

    assert declared_targets(Step(), list(Local)) == [Local.B]


def test_another_name_for_an_enum_is_found_in_the_closure_also_under_a_decorator():
    class Local(Enum):
        A = 1
        B = 2

    Short = Local

    def decorated(method: Any) -> Any:
        @functools.wraps(method)
        async def wrapper(self: State, memory: Memory) -> Any:
            return await method(self, memory)

        return wrapper

    class Step(Go):
        @decorated
        async def next_state(self, memory: Memory) -> Literal[Short.B]:  # type: ignore[name-defined]
            return Short.B

    assert declared_targets(Step(), list(Local)) == [Local.B]


def test_an_enum_local_to_a_function_is_found_among_the_keys_of_the_net():
    class Local(Enum):
        A = 1
        B = 2

    class Step(Go):
        async def next_state(self, memory: Memory) -> Literal[Local.B]:
            raise NotImplementedError  # nothing here refers to Local at run time

    assert declared_targets(Step(), list(Local)) == [Local.B]


class Configured(Go):
    def __init__(self, **parameters: Any) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)


class ConfiguredNever(Configured):
    async def next_state(self, memory: Memory) -> Enum:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"a": N.B, "b": N.C}, [N.B, N.C]),
        ({"a": N.B, "b": N.B}, [N.B]),
        ({"a": [N.B, (N.C, {N.D})]}, [N.B, N.C, N.D]),
        ({"a": {"x": N.B}, "b": {N.C: 1}, "c": frozenset({N.D})}, [N.B, N.C, N.D]),
        ({"a": N.B, "b": Other.X}, [N.B]),
        ({"a": "B", "b": 2}, EVERYTHING),
        ({"a": N}, EVERYTHING),
    ],
)
def test_the_parameters_declare_the_edges_if_the_annotation_does_not(parameters, expected):
    assert declared_targets(ConfiguredNever(**parameters), list(N)) == expected


def test_the_end_is_a_target_besides_the_parameters_if_the_annotation_includes_it():
    assert declared_targets(Configured(a=N.B), list(N)) == [N.B, None]


def test_members_of_another_enum_with_equal_values_are_not_targets():
    class Keys(enum.StrEnum):
        A = "a"
        B = "b"

    class Mode(enum.StrEnum):
        B = "b"

    assert declared_targets(ConfiguredNever(mode=Mode.B, go=Keys.A), list(Keys)) == [Keys.A]


def test_the_annotation_wins_over_the_parameters():
    state = Exactly()
    state.other = N.D

    assert declared_targets(state, list(N)) == [N.B, N.C]


def test_targets_wins_over_the_annotation():
    class Own(Exactly):
        def targets(self) -> tuple[N, ...]:
            return (N.D,)

    assert declared_targets(Own(), list(N)) == [N.D]


class Escalates(ReasoningState):
    """A built-in state that may also ask a person, as its annotation says."""

    async def next_state(self, memory: Memory) -> Literal[N.B, N.C, N.D]:
        return N.D


def test_the_annotation_of_a_subclass_wins_over_the_targets_that_it_inherits():
    state = Escalates(ScriptedLLM(), on_action=N.B, on_answer=N.C)

    assert declared_targets(state, list(N)) == [N.B, N.C, N.D]
    assert declared_targets(GuardedState(state, timeout=5), list(N)) == [N.B, N.C, N.D]


class Signs(AnswerState):
    async def next_state(self, memory: Memory) -> Literal[N.B]:
        return N.B


class SignsAData(AskState):
    async def next_state(self, memory: Memory) -> Literal[N.B]:
        return N.B


@pytest.mark.anyio
@pytest.mark.parametrize(
    "make",
    [
        lambda: Signs(ScriptedLLM(["Yes."]), ask=True),
        lambda: SignsAData(ScriptedLLM(["5"]), "How many?", output_type=int),
    ],
    ids=["Signs", "SignsAData"],
)
async def test_a_run_goes_where_the_annotated_method_of_a_subclass_says(
    make: Callable[[], State],
) -> None:
    async def sign(memory: Memory) -> str:
        return "Yours, Ann"

    result = await Brain(Net({N.A: make(), N.B: sign})).run("Write to Bob")
    assert (result.answer, result.steps) == ("Yours, Ann", 2)


def test_transitions_of_a_subclass_with_a_method_of_its_own_are_taken():
    class Own(ReasoningState):
        async def next_state(self, memory: Memory) -> Enum:
            return N.D

    states: dict[Enum, State] = {
        N.A: Own(ScriptedLLM(), on_action=N.B, on_answer=N.C),
        N.B: To(None),
        N.C: To(None),
        N.D: To(None),
    }

    assert Net(states, transitions={N.A: [N.B, N.C, N.D]}).edges[N.A] == (N.B, N.C, N.D)


def test_what_a_subclass_overrides_both_is_about_its_own_targets():
    class Own(Escalates):
        def targets(self) -> Any:
            return (N.D,)

    assert declared_targets(Own(ScriptedLLM(), on_action=N.B, on_answer=N.C), list(N)) == [N.D]


@pytest.mark.parametrize(("said", "meant"), [(N.B, [N.B]), ([None, None], [None]), ((), [])])
def test_targets_may_be_one_member_or_many(said, meant):
    class Own(Go):
        def targets(self) -> Any:
            return said

    assert declared_targets(Own(), list(N)) == meant


@pytest.mark.parametrize(
    ("explicit", "expected"),
    [(N.B, (N.B,)), (None, (None,)), ([N.B, None, N.B], (N.B, None)), (iter([N.B]), (N.B,))],
)
def test_explicit_transitions_win_over_everything(explicit, expected):
    net = Net({N.A: Go(), N.B: To(None)}, transitions={N.A: explicit}, fallback=N.B)

    assert net.edges[N.A] == expected


def test_the_built_in_states_declare_their_edges():
    llm = ScriptedLLM()
    states: dict[Enum, State] = {
        N.A: ReasoningState(llm, on_action=N.B, on_answer=N.C),
        N.B: ActionState(N.A),
        N.C: AnswerState(llm, on_done=N.D),
        N.D: AnswerState(llm),
    }

    assert dict(Net(states).edges) == {N.A: (N.B, N.C), N.B: (N.A,), N.C: (N.D,), N.D: (None,)}
