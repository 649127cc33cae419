"""The subagents of a run: AG-UI's name for the nets inside."""

from __future__ import annotations

from collections.abc import Iterable

from ag_ui.core import (
    BaseEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
)

from agent_brain.common.text import clean
from agent_brain.serving.web.chat.translator import Path


class Subagents:
    """The subnets and branches that have begun and not ended, by their paths.

    Args:
        run_id: The run, as the client names it; part of the IDs.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._open: dict[Path, str] = {}
        self._count = 0

    def id_of(self, path: Path) -> str | None:
        """Return the ID of the subagent at ``path``; None for the agent itself."""
        return self._open.get(path)

    def enter(self, path: Path) -> list[BaseEvent]:
        """Return the event that announces the subagent at ``path``, if it is new."""
        if not path or path in self._open:
            return []
        around = (path[:length] for length in range(len(path) - 1, 0, -1))
        parent = next((self._open[outer] for outer in around if outer in self._open), None)
        self._count += 1
        self._open[path] = subagent = clean(f"{self._run_id}/{'/'.join(path)}#{self._count}")
        return [
            SubagentStartedEvent(
                subagent_run_id=subagent, name=clean(path[-1]), parent_subagent_run_id=parent
            )
        ]

    def inside(self, path: Path) -> list[Path]:
        """Return the paths of the open subagents at ``path`` and inside it, innermost first."""
        found = [open_path for open_path in self._open if open_path[: len(path)] == path]
        return sorted(found, key=len, reverse=True)

    def finish(
        self, path: Path, *, error: str | None = None, interrupts: Iterable[str] | None = None
    ) -> BaseEvent:
        """Return the event that ends the subagent at ``path``.

        Args:
            path: Its path.
            error: Why it failed, if it did.
            interrupts: If the run waits for a person: the IDs of what this subagent asks for.
        """
        subagent = self._open.pop(path)
        if error is not None:
            return SubagentErrorEvent(subagent_run_id=subagent, message=error)
        if interrupts is None:
            return SubagentFinishedEvent(subagent_run_id=subagent)
        outcome = SubagentFinishedSuspendedOutcome(interrupt_ids=[*interrupts])
        return SubagentFinishedEvent(subagent_run_id=subagent, outcome=outcome)


class OwnedIds:
    """Gives messages and calls IDs: AG-UI wants that none is used by two subagents.

    Two of them may come with one ID: a model that numbers its calls, asked by several branches.
    """

    def __init__(self) -> None:
        self._owners: dict[str, str | None] = {}

    def get(self, wanted: str, subagent: str | None) -> str:
        """Return ``wanted``, with a number if another subagent uses it."""
        found, number = wanted, 1
        while self._owners.setdefault(found, subagent) != subagent:
            number += 1
            found = f"{wanted}#{number}"
        return found
