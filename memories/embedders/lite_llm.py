"""Embedding models behind an API: OpenAI, Cohere, Ollama and all others that LiteLLM knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_brain.memories.embedders.base import Embedder
from agent_brain.memories.errors import EmbeddingError
from agent_brain.tools.litellm.connections import connections
from agent_brain.tools.litellm.setup import litellm_on_asyncio


class LiteLLMEmbedder(Embedder):
    """Embed with a model by its LiteLLM name; LiteLLM is imported when the first text is embedded.

    Args:
        model: Such as ``"text-embedding-3-small"`` or ``"ollama/nomic-embed-text"``.
        dimension: The number of numbers in a vector, if known.
        batch_size: The most texts for one request.
        params: Passed with every request: ``api_base``, ``api_key``, ``dimensions``, ``timeout``…
    """

    def __init__(
        self, model: str, *, dimension: int | None = None, batch_size: int = 64, **params: Any
    ) -> None:
        self.name = model
        self.dimension = dimension
        self.batch_size = batch_size
        self._params = params

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return one vector for each text, from one request.

        Raises:
            EmbeddingError: The request failed; its cause is LiteLLM's own error.
            EventLoopError: The running event loop is not asyncio's, which LiteLLM needs.
        """
        litellm = await litellm_on_asyncio()
        connections.acquire()
        try:
            response = await litellm.aembedding(model=self.name, input=list(texts), **self._params)
        except Exception as error:
            raise EmbeddingError(
                self.name, f"{len(texts)} texts could not be embedded: {error}"
            ) from error
        finally:
            await connections.release()
        entries = sorted(response.data, key=lambda entry: int(entry["index"]))
        return [entry["embedding"] for entry in entries]

    async def aclose(self) -> None:
        """Close litellm's connections of this event loop once nothing uses them."""
        await connections.close()
