"""IDs for the client, of which each belongs to one subagent. Private."""

from __future__ import annotations


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
