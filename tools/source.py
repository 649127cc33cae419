"""Tools that come and go while an agent runs, such as those of a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from agent_brain.tools.base import BaseTool


class ToolSource(ABC):
    """Base class for sources of tools that may change and must be closed.

    A brain checks ``changed`` between two steps, so it must be cheap, and calls :meth:`refresh`
    only if it is true.
    """

    @property
    @abstractmethod
    def tools(self) -> Sequence[BaseTool]:
        """The tools as last listed."""

    @property
    @abstractmethod
    def changed(self) -> bool:
        """Whether there is something to refresh."""

    @abstractmethod
    async def refresh(self, taken: Collection[str] = ()) -> None:
        """List the tools again; those that cannot be listed now stay unchanged.

        Args:
            taken: Names that other tools use, to be avoided.
        """

    @property
    def gives_context(self) -> bool:
        """Whether :meth:`context` may return anything."""
        return False

    async def context(self) -> Sequence[str]:
        """Return what each request of a model shows, as it is now; nothing by default."""
        return ()

    @abstractmethod
    async def aclose(self) -> None:
        """Release all resources; is idempotent."""
