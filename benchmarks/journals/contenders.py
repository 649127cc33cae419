"""What is compared: the journals, and LangGraph's checkpointers in an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass

from benchmarks.journals.measure import IN_PROCESS, Figures, Sizes, Task
from benchmarks.peers.environments import Peer
from scripts.link_package import ROOT

# Its saver for Redis is not here: it needs the modules RediSearch and RedisJSON on the server.
LANGGRAPH = Peer(
    "langgraph-savers",
    "langgraph",
    (
        "langgraph==1.2.22", "langchain==1.4.7", "langchain-core==1.7.2",
        "langgraph-checkpoint-sqlite==3.1.2", "langgraph-checkpoint-postgres==3.2.0",
        "psycopg[binary]==3.3.9",
    ),
)  # fmt: skip
LIBRARIES = {"ours": "Agent Brain", "langgraph": f"langgraph {LANGGRAPH.version}"}
STORAGES = {
    "none": "none",
    "ram": "RAM",
    "sqlite": "SQLite",
    "redis": "Redis",
    "postgres": "PostgreSQL",
}


@dataclass(frozen=True, slots=True)
class Contender:
    """A library over a kind of storage.

    Attributes:
        program: The module in ``programs``.
        storage: The kind of a place.
        durability: As the library calls it.
        reads_alike: It differs from another one in how it writes alone.
    """

    program: str
    storage: str
    durability: str = ""
    reads_alike: bool = False

    @property
    def title(self) -> str:
        storage = STORAGES[self.storage]
        return f"{storage}, {self.durability}" if self.durability else storage

    def offers(self, group: str) -> bool:
        """Return whether the group is measured: RAM has no size and does not survive."""
        if group == "opening":
            return self.storage != "none" and not self.reads_alike
        return group == "steps" or self.storage not in IN_PROCESS

    def task(self, group: str, sizes: Sizes, server: str) -> Task:
        return Task(self.program, self.storage, self.durability, server, group, sizes)

    def measure(self, group: str, sizes: Sizes, server: str) -> Figures:
        """Return the figures of a group, measured in a process of its own; none if that fails."""
        python = str(LANGGRAPH.python) if self.program == "langgraph" else sys.executable
        task = json.dumps(asdict(self.task(group, sizes, server)))
        command = [python, "-m", "benchmarks.journals.measure", task]
        where = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        where.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(
            command, cwd=ROOT, env=where, stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            print(f"{self.program}, {self.title}: {group} failed, see above", file=sys.stderr)
            return {}
        return dict(json.loads(done.stdout.splitlines()[-1]))


CONTENDERS = (
    Contender("ours", "none"),
    Contender("langgraph", "none"),
    Contender("ours", "ram"),
    Contender("langgraph", "ram", "async"),
    Contender("langgraph", "ram", "sync", reads_alike=True),
    Contender("ours", "sqlite", "disk"),
    Contender("ours", "sqlite", "os", reads_alike=True),
    Contender("langgraph", "sqlite", "async"),
    Contender("langgraph", "sqlite", "sync", reads_alike=True),
    Contender("ours", "postgres", "disk"),
    Contender("ours", "postgres", "memory", reads_alike=True),
    Contender("langgraph", "postgres", "async"),
    Contender("langgraph", "postgres", "sync", reads_alike=True),
    Contender("ours", "redis", "memory"),
)
