"""Embedding models behind an API: OpenAI, Cohere, Ollama and all others that LiteLLM knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_brain.common.litellm import (
    connections,
    faults_in_name,
    litellm_on_asyncio,
    load_litellm,
    model_entry,
)
from agent_brain.memories.embedders.base import Embedder, EmbeddingResult
from agent_brain.memories.errors import EmbeddingError

_EXAMPLE = "openai/text-embedding-3-small"
_PRICE = "input_cost_per_token"


class LiteLLMEmbedder(Embedder):
    """Embed with a model by its LiteLLM name.

    LiteLLM is imported when the first text is embedded, or for a name that looks wrong.

    Args:
        model: Such as ``"text-embedding-3-small"`` or ``"ollama/nomic-embed-text"``.
        dimension: The number of numbers in a vector, if known.
        batch_size: The most texts for one request.
        params: Passed with every request: ``api_base``, ``api_key``, ``dimensions``, ``timeout``…;
            and ``input_cost_per_token`` in US dollars, if LiteLLM does not know the price.

    Raises:
        EmbeddingError: LiteLLM knows no provider of that name.
    """

    def __init__(
        self, model: str, *, dimension: int | None = None, batch_size: int = 64, **params: Any
    ) -> None:
        for fault in faults_in_name(model, params, modes=("embedding",), example=_EXAMPLE):
            raise EmbeddingError(model, fault.removeprefix(repr(model)).lstrip(": "))
        self.name = model
        self.dimension = dimension
        self.batch_size = batch_size
        self._price: float | None = params.pop(_PRICE, None)  # LiteLLM would apply it to all calls
        self._params = params

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return one vector for each text, from one request; see :meth:`embed_with_usage`."""
        vectors: list[Any] = (await self.embed_with_usage(texts)).vectors
        return vectors

    async def embed_with_usage(self, texts: Sequence[str]) -> EmbeddingResult:
        """Return one vector for each text, from one request, with its tokens and cost.

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
        tokens = getattr(getattr(response, "usage", None), "prompt_tokens", None)
        vectors = [entry["embedding"] for entry in entries]
        return EmbeddingResult(vectors, tokens, self._cost(tokens) if tokens else None)

    def _cost(self, tokens: int) -> float | None:
        """Return US dollars by the given price, or by LiteLLM's table; None if it has none."""
        if self._price is not None:
            return tokens * self._price
        if _PRICE not in (model_entry(self.name) or {}):
            return None
        read, _ = load_litellm().cost_per_token(
            model=self.name, prompt_tokens=tokens, call_type="embedding"
        )
        return float(read)

    async def aclose(self) -> None:
        """Close litellm's connections of this event loop once nothing uses them."""
        await connections.close()
