"""Structured content of messages."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain.memories import (
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessagesMemory,
    register_schema,
)

pytestmark = pytest.mark.anyio


@register_schema
class Town(BaseModel):
    name: str
    people: int = 0


class Country(BaseModel):
    cities: list[Town]


register_schema(Country, "a country")


async def test_objects_come_back_from_a_journal(tmp_path) -> None:
    porto = Town(name="Porto", people=230_000)
    country = Country(cities=[porto])
    async with MessagesMemory(journal=tmp_path / "cities.db") as memory:
        said = Message.assistant("It is Porto.", metadata={"n": 1}).with_data(porto)
        await memory.update([said, Message.assistant().with_data(country)])
    async with MessagesMemory(journal=tmp_path / "cities.db") as later:
        city, both = await later.messages()
        assert (city.content, city.metadata["n"], city.data(Town)) == ("It is Porto.", 1, porto)
        assert (city.data(Country), city.data(BaseModel)) == (None, porto)
        assert (both.content, both.data(Country)) == (country.model_dump_json(), country)
        assert await later.messages(text="230000")
    assert Message.user("hello").data(Town) is None
    assert Message.user("hello", metadata={"structured_data": "my own"}).data(Town) is None


def test_data_imports_nothing_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wave", raising=False)  # a package may have imported it

    def stored(schema: str, value: object) -> Message:
        data = {"structured_data": {"schema": schema, "value": value}}
        return Message.model_validate({"role": "user", "metadata": data})

    with pytest.raises(MemoryUseError, match=r"no schema named 'wave:Wave_read'.*a country, town"):
        stored("wave:Wave_read", {}).data(Town)
    assert "wave" not in sys.modules
    with pytest.raises(MemoryUseError, match=r"does not fit its schema.*people"):
        stored("town", {"name": "Porto", "people": "many"}).data(Town)


def test_what_cannot_be_registered_is_refused() -> None:
    class Unknown(BaseModel):
        n: int

    with pytest.raises(
        MemoryUseError, match=r"Unknown is not registered: call register_schema\(\)"
    ):
        Message.user("x").with_data(Unknown(n=1))
    with pytest.raises(MemoryDefinitionError, match="already registered"):
        register_schema(Unknown, "Town")
    for wrong in (dict, Town(name="Porto"), "Town"):
        with pytest.raises(MemoryDefinitionError, match="not a pydantic model"):
            register_schema(wrong)  # type: ignore[type-var, arg-type]


def test_a_class_that_is_defined_again_replaces_itself() -> None:
    code = "class River(BaseModel):\n    name: str"
    for _ in range(2):  # as in a cell of a notebook
        cell: dict[str, Any] = {"BaseModel": BaseModel, "__name__": "cell"}
        exec(code, cell)
        river = register_schema(cell["River"])
    assert isinstance(Message.user("x").with_data(river(name="Douro")).data(river), river)
    other: dict[str, Any] = {"BaseModel": BaseModel, "__name__": "other"}
    exec(code, other)
    with pytest.raises(MemoryDefinitionError, match="already registered"):
        register_schema(other["River"])
