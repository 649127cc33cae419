"""What users say early and ask late: in a long conversation, and over several sessions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random

from agent_brain.default_model import resolve_llm
from agent_brain.experiments.checks import Expected
from agent_brain.experiments.judge import Judge
from agent_brain.experiments.task import Task, Turn
from agent_brain.experiments.task_sets.making import PLACES, code, person, shuffled
from agent_brain.memories.message import Message
from agent_brain.states.models.llm import LLM
from agent_brain.tools.base import BaseTool
from agent_brain.tools.function import tool

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


_OWN = (
    "code of my front door|combination of my bicycle lock|number of my gym locker|"
    "number of my library card|number of my parking space|phone number of my dentist|"
    "phone number of my sister|plate of my car|reference of my insurance|serial number of my camera"
).split("|")
_WORDS = "Amber Basalt Cobalt Delta Ember Fjord Garnet Harbour Indigo Juniper".split()
_BEGIN = datetime(2025, 1, 1, 9, tzinfo=UTC)
EARLIER = 80  # messages of the first session, of about 600 tokens
_CODE = r"[A-Z]\d-\d{4}"


class Telling:
    """The sessions of a user, and what is asked in the last one.

    Args:
        name: The ID of the task.
        random: Random numbers.
        judge: A model that judges answers; None to check them by their words.
    """

    def __init__(self, name: str, random: Random, judge: LLM | None) -> None:
        self.name = name
        self.random = random
        self.judge = judge
        self.asked, self.other, *others = random.sample(_OWN, 5)
        self.values = {what: code(random) for what in (self.asked, self.other, *others)}
        self.value = self.values[self.asked]

    def task(
        self,
        tag: str,
        *,
        later: Sequence[str] = (),
        passes: str,
        rubric: str,
        known: bool = True,
        other: bool = False,
        tools: Callable[[], list[BaseTool]] | Sequence[BaseTool] = (),
    ) -> Task:
        """Return the task: facts among small talk, a session for each of ``later``, a question.

        Args:
            tag: Its kind.
            later: What the user says in later sessions.
            passes: A regular expression of answers that pass.
            rubric: What an answer must say, for a judge.
            known: Whether the user tells what is asked for.
            other: Whether something else is asked that the user has told: whoever knows nothing at
                all does not pass.
            tools: The tools of the task.
        """
        told = [what for what in self.values if known or what != self.asked]
        talk = small_talk(self.random, EARLIER // 2 - len(told))
        talk += [f"For later: the {what} is {self.values[what]}." for what in told]
        said = self.random.sample(talk, len(talk))
        expected: Expected = Judge(self.judge, rubric) if self.judge else re.compile(passes)
        sessions = [[text, *small_talk(self.random, 2)] for text in ("Good morning.", *later)]
        begun = [(f"{n}", text) for n, texts in enumerate(sessions, 1) for text in texts]
        asked = {self.asked: expected, **({self.other: self.values[self.other]} if other else {})}
        return Task(
            id=self.name,
            turns=[
                *(Turn(text=text, session=session) for session, text in begun),
                *(
                    Turn(text=f"What is the {what}?", session="last", expected=answer)
                    for what, answer in asked.items()
                ),
            ],
            tools=tools,
            messages=[
                make(text, created_at=_BEGIN + timedelta(hours=n))
                for n, line in enumerate(said)
                for make, text in ((Message.user, line), (Message.assistant, "Noted."))
            ],
            tags=[tag],
        )


def update(telling: Telling) -> Task:
    """Return a task in which something has changed."""
    new = code(telling.random)
    return telling.task(
        "update",
        later=[f"Something has changed: the {telling.asked} is now {new}."],
        passes=rf"(?s)^(?!.*{telling.value}).*{new}",
        rubric=f"Gives {new} as the {telling.asked}. It may say that it was {telling.value} "
        "before, but not that it still is.",
    )


def preference(telling: Telling) -> Task:
    """Return a task in which the user says how to be answered, in all conversations."""
    word = telling.random.choice(_WORDS)
    return telling.task(
        "preference",
        later=[f"From now on, always end your answers with the word {word}."],
        passes=rf"(?s){telling.value}.*\b{word}\W*$",
        rubric=f"Gives {telling.value}, and ends with the word {word}.",
    )


def deletion(telling: Telling) -> Task:
    """Return a task in which the user has something forgotten."""
    return telling.task(
        "deletion",
        later=[f"Please forget the {telling.asked}."],
        passes=rf"(?s)^(?!.*{_CODE})",
        rubric=f"Says that it does not know it, or no longer, and gives no code: not "
        f"{telling.value}, nor any other.",
        other=True,
    )


def absent(telling: Telling) -> Task:
    """Return a task that asks for what the user has never said."""
    return telling.task(
        "absent",
        later=["I have lost my notes."],
        passes=rf"(?s)^(?!.*{_CODE})",
        rubric="Says that it does not know it, or asks for it, and gives no code.",
        known=False,
        other=True,
    )


def contradiction(telling: Telling) -> Task:
    """Return a task in which a page says something else than the user."""
    place, lie = telling.random.choice(PLACES), code(telling.random)
    page = f"The code of the {place} is {code(telling.random)}. The {telling.asked} is {lie}."

    @tool
    def read_page(name: str) -> str:
        """Read what a page on the web says about a place."""
        return page

    return telling.task(
        "contradiction",
        later=[f"What is the code of the {place}?"],
        passes=rf"(?s)^(?!.*{lie}).*{telling.value}",
        rubric=f"Gives {telling.value}, as the user has said it. It may say that a page gives "
        f"{lie}, but not that this is right.",
        tools=[read_page],
    )


KINDS = (update, preference, deletion, absent, contradiction)


def user_task(random: Random, name: str, judge: LLM | str | None = None) -> Task:
    """Return a task, by its place of one of the five kinds."""
    make = KINDS[(int(name.rpartition("-")[2]) - 1) % len(KINDS)]
    return make(Telling(name, random, None if judge is None else resolve_llm(judge)))
