"""Facts that are told early and asked late: in a long conversation, and over several sessions."""

from __future__ import annotations

from random import Random

from agent_brain.experiments.task import Task, Turn
from agent_brain.experiments.task_sets.making import PLACES, code, person, shuffled
from agent_brain.memories.message import Message

_KEPT = ("code", "password", "serial number", "license", "contract number")
_SMALL_TALK = (
    "The train to {town} was late again.",
    "I had soup with {name} today.",
    "It rains, and {name} has forgotten the umbrella.",
    "{name} plays the cello on Thursdays.",
    "We have painted the fence green.",
    "Please keep in mind that {name} is away next week.",
)
OLDER = 160  # messages after the fact: more than any window that is a default


def long_conversation(random: Random, name: str) -> Task:
    """Return a task of ten turns: facts, one of them corrected, small talk, then the question."""
    place, near, other = random.sample(PLACES, 3)
    what, another = random.sample(_KEPT, 2)
    answer = code(random)
    first = shuffled(
        random,
        [
            f"The {what} of the {place} is {code(random)}.",
            f"The {what} of the {near} is {code(random)}.",
            f"The {another} of the {place} is {code(random)}.",
        ],
    )
    corrected = f"I was wrong. The {what} of the {place} is now {answer}."
    later = [corrected, f"The {what} of the {other} is {code(random)}.", *small_talk(random, 4)]
    return Task(
        id=name,
        turns=[*first, *shuffled(random, later), f"What is the {what} of the {place}?"],
        expected=answer,
        tags=["long conversation"],
    )


def sessions(random: Random, name: str) -> Task:
    """Return a task in two sessions that say different things, with restarts in between."""
    place, near = random.sample(PLACES, 2)
    what = random.choice(_KEPT)
    one, two = code(random), code(random)
    told = f"The {what} of the {place} is {{}}."
    asked = f"What is the {what} of the {place}?"
    return Task(
        id=name,
        turns=[
            Turn(text=told.format(one), session="home"),
            Turn(text=f"The {what} of the {near} is {code(random)}.", session="home"),
            Turn(text=told.format(two), session="work"),
            Turn(text=asked, session="home", expected=one),
            Turn(text=small_talk(random, 1)[0], session="work"),
            Turn(text=asked, session="work", restart=True),
        ],
        expected=two,
        tags=["sessions"],
    )


def long_memory_task(random: Random, name: str) -> Task:
    """Return a task whose fact lies under more messages than a window shows."""
    place, *others = random.sample(PLACES, 6)
    what, another = random.sample(_KEPT, 2)
    answer = code(random)
    facts = [f"The {what} of the {place} is {answer}."]
    facts += [f"The {what} of the {other} is {code(random)}." for other in others[:3]]
    facts += [f"The {another} of the {place} is {code(random)}."]
    said = [*shuffled(random, facts), *small_talk(random, OLDER // 2)]
    return Task(
        id=name,
        turns=f"What is the {what} of the {place}?",
        expected=answer,
        messages=[m for text in said for m in (Message.user(text), Message.assistant("Noted."))],
        tags=["long memory"],
    )


def small_talk(random: Random, count: int) -> list[str]:
    """Return sentences that matter to nobody."""
    towns = ("Bergen", "Cork", "Delft", "Porto", "Tartu")
    return [
        random.choice(_SMALL_TALK).format(name=person(random), town=random.choice(towns))
        for _ in range(count)
    ]
