"""Embedders on this machine: all-MiniLM-L6-v2, Chroma's default model, and WordLlama."""

from __future__ import annotations

import importlib
import logging
import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread

from agent_brain.memories.embedders.base import Embedder
from agent_brain.memories.errors import EmbeddingError

FILES = ("model.onnx", "tokenizer.json")
MAX_TOKENS = 256  # of a text, as the model was published; the rest is not embedded
TOGETHER = 32  # texts of like length that go through the model at once


class LocalEmbedder(Embedder):
    """Base class for embedders whose model is loaded at the first use and runs in a thread."""

    local = True

    def __init__(self) -> None:
        self._model: Any = None
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return unit vectors.

        Raises:
            EmbeddingError: The model cannot be loaded.
        """
        return await anyio.to_thread.run_sync(self._embed, list(texts))

    def load(self) -> Any:
        """Return the model, which is loaded if that is still to do."""
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model

    @abstractmethod
    def _load(self) -> Any:
        """Return the model."""

    @abstractmethod
    def _embed(self, texts: list[str]) -> Any:
        """Return unit vectors."""


class MiniLMEmbedder(LocalEmbedder):
    """A local sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), 384 dimensions.

    It is the model of Chroma's default embedding function, which downloads it (80 MB) when the
    first text is embedded and pads every text to 256 tokens. Here texts of like length are padded
    together, which gives the same vectors some twenty times faster.

    Args:
        path: A folder with ``model.onnx`` and ``tokenizer.json``; by default Chroma's download.
        threads: Processor cores for one batch; one leaves the others to the program.

    Raises:
        EmbeddingError: Files are missing from ``path``.
    """

    name = "all-MiniLM-L6-v2"
    dimension = 384
    batch_size = 256

    def __init__(self, path: str | Path | None = None, *, threads: int = 1) -> None:
        super().__init__()
        self._folder = None if path is None else Path(path)
        self._threads = threads
        missing = [f for f in FILES if self._folder and not (self._folder / f).is_file()]
        if missing:
            raise EmbeddingError(
                self.name, f"{str(self._folder)!r} is not a model folder: it lacks {missing}"
            )

    def _load(self) -> tuple[Any, Any]:
        """Return the tokenizer and the model, which takes about a second.

        Raises:
            EmbeddingError: The model cannot be downloaded.
        """
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import Tokenizer

        folder = self._folder or self._downloaded()
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        return tokenizer, session

    def _downloaded(self) -> Path:
        """Return the folder of Chroma's download, after downloading it if necessary."""
        from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

        function = ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])
        try:
            function(["."])
        except Exception as error:
            raise EmbeddingError(
                self.name,
                f"Chroma cannot download the model ({error}): use MiniLMEmbedder(path) with a "
                f"folder that has {' and '.join(FILES)}, or 'wordllama', which downloads nothing",
            ) from error
        return Path(str(function.DOWNLOAD_PATH), str(function.EXTRACTED_FOLDER_NAME))

    def _embed(self, texts: list[str]) -> Any:
        import numpy as np

        tokenizer, session = self.load()
        tokens = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        vectors = np.zeros((len(texts), self.dimension or 0), np.float32)
        # shortest first, so that those of like length are padded together
        order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
        for start in range(0, len(order), TOGETHER):
            places = order[start : start + TOGETHER]
            ids = np.zeros((len(places), len(tokens[places[-1]])), np.int64)
            mask = np.zeros_like(ids)
            for row, place in enumerate(places):
                ids[row, : len(tokens[place])] = tokens[place]
                mask[row, : len(tokens[place])] = 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}
            (hidden,) = session.run(None, inputs)
            real = mask[:, :, None].astype(np.float32)
            vectors[places] = (hidden * real).sum(1) / real.sum(1)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class WordLlamaEmbedder(LocalEmbedder):
    """The 256-dimensional model of the ``wordllama`` package: averaged word vectors.

    WordLlama (github.com/dleemiller/WordLlama, MIT) has its model of 16 MB in its wheel and needs
    neither torch nor onnxruntime. It loads in 0.3 s and embeds a short text in about 20
    microseconds; it ignores word order, so it is less accurate than a transformer. Install it with
    ``pip install "agent-brain[offline]"``, else :meth:`embed` raises an :class:`EmbeddingError`.
    """

    name = "wordllama-l2-supercat-256"
    dimension = 256
    batch_size = 1024

    def _embed(self, texts: list[str]) -> Any:
        return self.load().embed([text or " " for text in texts], norm=True)

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
