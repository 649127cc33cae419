"""Experiments for the tests of ``compare``: a model that repeats, and files that name it."""

from __future__ import annotations

from pathlib import Path

from click.testing import Result

from tests.cli.support import invoke

MODELS = '''
import signal
import sys
from pathlib import Path

from anyio import sleep_forever

from agent_brain import LLM

HERE = Path(__file__).parent


class Parrot(LLM):
    """Says what it was asked, in words; logs its calls; waits in the second one if there is a file."""

    rule_based = True
    model = "parrot"

    def __init__(self, name: str = "") -> None:
        self.name = name

    async def stream(self, messages, **options):
        asked = messages[-1].content
        with (HERE / "calls.log").open("a") as log:
            log.write(f"{self.name} {asked}\\n")
        if (HERE / "wait").exists() and len((HERE / "calls.log").read_text().splitlines()) == 2:
            print("waiting", flush=True)
            try:
                await sleep_forever()
            finally:
                if (HERE / "twice").exists():
                    signal.raise_signal(signal.SIGINT)
        if "fail" in self.name:
            raise ValueError("no parrot")
        yield f"You said {asked}"


parrot = Parrot()


def number_of_letters(text: str) -> int:
    """Count letters."""
    return len(text)


def my_tasks(n: int = 1):
    from agent_brain.experiments import Task

    return [Task(id=f"mine-{i}", turns=f"word {i}", expected="word") for i in range(n)]
'''
LEAST = """
nets = "react"
models = "models.py:parrot"
case_seconds = 60
at_once = 1

[[tasks]]
id = "hello"
turns = "hello"
expected = "You said hello"

[[tasks]]
id = "bye"
turns = "bye"
expected = "adieu"
"""
TASKS = LEAST[LEAST.index("[[tasks]]") :]


def compare(folder: Path, *options: str, text: str | None = None) -> Result:
    """Run the command on the file in the folder, after writing ``text`` into it."""
    if text is not None:
        (folder / "compare.toml").write_text(text)
    return invoke("compare", str(folder / "compare.toml"), *options)


def calls(folder: Path) -> list[str]:
    """The calls of the model so far."""
    log = folder / "calls.log"
    return log.read_text().splitlines() if log.exists() else []
