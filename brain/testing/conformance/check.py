"""One behaviour to check: an async function with a name and everything it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from agent_brain.memories.base import Memory
from agent_brain.tools.aio import maybe_await

MakeMemory: TypeAlias = Callable[[], Memory | Awaitable[Memory]]
Behaviour: TypeAlias = Callable[[Callable[..., Awaitable[Any]]], Awaitable[None]]


class Check:
    """Call and await it: it returns, or raises AssertionError with what is not as it should be.

    Attributes:
        name: The behaviour, in words joined by underscores.
    """

    def __init__(self, behaviour: Behaviour, make: Callable[..., Any]) -> None:
        self.name = behaviour.__name__
        self._behaviour = behaviour
        self._make = make

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    async def __call__(self) -> None:
        """Check the behaviour.

        Raises:
            AssertionError: It is not as it should be.
        """

        async def make(*arguments: Any) -> Any:
            return await maybe_await(self._make(*arguments))

        await self._behaviour(make)


def needs(messages: int) -> Callable[[Behaviour], Behaviour]:
    """Mark a behaviour that only a memory can show which holds so many messages at once."""

    def mark(behaviour: Behaviour) -> Behaviour:
        behaviour.needs = messages  # type: ignore[attr-defined]
        return behaviour

    return mark


def expect(actual: object, wanted: object, what: str) -> None:
    """Raise unless both are equal.

    Raises:
        AssertionError: They are not.
    """
    if actual != wanted:
        raise AssertionError(f"{what}: expected {wanted!r:.1000}, got {actual!r:.1000}")


def expect_end(actual: list[Any], wanted: list[Any], what: str) -> None:
    """Raise unless ``actual`` is ``wanted`` or, in a memory that keeps the newest part, its end.

    Raises:
        AssertionError: It is not, or empty.
    """
    expect(actual, wanted[-len(actual) :] if actual else wanted, what)


async def expect_error(
    doing: Awaitable[object], errors: type[Exception] | tuple[type[Exception], ...], what: str
) -> None:
    """Raise unless awaiting raises one of ``errors``.

    Raises:
        AssertionError: It does not.
    """
    try:
        await doing
    except errors:
        return
    raise AssertionError(f"{what}: expected an error ({errors}), and there was none")


def ids(messages: Iterable[Any]) -> list[str]:
    """The ids of messages."""
    return [message.id for message in messages]
