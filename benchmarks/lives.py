"""Recall over all earlier conversations of a user with an assistant, whose messages are much longer.

    python -m benchmarks.lives realmem.json [--embedder minilm] [--facts]

The file is a list of users, such as those of RealMem: ``messages`` in order (``id``, ``thread``,
``role``, ``text``, ``when``), ``facts`` (the same without a role) and ``queries``: the ``text`` that a
user writes when there are ``before`` messages, the ``threads`` that it needs, and the messages that
hold what it needs (``gold``), the user's or the assistant's. No language model is involved; the data
are not part of this repository.

Printed are the shares of the needed threads among the first 5 and 10 that messages of are returned,
and within the first 1,500 tokens of these messages, and the share of the messages that hold what is
needed among the first 10, also of those of each role. With an embedder, the same is printed of the
cosine of whole messages alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from agent_brain.memories import Message, VectorMemory
from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.memories.vectors.ram import unit_vectors
from benchmarks.minilm import embedder_of

RETURNED, TOKENS = 50, 1_500
COLUMNS = ["threads@5", "threads@10", "1,500 tokens", "messages@10", "the user's", "others'"]
Item = dict[str, Any]
Figures = list[float | None]


def share(found: Iterable[str], needed: Sequence[str]) -> float | None:
    """Return which part of what is needed was found; None if nothing is needed."""
    return len({*found} & {*needed}) / len({*needed}) if needed else None


def judge(hits: list[Item], query: Item, roles: dict[str, str]) -> Figures:
    """Return the figures of :data:`COLUMNS` for a query."""
    threads = [*dict.fromkeys(hit["thread"] for hit in hits)]
    used = np.cumsum([len(hit["text"]) // 4 + 1 for hit in hits])
    shown = [hit["thread"] for hit, tokens in zip(hits, used, strict=True) if tokens <= TOKENS]
    first = [hit["id"] for hit in hits[:10]]
    own = [message for message in query["gold"] if roles[message] == "user"]
    others = [message for message in query["gold"] if roles[message] != "user"]
    return [
        *(share(threads[:k], query["threads"]) for k in (5, 10)),
        share(shown, query["threads"]),
        *(share(first, needed) for needed in (query["gold"], own, others)),
    ]


def as_message(item: Item) -> Message:
    time = datetime.fromisoformat(item["when"]).replace(tzinfo=UTC)
    where = {"conversation": item["thread"]}
    return Message(
        role=item.get("role", "user"),
        content=item["text"],
        id=item["id"],
        created_at=time,
        metadata=where,
    )


async def recalled(
    user: Item, embedder: Embedder | None, *, facts: bool
) -> dict[str, list[Figures]]:
    """Return the figures of each query, of recall and of the cosine alone."""
    places = {message["id"]: place for place, message in enumerate(user["messages"])}
    roles = {message["id"]: message["role"] for message in user["messages"]}
    if facts:  # a fact is known when its thread has begun
        begun = {m["thread"]: places[m["id"]] for m in reversed(user["messages"])}
        places |= {fact["id"]: begun[fact["thread"]] for fact in user["facts"]}
    items = sorted(user["facts" if facts else "messages"], key=lambda item: places[item["id"]])
    vectors = None
    if embedder is not None:
        vectors = unit_vectors(await embed_all(embedder, [item["text"] for item in items]))
    memory, known, figures = VectorMemory(embedder=embedder), 0, dict[str, list[Figures]]()
    for query in sorted(user["queries"], key=lambda query: query["before"]):
        start = known
        while known < len(items) and places[items[known]["id"]] < query["before"]:
            known += 1
        await memory.update([as_message(item) for item in items[start:known]])
        by_id = {item["id"]: item for item in items[:known]}
        found = await memory.recall(query["text"], RETURNED)
        hits = {"recall": [by_id[hit.message.id] for hit in found]}
        if embedder is not None and vectors is not None:
            (asked,) = unit_vectors(await embed_all(embedder, [query["text"]]))
            nearest = np.argsort(-(vectors[:known] @ asked), kind="stable")[:RETURNED]
            hits["cosine"] = [items[place] for place in nearest]
        for system, those in hits.items():
            figures.setdefault(system, []).append(judge(those, query, roles))
    return figures


def show(system: str, name: str, rows: list[Figures]) -> None:
    columns = [[f for f in column if f is not None] for column in zip(*rows, strict=True)]
    means = " | ".join(f"{statistics.fmean(column):.3f}" for column in columns)
    print(f"| {system} | {name} | {len(rows)} | {means} |", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="none", help="none (default), wordllama, minilm …")
    parser.add_argument("--facts", action="store_true", help="the facts in place of the messages")
    options = parser.parse_args()
    embedder = embedder_of(options.embedder)
    columns = COLUMNS[:3] if options.facts else COLUMNS
    print(
        f"| system | user | queries | {' | '.join(columns)} |\n|---|" + "---|" * (len(columns) + 2)
    )
    rows: dict[str, list[Figures]] = {}
    for user in json.loads(options.data.read_text("utf-8")):
        found = await recalled(user, embedder, facts=options.facts)
        for system, figures in found.items():
            own = [each[: len(columns)] for each in figures]
            rows.setdefault(system, []).extend(own)
            show(system, user["messages"][0]["id"].partition("|")[0], own)
    for system, figures in rows.items():
        show(system, "all", figures)


if __name__ == "__main__":
    anyio.run(main)
