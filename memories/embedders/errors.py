"""The error of embedders."""

from __future__ import annotations

from agent_brain.tools.errors import AgentBrainError


class EmbeddingError(AgentBrainError, ValueError):
    """An embedder cannot be built, or what it gave back are not the vectors that were asked for.

    Attributes:
        embedder: Name of the embedder.
    """

    def __init__(self, embedder: str, problem: str) -> None:
        self.embedder = embedder
        super().__init__(f"Embedder {embedder!r}: {problem}")
