"""The values of ``embedder=`` as embedders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_brain.memories.embedders.base import Embedder
from agent_brain.memories.embedders.function import ChromaEmbedder, FunctionEmbedder
from agent_brain.memories.embedders.lite_llm import LiteLLMEmbedder
from agent_brain.memories.embedders.minilm import MiniLMEmbedder
from agent_brain.memories.embedders.wordllama import WordLlamaEmbedder
from agent_brain.memories.errors import EmbeddingError

EmbedderLike = Embedder | str | Callable[[list[str]], Any] | None
OFFLINE: dict[str, Callable[[], Embedder]] = {
    "minilm": MiniLMEmbedder,
    "wordllama": WordLlamaEmbedder,
}


def as_embedder(value: EmbedderLike) -> Embedder | None:
    """Return ``value`` as an embedder.

    Args:
        value: None for no embedder; an :class:`Embedder`; ``"wordllama"`` or ``"minilm"`` for a
            model on this machine; any other text for the LiteLLM model of that name; an embedding
            function of Chroma; or any function, sync or async, from texts to vectors.

    Raises:
        EmbeddingError: ``value`` is none of these.
    """
    if value is None or isinstance(value, Embedder):
        return value
    if isinstance(value, str) and value.strip():
        offline = OFFLINE.get(value)
        return LiteLLMEmbedder(value) if offline is None else offline()
    if isinstance(value, type) or not callable(value):
        raise EmbeddingError(
            repr(value),
            "this is not an embedder: give None, the name of a LiteLLM embedding model, an "
            "Embedder instance, or a function from a list of texts to a list of vectors",
        )
    if _is_chroma(value):
        return ChromaEmbedder(value)
    return FunctionEmbedder(value)


def _is_chroma(value: object) -> bool:
    """Return whether it is an EmbeddingFunction of Chroma, without importing Chroma."""
    return any(base.__module__.startswith("chromadb.") for base in type(value).__mro__)
