"""Embedders turn texts into vectors: with an API, a function, or a model on this machine."""

from __future__ import annotations

from agent_brain.memories.embedders.base import Embedder, EmbeddingResult, embed_all
from agent_brain.memories.embedders.function import (
    ChromaEmbedder,
    EmbedderLike,
    FunctionEmbedder,
    as_embedder,
)
from agent_brain.memories.embedders.lite_llm import LiteLLMEmbedder
from agent_brain.memories.embedders.minilm import MiniLMEmbedder
from agent_brain.memories.embedders.wordllama import WordLlamaEmbedder
from agent_brain.memories.errors import EmbeddingError

__all__ = [
    "ChromaEmbedder",
    "Embedder",
    "EmbedderLike",
    "EmbeddingError",
    "EmbeddingResult",
    "FunctionEmbedder",
    "LiteLLMEmbedder",
    "MiniLMEmbedder",
    "WordLlamaEmbedder",
    "as_embedder",
    "embed_all",
]
