"""Functions from texts to vectors as embedders."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread

from agent_brain.memories.embedders.base import Embedder


class FunctionEmbedder(Embedder):
    """Embed with a function from a list of texts to a list of vectors.

    A synchronous function runs in a worker thread.

    Args:
        function: Synchronous or asynchronous.
        name: Identifies the model; by default the name of the function.
        dimension: The number of numbers in a vector, if known.
        batch_size: The most texts for one call.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str | None = None,
        dimension: int | None = None,
        batch_size: int = 64,
    ) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method itself is asked about
        )
        self.name = name or str(getattr(function, "__qualname__", type(function).__qualname__))
        self.dimension = dimension
        self.batch_size = batch_size

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return what the function returns for ``texts``."""
        if self._is_async:
            return await self._function(list(texts))
        # in a list, as trio refuses functions that return a coroutine
        (vectors,) = await anyio.to_thread.run_sync(lambda: [self._function(list(texts))])
        return await vectors if inspect.isawaitable(vectors) else vectors


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
