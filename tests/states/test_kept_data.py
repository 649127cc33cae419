"""What states keep for later states: ``into=``, with all that an object has."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field, JsonValue, SecretStr

from agent_brain import Brain, Limits, Memory, Net, SubnetState, react
from agent_brain.errors import StateDefinitionError
from agent_brain.nets import MapState
from agent_brain.nets.map_state import MapResult
from agent_brain.states import AskPersonState, AskState, Notes
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


class Step(Enum):
    ASK = "ask"


class Login(BaseModel):
    model_config: ClassVar[Any] = {"serialize_by_alias": True}

    name: str
    pin: int = Field(0, exclude=True)
    word: SecretStr = Field(SecretStr(""), serialization_alias="WORD")


LOGIN: dict[str, JsonValue] = {"name": "Ann", "pin": 5, "word": "s3cret!"}


class Known(Notes):
    login: Login | None = None


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        (Login, LOGIN, LOGIN),
        (list[Login], [LOGIN], [LOGIN]),
        (set[SecretStr], ["s3cret!"], ["s3cret!"]),
        (dict[int, SecretStr], {"1": "s3cret!"}, {"1": "s3cret!"}),
        ({"type": "integer"}, 3, 3),
    ],
)
async def test_an_answer_is_kept_with_excluded_fields_and_secrets(
    kind: Any, given: Any, kept: Any
) -> None:
    brain = Brain(Net({Step.ASK: AskPersonState("Who?", kind, into="answer")}))
    await brain.run("Go")
    result = await brain.resume(input={"": given})
    assert result.stop_reason == "done"
    assert brain.memory.control.scratch["answer"] == kept
    assert "s3cret!" not in result.messages[-1].content


async def test_notes_get_an_answer_with_excluded_fields_and_secrets() -> None:
    brain = Brain(Net({Step.ASK: AskPersonState("Who?", Login, into=Known)}))
    await brain.run("Go")
    await brain.resume(input=LOGIN)
    assert Known.read(brain.memory).login == Login.model_validate(LOGIN)


async def test_values_of_a_json_schema_are_kept_in_a_field_for_anything() -> None:
    class Anything(Notes):
        age: Any = None

    brain = Brain(Net({Step.ASK: AskPersonState("Age?", {"type": "integer"}, into=Anything)}))
    await brain.run("Go")
    await brain.resume(input=3)
    assert Anything.read(brain.memory).age == 3
    with pytest.raises(StateDefinitionError, match="no field is of the type"):
        AskPersonState("Age?", {"type": "integer"}, into=Known)


async def test_items_that_had_finished_come_back_with_excluded_fields() -> None:
    args: dict[str, JsonValue] = {"name": "Ann", "pin": 5, "word": "s3cret!"}
    llm = ScriptedLLM([Action(name="final_result", args=args)] * 2)
    seen: list[Any] = []

    def join(memory: Memory, results: Sequence[MapResult]) -> str:
        seen.extend(result.output for result in results)
        return "joined"

    each = react(llm, output_type=Login)
    state = MapState(lambda memory: [1, 2], each, join=join, max_concurrency=1)
    brain = Brain(Net({Step.ASK: state}))
    await brain.run("Go", limits=Limits(max_requests=1))
    assert (await brain.resume(limits=Limits())).answer == "joined"
    assert seen == [Login.model_validate(LOGIN)] * 2


class Place(Notes):
    name: str = ""


async def test_nobody_who_is_asked_sets_whether_notes_have_ended() -> None:
    llm = ScriptedLLM(['{"name": "Oslo", "ended": true}'])
    brain = Brain(Net({Step.ASK: AskState(llm, "Where?", output_type=Place)}))
    await brain.run("Go")
    assert Place.load(brain.memory).name == "Oslo"

    brain = Brain(Net({Step.ASK: AskPersonState("Where?", Place, into="place")}))
    await brain.run("Go")
    result = await brain.resume(input={"name": "Oslo", "ended": True})
    assert result.messages[-1].content == 'Where?\n{"name":"Oslo"}'


async def test_notes_that_have_ended_are_written_as_such() -> None:
    brain = Brain(Net({Step.ASK: AskPersonState("Where?", Place, into="place")}))
    Place(name="Oslo", ended=True).write(brain.memory)
    assert Place.read(brain.memory).ended
    assert Place.load(brain.memory) == Place()


@pytest.mark.parametrize("fork", [False, True])
async def test_notes_are_written_as_such_by_states_that_ask_a_person_or_run_a_net(
    fork: bool,
) -> None:
    brain = Brain(Net({Step.ASK: AskPersonState("Where?", Place)}))
    await brain.run("Go")
    await brain.resume(input={"name": "Oslo"})
    assert Place.read(brain.memory).name == "Oslo"

    llm = ScriptedLLM([Action(name="final_result", args={"name": "Oslo"})])
    brain = Brain(Net({Step.ASK: SubnetState(react(llm, output_type=Place), fork=fork)}))
    await brain.run("Go")
    assert Place.read(brain.memory).name == "Oslo"


async def test_other_data_needs_into_where_a_person_is_asked_or_a_net_is_run() -> None:
    llm = ScriptedLLM([Action(name="final_result", args=LOGIN)])
    brain = Brain(Net({Step.ASK: SubnetState(react(llm, output_type=Login))}))
    await brain.run("Go")
    assert brain.memory.control.scratch == {}
