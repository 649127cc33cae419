"""What has become of each fact, as items come and go, is what looking at all of them gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agent_brain.memories import Fact, Message, Origin
from agent_brain.memories.store.log import MessageLog
from agent_brain.memories.user.facts import Again, Ended, resolve
from agent_brain.memories.user.known import Known, as_message
from tests.memories.user.support import day
from tests.support.thorough import examples

facts = st.builds(
    lambda number, at, late, until, who, slot, unsure, named: Fact(
        id=f"f{number}",
        text=f"fact {number % 7}",
        slot=slot,
        origin=who,
        unsure=unsure,
        said_at=day(at),
        valid_from=day(at + late),
        valid_to=None if until is None else day(max(until, at + late)),
        recorded_at=day(at),
        replaces=tuple(f"f{n}" for n in named),
    ),
    st.integers(0, 30),
    st.integers(0, 20),
    st.sampled_from([0, 0, 0, 5, -5]),
    st.sampled_from([None, None, None, 3, 15]),
    st.sampled_from([Origin.USER, Origin.USER, Origin.ASSISTANT, Origin.TOOL]),
    st.sampled_from(["home", "job", None, None]),
    st.booleans(),
    st.lists(st.integers(0, 30), max_size=2),
)
ids = st.integers(0, 30).map("f{}".format)
steps = st.one_of(
    facts,
    st.builds(lambda fact, at: Again(fact=fact, at=day(at)), ids, st.integers(0, 20)),
    st.builds(lambda fact, at: Ended(ids=(fact,), at=day(at)), ids, st.integers(0, 30)),
    st.tuples(st.just("remove"), st.integers(0, 60)),
    st.tuples(st.just("wait"), st.integers(1, 9)),
    st.just(("look", 0)),
)


def as_a_whole(items: dict[str, BaseModel], now: int) -> list[Fact]:
    ended = {i: e.at for e in items.values() if isinstance(e, Ended) for i in e.ids}
    again = [each for each in items.values() if isinstance(each, Again)]
    found = [each for each in items.values() if isinstance(each, Fact)]
    return [*resolve(found, day(now), ended, again).values()]


@settings(max_examples=examples(500))
@given(st.lists(steps, max_size=40))
def test_it_is_what_looking_at_everything_gives(drawn: list) -> None:
    known, items, now = Known(), dict[str, BaseModel](), 0
    known.attach(MessageLog())
    known.look()
    for number, step in enumerate(drawn):
        if isinstance(step, BaseModel):
            message = as_message(step)
            name = message.id if isinstance(step, Fact) else f"m{number}"
            if name not in items:
                known.add([message.model_copy(update={"id": name})])
                items[name] = step
            continue
        what, value = step
        if what == "wait":
            now += value
        elif what == "remove":
            name = f"f{value}" if value <= 30 else f"m{value - 30}"
            known.remove([Message.user("", id=name)])
            items.pop(name, None)
        known.look()
        assert [*known.facts(day(now)).values()] == as_a_whole(items, now)
    known.look()
    assert [*known.facts(day(now)).values()] == as_a_whole(items, now)
    for fact in known.all(Fact):
        same = [each for each in known.facts(day(now)).values() if each.said == fact.said]
        assert known.said_as(fact) == same
