"""An offline embedder that is 16 MB small: word vectors of a language model, averaged.

WordLlama (github.com/dleemiller/WordLlama, MIT) carries its model in its wheel and needs neither
torch nor onnxruntime. It knows words, not word order: less than a transformer, more than nothing.
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

    def __init__(self) -> None:
        self._model: Any = None
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> Any:
        """Unit vectors; about 20 microseconds a short text.

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
    """Keep wordllama's import from making the program log everything to stderr.

    It calls :func:`logging.basicConfig`, which does nothing where the root logger has a handler.
    This gives it the one that it is without: records go where they would go anyway.
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
