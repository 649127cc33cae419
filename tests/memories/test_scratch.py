"""Scratch and session hold JSON values, and refuse others where they are assigned."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import AsyncIterator, Callable
from enum import Enum, IntEnum, StrEnum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from agent_brain import Brain, Memory, MessagesMemory, Net, State
from agent_brain.errors import AgentBrainError, ScratchError
from agent_brain.memories import Control, RamJournal
from agent_brain.nets import SubnetState
from agent_brain.testing import FakeMemory, run_state


class Only(Enum):
    NOTING = "noting"


class Model(BaseModel):
    x: int = 1


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Noting(State):
    """Does something to the memory while it runs."""

    def __init__(self, act: Callable[[Memory], object], *, late: bool = False) -> None:
        self.act = act
        self.late = late

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        self.act(memory)
        yield "done"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


def put(value: Any) -> Callable[[Memory], object]:
    return lambda memory: memory.control.scratch.__setitem__("basket", value)


LOOP: list[Any] = []
LOOP.append(LOOP)

REFUSED = [
    ({"pear"}, "holds a set.*use a sorted list"),
    (frozenset(), "holds a frozenset"),
    (object(), "holds a object"),
    ((1, 2), "holds a tuple.*use a list"),
    (b"bytes", "holds a bytes"),
    (Model(), r"model_dump\(mode='json'\)"),
    (float("nan"), "holds nan"),
    (float("-inf"), "holds -inf"),
    ({1: "one"}, "the key 1"),
    (["a", {"b": [{"c": {1}}]}], r"at \[1\]\['b'\]\[0\]\['c'\] holds a set"),
    (LOOP, "contains itself"),
]


@pytest.mark.parametrize("room", ["scratch", "session"])
@pytest.mark.parametrize(("value", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_what_json_does_not_have_is_refused_with_its_key(
    room: str, value: Any, problem: str
) -> None:
    kept = getattr(Control(), room)
    for assign in (
        lambda: kept.__setitem__("basket", value),
        lambda: kept.setdefault("basket", value),
        lambda: kept.update(before=1, basket=value),
        lambda: kept.update({"basket": value}),
        lambda: kept.__ior__({"basket": value}),
    ):
        with pytest.raises(ScratchError, match=rf"the value of 'basket'.*{problem}") as caught:
            assign()
        assert (caught.value.key, caught.value.state) == ("basket", None)
        assert kept == {}


def test_a_key_is_a_text() -> None:
    with pytest.raises(ScratchError, match="keys in JSON are strings"):
        Control().scratch[1] = "one"  # type: ignore[index]


@pytest.mark.parametrize("make", [lambda v: Control(scratch=v), lambda v: _assigned(v)])
def test_a_whole_dict_is_checked_too(make: Callable[[Any], Control]) -> None:
    assert make({"a": [1]}).scratch == {"a": [1]}
    with pytest.raises((ScratchError, ValidationError), match="holds a set"):
        make({"a": {1}})


def _assigned(value: Any) -> Control:
    control = Control()
    control.scratch = value
    with pytest.raises(ScratchError):
        control.scratch["other"] = {1}
    return control


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from([*Colour, *Level]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON))
def test_all_that_json_holds_is_kept_and_comes_back_equal(values: dict[str, Any]) -> None:
    control = Control()
    control.scratch.update(values)
    control.check_notes("STATE")
    assert control.scratch == values
    assert json.loads(json.dumps(control.scratch)) == values
    for same in (
        control.model_copy(deep=True),
        Control.model_validate_json(control.model_dump_json()),
        Control.model_validate(control.model_dump(mode="json")),
    ):
        assert same.scratch == values
        with pytest.raises(ScratchError):
            same.scratch["k"] = {1}


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda s: s.copy(), lambda s: pickle.loads(pickle.dumps(s))],
)
def test_a_copy_refuses_the_same(copied: Callable[[Any], Any]) -> None:
    kept = Control().scratch
    kept["a"] = [1]
    same = copied(kept)
    assert same == kept
    same["b"] = 1
    assert "b" not in kept
    with pytest.raises(ScratchError):
        same["c"] = {1}


@pytest.mark.anyio
@pytest.mark.parametrize("memory", [FakeMemory, lambda goal: MessagesMemory(journal=RamJournal())])
@pytest.mark.parametrize("inside", [False, True])
async def test_a_state_that_does_it_is_named(memory: Callable[[str], Memory], inside: bool) -> None:
    net = Net({Only.NOTING: Noting(put({"pear"}))})
    if inside:
        net = Net({_Outer.OUTER: SubnetState(net)})
    with pytest.raises(ScratchError, match=r"State 'NOTING': the value of 'basket' holds a set"):
        await Brain(net, memory("go")).run("go")
    with pytest.raises(ScratchError, match=r"State 'Noting': the value of 'basket' holds a set"):
        await run_state(Noting(put({"pear"})), FakeMemory("go"))


class _Outer(Enum):
    OUTER = "outer"


def _in_place(memory: Memory) -> None:
    memory.control.scratch.setdefault("basket", []).append({"pear"})


@pytest.mark.anyio
async def test_what_is_put_into_a_list_is_checked_when_the_step_ends() -> None:
    memory = MessagesMemory(journal=RamJournal())
    with pytest.raises(ScratchError, match=r"'NOTING': the value of 'basket' at \[0\] holds a set"):
        await Brain(Net({Only.NOTING: Noting(_in_place)}), memory).run("go")
    assert "basket" not in memory.control.scratch
    with pytest.raises(ScratchError, match=r"'Noting': the value of 'basket' at \[0\]"):
        await run_state(Noting(_in_place), FakeMemory("go"))


@pytest.mark.anyio
async def test_a_list_may_be_changed_in_place() -> None:
    def add(memory: Memory) -> None:
        memory.control.scratch.setdefault("basket", []).append("pear")

    done = await run_state(Noting(add), FakeMemory("go"))
    assert done.memory.control.scratch == {"basket": ["pear"]}


def test_it_is_one_of_our_errors() -> None:
    assert issubclass(ScratchError, AgentBrainError)
