"""Map-reduce over documents with Pydantic AI."""

import asyncio

from pydantic_ai import Agent, RunUsage, UsageLimitExceeded, UsageLimits

# Offline: what a model says
from scripted import Scripted


def said(text: str) -> str:
    return "All are dear." if "\n" in text else f"{text.partition(' ')[0]} is dear."


model = Scripted([said] * 20)
documents = [
    f"{city} has many people." for city in ("Rome", "Oslo", "Bonn", "Bern", "Riga", "Kyiv")
]

# The program
summarizer = Agent(model, instructions="Summarize in one line.")
writer = Agent(model, instructions="Report on the summaries.")


async def report(done: dict[str, str], usage: RunUsage, budget: int) -> str:
    limits = UsageLimits(total_tokens_limit=budget)
    places = asyncio.Semaphore(2)

    async def summarize(document: str) -> None:
        async with places:
            result = await summarizer.run(document, usage=usage, usage_limits=limits)
            done[document] = result.output

    async with asyncio.TaskGroup() as group:
        for document in documents:
            if document not in done:
                group.create_task(summarize(document))
    summaries = "\n".join(done[document] for document in documents)
    return (await writer.run(summaries, usage=usage, usage_limits=limits)).output


done: dict[str, str] = {}
usage = RunUsage()
try:
    print(asyncio.run(report(done, usage, 300)))
except* UsageLimitExceeded:
    print("stopped at the budget")
    print(asyncio.run(report(done, usage, 2000)))
