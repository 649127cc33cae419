"""Embedding models behind an API: OpenAI, Cohere, Ollama and all others that LiteLLM knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import anyio.to_thread

from agent_brain.memories.embedders.base import Embedder
from agent_brain.memories.embedders.errors import EmbeddingError


class LiteLLMEmbedder(Embedder):
    """A LiteLLM embedding model; LiteLLM is imported when the first text is embedded.

    Runs on asyncio, as LiteLLM does; on trio the call is made in a worker thread.

    Args:
        model: LiteLLM's name of it, such as ``"text-embedding-3-small"``.
        dimension: Numbers in a vector, if that is known.
        batch_size: Texts for one request.
        params: Passed on with every request: ``api_base``, ``api_key``, ``dimensions``, ``timeout``…
    """

    def __init__(
        self, model: str, *, dimension: int | None = None, batch_size: int = 64, **params: Any
    ) -> None:
        self.name = model
        self.dimension = dimension
        self.batch_size = batch_size
        self._params = params

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """One vector a text, from one request.

        Raises:
            EmbeddingError: The request failed; the cause is LiteLLM's own error.
        """
        request = {"model": self.name, "input": list(texts), **self._params}
        litellm = await anyio.to_thread.run_sync(_litellm)
        try:
            if sniffio.current_async_library() == "asyncio":
                response = await litellm.aembedding(**request)
            else:
                response = await anyio.to_thread.run_sync(lambda: litellm.embedding(**request))
        except Exception as error:
            raise EmbeddingError(self.name, f"could not embed {len(texts)} texts: {error}") from error
        entries = sorted(response.data, key=lambda entry: entry["index"])
        return [entry["embedding"] for entry in entries]


def _litellm() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or the import asks the network
    import litellm

    return litellm
