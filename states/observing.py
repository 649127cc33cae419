"""Hooks that observe a run or a state, from its beginning to its end. Private."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from typing import Any, Literal, TypeAlias

import anyio

from agent_brain.states.hook_requests import HookRequest
from agent_brain.states.hooks import Hook
from agent_brain.tools.aio import CLEANUP_SECONDS
from agent_brain.tools.secrets import get_logger

Observed: TypeAlias = Literal["run", "state"]

METHODS: dict[Observed, tuple[str, str, str]] = {
    "run": ("before_run", "after_run", "on_run_error"),
    "state": ("before_state", "after_state", "on_state_error"),
}

logger = get_logger(__name__)


class Observation:
    """Tells hooks that a run or a state has begun and, once, how it has ended.

    Args:
        hooks: The hooks, in order.
        kind: What they observe.
        request: What they are given.
    """

    __slots__ = ("_entered", "_hooks", "_methods", "_request")

    def __init__(self, hooks: Sequence[Hook], kind: Observed, request: HookRequest) -> None:
        self._hooks = hooks
        self._methods = METHODS[kind]
        self._request = request
        self._entered: list[Hook] = []

    async def begin(self) -> None:
        """Call ``before_…``; what a hook raises is raised."""
        name = self._methods[0]
        for hook in self._hooks:
            try:
                await _call(hook, name, self._request)
            except Exception as error:
                error.add_note(f"Raised by {type(hook).__name__}.{name}")
                raise
            self._entered.append(hook)

    async def end(self, outcome: object, *, cut: bool = False) -> None:
        """Call ``after_…`` of the hooks whose ``before_…`` has returned.

        Args:
            outcome: What they are given.
            cut: Whether the run is being cancelled: each hook gets a limited time then.
        """
        await self._tell(self._methods[1], outcome, cut=cut)

    async def fail(self, error: BaseException, *, cut: bool = True) -> None:
        """Call ``on_…_error`` of the hooks whose ``before_…`` has returned; as :meth:`end`."""
        await self._tell(self._methods[2], error, cut=cut)

    async def _tell(self, name: str, outcome: object, *, cut: bool) -> None:
        seconds = CLEANUP_SECONDS if cut else math.inf
        while self._entered:
            hook = self._entered.pop()
            try:
                with anyio.move_on_after(seconds, shield=cut):
                    await _call(hook, name, self._request, outcome)
            except Exception:
                logger.exception("%s.%s failed", type(hook).__name__, name)
            except BaseException:  # cancelled: the other hooks are told nevertheless
                await self._tell(name, outcome, cut=True)
                raise


async def _call(hook: Hook, name: str, *args: Any) -> None:
    given = getattr(hook, name)(*args)
    given = await given if isinstance(given, Awaitable) else given
    if given is not None:
        raise TypeError(f"{type(hook).__name__}.{name} returned {given!r}: it may only observe")
