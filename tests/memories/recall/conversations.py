"""A little conversation that the tests of recall share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent_brain.memories.recall.index import Hit, RecallIndex
from agent_brain.memories.recall.indexing import Item
from agent_brain.memories.vectors.ram import RamVectors, unit_vectors

START = datetime(2024, 3, 4, 9, 0, tzinfo=UTC)  # a Monday

LINES = [
    ("Ann", "Hi Bob! How was your weekend?"),
    ("Bob", "Great, I repaired the old sailing boat with my brother."),
    ("Ann", "Wow, Bob! Where do you keep the boat?"),
    ("Bob", "In the harbour of Kiel, right behind the lighthouse."),
    ("Ann", "I adopted a puppy yesterday, a small brown terrier."),
    ("Bob", "Congratulations, Ann! What is the name of the puppy?"),
    ("Ann", "We call her Pepper, because she sneezes all the time."),
    ("Bob", "The invoice INV-2041 for the new sails came to 1200 euros."),
]


def items(lines=LINES, *, thread=None, start=START, prefix="m"):
    """Lines as items a minute apart, with ids m0, m1, …"""
    return [
        Item(f"{prefix}{i}", text, sender=sender, time=start + timedelta(minutes=i), thread=thread)
        for i, (sender, text) in enumerate(lines)
    ]


def index_of(*groups) -> RecallIndex:
    index = RecallIndex()
    for group in groups or (items(),):
        index.add(group)
    return index


def cosines(vectors, question) -> dict[str, float]:
    """The cosine of each vector, by message ID, to that of a question."""
    if question is None or not vectors:
        return {}
    held = RamVectors()
    held.put([*vectors], [*vectors.values()])
    return held.nearest(unit_vectors([question])[0], len(vectors))


def ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]
