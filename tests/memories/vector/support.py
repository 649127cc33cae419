"""An embedder without a model, and a Chroma server in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_brain.memories import Message, VectorMemory
from agent_brain.memories.embedders import Embedder, EmbeddingError
from agent_brain.memories.vectors.chroma import message_of
from tests.support.ports import free_port

TOPICS = {"cat": "pet", "kitten": "pet", "dog": "pet", "car": "vehicle", "truck": "vehicle"}


class WordsEmbedder(Embedder):
    """Texts with the same words, or words of one topic, are close. Notes what it was given."""

    name = "words"

    def __init__(
        self, dimension: int | None = 32, *, name: str = "words", batch_size: int = 64
    ) -> None:
        self.dimension, self.makes = dimension, dimension or 32
        self.name = name
        self.batch_size = batch_size
        self.texts: list[str] = []
        self.calls = 0
        self.broken = False
        self.hates: str | None = None

    async def embed(self, texts):
        self.calls += 1
        if self.broken or any(self.hates and self.hates in text for text in texts):
            raise EmbeddingError(self.name, "out of order")
        self.texts += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.makes
        for word in re.findall(r"\w+", text.casefold()):
            vector[zlib.crc32(TOPICS.get(word, word).encode()) % self.makes] += 1
        return vector


def said(*texts: str) -> list[Message]:
    return [Message.user(text) for text in texts]


async def found(memory, query: str, k: int = 3, **filters) -> list[str]:
    return [recalled.message.content for recalled in await memory.recall(query, k, **filters)]


def store_of(memory: VectorMemory) -> Any:
    assert memory._vectors.store is not None
    return memory._vectors.store


def index_of(memory: VectorMemory) -> Any:
    assert memory._indexed.index is not None
    return memory._indexed.index


async def stored(memory: VectorMemory) -> set[str]:
    """The IDs of the messages whose vectors are in Chroma."""
    return {message_of(key) for key in await store_of(memory).keys()}


def bytes_under(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


class ChromaProcess:
    """``chroma run`` over a folder, on a port of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        run = "import sys; from chromadb.cli.cli import app; app()"
        where = ["run", "--path", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", run, *where],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 180
        while not self._answers():
            assert self._process.poll() is None, "chroma run has ended"
            assert time.monotonic() < deadline, "chroma run does not answer"

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=10):
                return True
        except OSError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def chroma_process(folder: Path) -> Iterator[ChromaProcess]:
    server = ChromaProcess(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
