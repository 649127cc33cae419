"""A small offline embedder: averaged word vectors of a language model.

WordLlama (github.com/dleemiller/WordLlama, MIT) has its model of 16 MB in its wheel and needs
neither torch nor onnxruntime. It ignores word order, so it is less accurate than a transformer.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread

from agent_brain.memories.embedders.base import Embedder
from agent_brain.memories.errors import EmbeddingError


class WordLlamaEmbedder(Embedder):
    """The 256-dimensional model of the ``wordllama`` package; loads when first used (0.3 s).

    Install it with ``pip install "agent-brain[offline]"``.
    """

    name = "wordllama-l2-supercat-256"
    dimension = 256
    batch_size = 1024
    local = True

    def __init__(self) -> None:
        self._model: Any = None
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return unit vectors; takes about 20 microseconds for a short text.

        Raises:
            EmbeddingError: The ``wordllama`` package is not installed.
        """
        return await anyio.to_thread.run_sync(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Any:
        with self._loading:
            if self._model is None:
                self._model = self._load()
        return self._model.embed([text or " " for text in texts], norm=True)

    def _load(self) -> Any:
        try:
            with _root_logger_left_alone():
                package = importlib.import_module("wordllama")
        except ModuleNotFoundError as error:
            raise EmbeddingError(
                self.name,
                'the package wordllama is not installed: pip install "agent-brain[offline]"',
            ) from error
        folder = Path(str(package.__file__)).parent  # its own loader would ask the network
        return package.WordLlama.load(cache_dir=folder, disable_download=True)


@contextmanager
def _root_logger_left_alone() -> Iterator[None]:
    """Keep the import of wordllama from configuring the logging of the program.

    It calls :func:`logging.basicConfig`, which does nothing if the root logger has a handler. So it
    gets :data:`logging.lastResort`, where records go without a handler, for the time of the import.
    """
    root, handler = logging.getLogger(), logging.lastResort
    if root.handlers or handler is None:
        yield
        return
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
