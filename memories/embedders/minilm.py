"""all-MiniLM-L6-v2 on this machine: Chroma's default model, without torch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from agent_brain.memories.embedders.base import Embedder
from agent_brain.memories.errors import EmbeddingError

FILES = ("model.onnx", "tokenizer.json")
MAX_TOKENS = 256  # of a text, as the model was published; the rest is not embedded
TOGETHER = 32  # texts of like length that go through the model at once


class MiniLMEmbedder(Embedder):
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
    local = True

    def __init__(self, path: str | Path | None = None, *, threads: int = 1) -> None:
        self._folder = None if path is None else Path(path)
        self._threads = threads
        self._model: tuple[Any, Any] | None = None
        self._loading = threading.Lock()
        missing = [f for f in FILES if self._folder and not (self._folder / f).is_file()]
        if missing:
            raise EmbeddingError(
                self.name, f"{str(self._folder)!r} is not a model folder: it lacks {missing}"
            )

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return unit vectors; takes a few milliseconds for a short text.

        Raises:
            EmbeddingError: The model cannot be downloaded.
        """
        return await anyio.to_thread.run_sync(self._embed, list(texts))

    def load(self) -> tuple[Any, Any]:
        """Load the tokenizer and the model, which takes about a second, if that is still to do."""
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import Tokenizer

        with self._loading:
            if self._model is None:
                folder = self._folder or self._downloaded()
                tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(MAX_TOKENS)
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = self._threads
                session = onnxruntime.InferenceSession(
                    str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
                )
                self._model = tokenizer, session
            return self._model

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
        for places in _batches(tokens):
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


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield places of texts, shortest first, so that those of like length are padded together."""
    order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
    for start in range(0, len(order), TOGETHER):
        yield order[start : start + TOGETHER]
