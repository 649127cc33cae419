"""Noticing what states must not do: change themselves, and hold up the event loop."""

from __future__ import annotations

import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Hashable
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from agent_brain.common.secrets import get_logger
from agent_brain.common.values import is_amount
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError, StateMutationError
from agent_brain.states.hooks import Hook
from agent_brain.states.work import StreamItem, relay

T = TypeVar("T")

logger = get_logger(__name__)


class DebugStates(Hook):
    """A hook that notices what states must not do, while a program is written.

    ::

        Brain(net, hooks=[DebugStates()])

    A state that changes plain data in one of its attributes or class attributes, as
    ``self.items.append(…)`` and ``type(self).count += 1`` do, ends the run with a
    :class:`~agent_brain.errors.StateMutationError`. One that blocks the event loop, as
    ``time.sleep`` and slow computations do, is logged as a warning with its name. It looks at
    ``run``, ``next_state``, ``on_enter`` and ``on_exit``.

    Args:
        blocked: Seconds that they may take between two awaits.

    Raises:
        StateDefinitionError: ``blocked`` is not a number above 0.
    """

    def __init__(self, *, blocked: float = 0.1) -> None:
        if not is_amount(blocked):
            raise StateDefinitionError(f"DebugStates(blocked={blocked!r}): a number above 0")
        self.blocked = blocked

    def watch(
        self, stream: AsyncIterator[StreamItem], state: State, name: str
    ) -> AsyncIterator[StreamItem]:
        """Return the stream of a state, with a look at what the state does for each item.

        Raises:
            StateMutationError: It has changed plain data in its attributes.
        """
        state = getattr(state, "wrapped", state)
        before = _plain_data(state)

        async def take(item: Coroutine[Any, Any, StreamItem]) -> StreamItem:
            try:
                return await _timed(item, partial(self._note, state, name))
            except StopAsyncIteration:
                _refuse_changes(state, before)
                raise

        return relay(stream, take)

    async def watch_call(self, call: Coroutine[Any, Any, T], state: State, name: str) -> T:
        """Return what another method of a state returns, with a look at what it does.

        Raises:
            StateMutationError: It has changed plain data in its attributes.
        """
        state = getattr(state, "wrapped", state)
        before = _plain_data(state)
        result = await _timed(call, partial(self._note, state, name))
        _refuse_changes(state, before)
        return result

    def _note(self, state: State, name: str, seconds: float) -> None:
        if seconds > self.blocked:
            logger.warning(
                "State %r (%s) blocked the event loop for %.2f s: await instead, or call slow "
                "functions with anyio.to_thread.run_sync",
                name,
                type(state).__name__,
                seconds,
            )


def _refuse_changes(state: State, before: dict[str, Hashable]) -> None:
    after = _plain_data(state)
    for attribute in before.keys() & after.keys():
        if after[attribute] != before[attribute]:
            raise StateMutationError(type(state).__name__, attribute)


def _plain_data(state: State) -> dict[str, Hashable]:
    """Return the attributes of a state and of its class that are plain data."""
    classes = type(state).__mro__[: type(state).__mro__.index(State)]
    found = {
        name: _frozen(value)
        for kind in reversed(classes)
        for name, value in vars(kind).items()
        if not name.startswith(("__", "_abc_"))
    }
    found |= {name: _frozen(value) for name, value in vars(state).items()}
    return {name: value for name, value in found.items() if value is not _OTHER}


_OTHER = object()


def _frozen(value: object) -> Hashable:
    """Return plain data as a value to compare; ``_OTHER`` for anything else."""
    if value is None or isinstance(value, str | bytes | int | float):
        return value
    if isinstance(value, dict):
        return ("dict", *((_frozen(key), _frozen(value[key])) for key in value))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(map(_frozen, value)))
    if isinstance(value, list | tuple):
        return ("list", *map(_frozen, value))
    return _OTHER


@types.coroutine
def _timed(work: Coroutine[Any, Any, T], note: Callable[[float], object]) -> Generator[Any, Any, T]:
    """Await ``work``; call ``note`` with the seconds that it ran before each of its awaits."""
    resume: Any = work.send
    value: Any = None
    while True:
        began = perf_counter()
        try:
            awaited = resume(value)
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            note(perf_counter() - began)
        try:
            value, resume = (yield awaited), work.send
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:
            value, resume = error, work.throw
