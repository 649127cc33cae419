"""Tools that come and go while an agent lives: those of a server, say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from agent_brain.tools.base import BaseTool


class ToolSource(ABC):
    """Where tools come from that may change, and that need closing.

    A brain asks ``changed`` between two steps, which must cost nothing, and calls :meth:`refresh`
    only if it is true.
    """

    @property
    @abstractmethod
    def tools(self) -> Sequence[BaseTool]:
        """The tools as they were last listed."""

    @property
    @abstractmethod
    def changed(self) -> bool:
        """Whether there is something to refresh."""

    @abstractmethod
    async def refresh(self, taken: Collection[str] = ()) -> None:
        """List the tools anew; what cannot be listed now stays as it was.

        Args:
            taken: Names that others use: tools of the source get other ones.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Give back what the source opened; twice is fine."""
