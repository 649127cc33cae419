"""Embedders turn texts into vectors: with an API, a function, or a model on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.memories.embedders.base import Embedder as Embedder
    from agent_brain.memories.embedders.base import EmbeddingResult as EmbeddingResult
    from agent_brain.memories.embedders.base import embed_all as embed_all
    from agent_brain.memories.embedders.function import ChromaEmbedder as ChromaEmbedder
    from agent_brain.memories.embedders.function import EmbedderLike as EmbedderLike
    from agent_brain.memories.embedders.function import FunctionEmbedder as FunctionEmbedder
    from agent_brain.memories.embedders.function import as_embedder as as_embedder
    from agent_brain.memories.embedders.lite_llm import LiteLLMEmbedder as LiteLLMEmbedder
    from agent_brain.memories.embedders.local import MiniLMEmbedder as MiniLMEmbedder
    from agent_brain.memories.embedders.local import WordLlamaEmbedder as WordLlamaEmbedder
    from agent_brain.memories.errors import EmbeddingError as EmbeddingError
