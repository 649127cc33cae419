"""The peers, their pinned versions, and an environment for each."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.link_package import ROOT

FOLDER = ROOT / "build" / "peers"
SERVER = ("uvicorn==0.54.0", "uvloop==0.23.0", "httptools==0.9.0", "starlette==1.10.0")
FASTAPI = (*SERVER, "fastapi==0.165.0")


@dataclass(frozen=True, slots=True)
class Peer:
    """A library to compare with.

    Attributes:
        name: Its name on the command line, and of its environment.
        program: The module in ``programs`` that measures it.
        packages: What is installed: the first is the library itself.
    """

    name: str
    program: str
    packages: tuple[str, ...]

    @property
    def python(self) -> Path:
        return FOLDER / self.name / "bin" / "python"

    @property
    def version(self) -> str:
        return self.packages[0].partition("==")[2]


PEERS = (
    Peer("langgraph", "langgraph", ("langgraph==1.2.22", "langchain==1.4.7", "langchain-core==1.7.2", *FASTAPI)),
    Peer("pydantic-ai", "pydantic_ai", ("pydantic-ai-slim[ag-ui]==2.68.0", *SERVER)),
    Peer("openai-agents", "openai_agents", ("openai-agents==0.24.0", "openai==3.54.0", *FASTAPI)),
    Peer("burr", "burr", ("apache-burr==0.43.0", "pydantic==2.14.3", *FASTAPI)),
    Peer("workflows", "workflows", ("llama-index-workflows==2.26.1", "llama-agents-server==0.8.0", *SERVER)),
    Peer("smolagents", "smolagents", ("smolagents==1.26.0", *SERVER)),
)  # fmt: skip


def interpreter() -> str:
    """Return the Python that this environment was made with."""
    return str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")


def install(peer: Peer) -> None:
    """Make the environment of a peer, unless it is there with these packages.

    Raises:
        SystemExit: pip could not install it.
    """
    folder = FOLDER / peer.name
    done = folder / ".installed"
    wanted = "\n".join(peer.packages)
    if done.is_file() and done.read_text() == wanted:
        return
    print(f"installing {peer.packages[0]} into {folder.relative_to(ROOT)}", file=sys.stderr)
    pip = [str(peer.python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    for command in (
        [interpreter(), "-m", "venv", "--clear", str(folder)],
        [*pip, "--prefer-binary", *peer.packages],
    ):
        if subprocess.run(command, check=False).returncode:
            raise SystemExit(f"{peer.name} could not be installed: see above")
    done.write_text(wanted)
