"""Agents that work together: a team writes an article, and specialists answer its readers.

Run it with::

    python examples/newsroom.py

Without a model in ``AGENT_BRAIN_MODEL`` scripts answer in its place. The messages of the team are
kept in ``newsroom.db``: end the program while they write, start it again, and they continue.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import anyio

from agent_brain import LLM, Brain, LiteLLM, Net, SharedMemory, Team
from agent_brain.errors import ResumeError
from agent_brain.nets import HandoffAgent, handoff
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, tool

ARTICLES = {"oslo": "Oslo was founded around 1048 and burned down in 1624."}

SCRIPTS: dict[str, list[object]] = {
    "reporter": ["Oslo was founded in 1050.", "Oslo was founded around 1048."],
    "checker": [
        Action(name="look_up", args={"topic": "oslo"}),
        "The sources say: around 1048.",
        Action(name="finish_task", args={"answer": "Oslo was founded around 1048."}),
        "Done.",
    ],
    "desk": [
        Action(name="transfer_to_archive", args={"reason": "an older article"}),
        Action(name="look_up", args={"topic": "oslo"}),
        "It burned down in 1624.",
    ],
}


@tool
def look_up(topic: str) -> str:
    """Look a topic up in the archive.

    Args:
        topic: One word, such as "oslo".
    """
    return ARTICLES.get(topic.lower(), "Nothing found.")


def model(script: str) -> LLM:
    """Return the model that ``AGENT_BRAIN_MODEL`` names, or a script."""
    name = os.environ.get("AGENT_BRAIN_MODEL")
    turns: Sequence[object] = SCRIPTS[script]
    return LiteLLM(name) if name else ScriptedLLM(turns)


def newsroom(shared: SharedMemory) -> Team:
    """Build the team: a reporter writes, a checker compares with the archive and decides."""
    reporter = Brain(
        "react",
        shared.member("reporter", watch={"task", "checker"}, description="writes"),
        llm=model("reporter"),
        net_options={"prompt": "Write one sentence. Correct what the checker tells you to."},
    )
    checker = Brain(
        "react",
        shared.member("checker", watch={"reporter"}, memory="windowed", description="checks facts"),
        [look_up],
        llm=model("checker"),
        net_options={"prompt": "Check each fact. Say what is wrong, or end the task."},
    )
    return Team([reporter, checker], max_rounds=8, may_end="checker")


def letters() -> Net:
    """Build the net that answers readers: the desk hands over to the archive."""
    agents = {
        "desk": HandoffAgent(prompt="Greet readers. Hand over what you do not know."),
        "archive": HandoffAgent(
            prompt="Answer from the archive.", description="older articles", tools=[look_up]
        ),
    }
    return handoff(model("desk"), agents, start="desk")


async def write(task: str, path: str = "newsroom.db") -> str:
    """Run the team and print who says what; continue a task that was interrupted."""
    async with SharedMemory(path, session="article") as shared:
        team = newsroom(shared)
        try:
            result = await team.resume()
        except ResumeError:  # there is none
            async with team.stream(task) as run:
                async for event in run:
                    if event.kind == "run_finished" and event.path:
                        print(f"[{event.path[0]}] {event.answer}")
            result = run.result
    return result.answer


async def main() -> None:
    print("Article:", await write("When was Oslo founded?"))
    result = await Brain(letters()).run("When did Oslo burn down?")
    speaker = result.messages[-1].sent_from
    print(f"Letter, answered by the {speaker}: {result.answer}")


if __name__ == "__main__":
    try:
        anyio.run(main)
    except KeyboardInterrupt:
        print("\nEnded. Start the program again: the team continues.")
