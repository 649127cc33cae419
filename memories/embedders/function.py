"""Functions from texts to vectors as embedders, and the values of ``embedder=``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread

from agent_brain.common.aio import maybe_await
from agent_brain.memories.embedders.base import Embedder
from agent_brain.memories.embedders.lite_llm import LiteLLMEmbedder
from agent_brain.memories.embedders.local import MiniLMEmbedder, WordLlamaEmbedder
from agent_brain.memories.errors import EmbeddingError


class FunctionEmbedder(Embedder):
    """Embed with a function from a list of texts to a list of vectors.

    A synchronous function runs in a worker thread. One that returns an :class:`EmbeddingResult`
    tells what it used; the price of another one is unknown, unless it is ``local``.

    Args:
        function: Synchronous or asynchronous.
        name: Identifies the model; by default the name of the function.
        dimension: The number of numbers in a vector, if known.
        batch_size: The most texts for one call.
        local: Whether it calls no other machine and costs nothing.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str | None = None,
        dimension: int | None = None,
        batch_size: int = 64,
        local: bool = False,
    ) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method itself is asked about
        )
        self.name = name or str(getattr(function, "__qualname__", type(function).__qualname__))
        self.dimension = dimension
        self.batch_size = batch_size
        self.local = local

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return what the function returns for ``texts``."""
        if self._is_async:
            return await self._function(list(texts))
        # in a list, as trio refuses functions that return a coroutine
        (vectors,) = await anyio.to_thread.run_sync(lambda: [self._function(list(texts))])
        return await maybe_await(vectors)


class ChromaEmbedder(FunctionEmbedder):
    """Embed with an embedding function of Chroma, such as ``OpenAIEmbeddingFunction``.

    Args:
        function: An instance of ``chromadb.EmbeddingFunction``.
        batch_size: The most texts for one call.
    """

    def __init__(self, function: Callable[[list[str]], Any], *, batch_size: int = 64) -> None:
        own_name = getattr(function, "name", None)
        name = own_name() if callable(own_name) else type(function).__qualname__
        super().__init__(function, name=f"chroma:{name}", batch_size=batch_size)


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
