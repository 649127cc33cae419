"""What the makers of task sets share: seeds, words, and the check of how many tasks to make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from agent_brain.common.values import is_count
from agent_brain.errors import ExperimentError
from agent_brain.experiments.task import Task

FIRST_NAMES = (
    "Ann Bo Carla Dag Eva Finn Greta Hugo Ida Jon Kari Lars Maja Nils Olga Per Rita Sven Tora Ulf"
).split()
SURNAMES = (
    "Aas Berg Dahl Eide Foss Gran Holm Iversen Juul Kvam Lund Moe Nygaard Oby Prytz Rud Solberg "
    "Thue Vik Wold"
).split()
TOWNS = (
    "Aarhus Bergen Bilbao Cork Delft Esbjerg Freiburg Gdansk Haarlem Innsbruck Jena Kiruna Leiden "
    "Malaga Narvik Oulu Porto Quimper Reims Split Tartu Uppsala Varna Wels Ystad Zadar"
).split()
PLACES = (
    "attic barn cellar chapel clinic garage greenhouse harbour kitchen laboratory library mill "
    "museum nursery office pantry quarry shed stable studio theatre tower vault warehouse workshop"
).split()


def make_tasks(make: Callable[[Random, str], Task], n: int, *, seed: int, name: str) -> list[Task]:
    """Return ``n`` tasks, no two of which say the same.

    The first tasks of a larger set are those of a smaller one with the same seed.

    Args:
        make: Returns a task, by its random numbers and its ID.
        n: How many.
        seed: Another seed makes other tasks.
        name: The name of the set, which IDs begin with.

    Raises:
        ExperimentError: ``n`` is not a whole number from 1.
    """
    if not is_count(n):
        raise ExperimentError(f"{name.replace('-', '_')}(n={n!r}): a whole number from 1")
    tasks: list[Task] = []
    seen: set[tuple[str, ...]] = set()
    while len(tasks) < n:
        random = Random(f"{name} {seed} {len(tasks)}")
        while True:
            task = make(random, f"{name}-{len(tasks) + 1:03}")
            said = tuple(turn.text for turn in task.all_turns)
            if said not in seen:
                break
        seen.add(said)
        tasks.append(task)
    return tasks


def person(random: Random) -> str:
    """Return the name of a person."""
    return f"{random.choice(FIRST_NAMES)} {random.choice(SURNAMES)}"


def people(random: Random, count: int) -> list[str]:
    """Return names of different persons."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[person(random)] = None
    return list(found)


def code(random: Random) -> str:
    """Return a code that cannot be guessed, such as "K7-4821"."""
    letters = "BCDFGHJKLMNPQRSTVWXZ"
    return f"{random.choice(letters)}{random.randrange(2, 10)}-{random.randrange(1000, 10000)}"


def shuffled(random: Random, items: Sequence[str]) -> list[str]:
    """Return the items in another order."""
    return random.sample(list(items), len(items))
