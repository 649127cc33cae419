"""Any function from texts to vectors as an embedder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread

from agent_brain.memories.embedders.base import Embedder
from agent_brain.tools.aio import maybe_await


class FunctionEmbedder(Embedder):
    """A function from a list of texts to a list of vectors; a sync one runs in a worker thread.

    Args:
        function: Sync or async.
        name: Tells models apart; the default is the function's own name.
        dimension: Numbers in a vector, if that is known.
        batch_size: Texts for one call.
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
        """What the function gives back for ``texts``."""
        if self._is_async:
            return await self._function(list(texts))
        # in a list, as trio refuses functions that return a coroutine
        (vectors,) = await anyio.to_thread.run_sync(lambda: [self._function(list(texts))])
        return await maybe_await(vectors)


class ChromaEmbedder(FunctionEmbedder):
    """An embedding function of Chroma, such as ``OpenAIEmbeddingFunction``.

    Args:
        function: An instance of ``chromadb.EmbeddingFunction``.
        batch_size: Texts for one call.
    """

    def __init__(self, function: Callable[[list[str]], Any], *, batch_size: int = 64) -> None:
        own_name = getattr(function, "name", None)
        name = own_name() if callable(own_name) else type(function).__qualname__
        super().__init__(function, name=f"chroma:{name}", batch_size=batch_size)
