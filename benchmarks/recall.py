"""How much of the evidence for a question is among the first messages that recall returns.

    python -m benchmarks.recall locomo10.json Chat_folder --embedder minilm

No language model is involved. Search is within the question's own conversation, every message
returned counts, and figures are means over questions; category 5 of LoCoMo (the premise is false) is
listed separately. The data are read from the given paths and are not part of this repository.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from agent_brain.memories import Message, VectorMemory
from agent_brain.memories.embedders import Embedder
from benchmarks.conversations import Conversation, Question, load
from benchmarks.minilm import embedder_of

DEPTHS = (5, 10, 20, 50)
HEADLINE = (1, 2, 3, 4)
COLUMNS = [*(f"r@{k}" for k in DEPTHS), "any@10", "all@10", "MRR@10", "nDCG@10"]
Recall = Callable[[str, int], Awaitable[list[str]]]


async def remember(conversation: Conversation, embedder: Embedder | None) -> Recall:
    """The system under test: remembers a conversation, returns how to recall from it."""
    memory = VectorMemory(embedder=embedder)
    await memory.update(
        [
            Message.user(
                t.text, id=t.id, name=t.speaker, **({"created_at": t.time} if t.time else {})
            )
            for t in conversation.turns
        ]
    )

    async def recall(question: str, k: int) -> list[str]:
        return [recalled.message.id for recalled in await memory.recall(question, k)]

    return recall


def judge(found: list[str], question: Question) -> list[float]:
    """The figures of :data:`COLUMNS` for one question."""
    gold = question.evidence
    right = [message in gold for message in found]
    first = next((place for place, hit in enumerate(right[:10], 1) if hit), None)
    gain = sum(hit / math.log2(place + 1) for place, hit in enumerate(right[:10], 1))
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(10, len(gold)) + 1))
    return [
        *(sum(right[:k]) / len(gold) for k in DEPTHS),
        float(any(right[:10])),
        float(sum(right[:10]) == len(gold)),
        1 / first if first else 0.0,
        gain / ideal,
    ]


async def measure(path: Path, name: str) -> None:
    embedder = embedder_of(name)
    asking: list[float] = []
    rows: list[tuple[int, list[float]]] = []
    turns, writing = 0, 0.0
    for conversation in load(path):
        started = time.perf_counter()
        recall = await remember(conversation, embedder)
        writing += time.perf_counter() - started
        turns += len(conversation.turns)
        for question in conversation.questions:
            started = time.perf_counter()
            found = await recall(question.text, max(DEPTHS))
            asking.append(time.perf_counter() - started)
            rows.append((question.category, judge(found, question)))
    print(f"\n### {path.name}, embedder: {name}\n")
    print(f"| category | questions | {' | '.join(COLUMNS)} |")
    print("|---|" + "---|" * (len(COLUMNS) + 1))
    groups = [("1-4", HEADLINE), *((str(c), (c,)) for c in sorted({c for c, _ in rows}))]
    for name, categories in groups:
        chosen = [figures for category, figures in rows if category in categories]
        means = [statistics.fmean(column) for column in zip(*chosen, strict=True)]
        print(f"| {name} | {len(chosen)} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    print(
        f"\n{turns} messages, written and embedded in {1000 * writing / turns:.2f} ms each; a question "
        f"takes {1000 * statistics.median(asking):.1f} ms (median), its embedding included"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path, help="LoCoMo or REALTALK data")
    parser.add_argument(
        "--embedder", default="none", help="none (default), wordllama, minilm, or a LiteLLM model"
    )
    options = parser.parse_args()
    for path in options.data:
        await measure(path, options.embedder)


if __name__ == "__main__":
    anyio.run(main)
