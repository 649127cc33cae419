"""The checks that conformance suites consist of."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeAlias, TypeVar

import anyio

from agent_brain.common.aio import maybe_await
from agent_brain.memories.journal.base import Journal

T = TypeVar("T")
Make: TypeAlias = Callable[..., Awaitable[Any]]
Behaviour: TypeAlias = Callable[..., Awaitable[None]]


class Check:
    """One behaviour to check: call it and await the result. It closes the objects that it makes.

    Attributes:
        name: The behaviour, in words joined by underscores.
        needs: How many messages a memory must hold for it.

    Args:
        behaviour: Checks it. A parameter ``make`` of it gets the factory; every other one gets an
            object made by it.
        make: Makes an object. With ``journal`` it is called with a journal that all objects of the
            check share, a session and a tenant.
        journal: Makes the journal.
    """

    def __init__(
        self,
        behaviour: Behaviour,
        make: Callable[..., Any],
        journal: Callable[[], Journal] | None = None,
    ) -> None:
        self.name = behaviour.__name__
        self.needs = getattr(behaviour, "needs", 1)
        self._behaviour = behaviour
        self._make = make
        self._journal = journal

    def __repr__(self) -> str:
        return self.name

    async def __call__(self) -> None:
        """Check the behaviour.

        Raises:
            AssertionError: The behaviour differs from what is expected, or raises.
        """
        try:
            await self._run()
        except AssertionError as error:
            raise AssertionError(self._explain(str(error))) from None
        except Exception as error:
            while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            raise AssertionError(self._explain(f"{type(error).__name__}: {error}")) from error

    def _explain(self, problem: str) -> str:
        rule = " ".join((self._behaviour.__doc__ or "").split())
        return f"{problem}\nThe rule is {self.name!r}: {rule}"

    async def _run(self) -> None:
        journal = None if self._journal is None else self._journal()

        async def make(*names: Any) -> Any:
            place = () if journal is None else (journal, *(names or ("s", None)))
            made = await maybe_await(self._make(*(place or names)))
            if hasattr(made, "aclose"):
                stack.push_async_callback(made.aclose)
            return made

        stack = AsyncExitStack()
        if journal is not None:
            stack.push_async_callback(journal.aclose)  # after the memories on it
        try:
            names = inspect.signature(self._behaviour).parameters
            await self._behaviour(*[make if name == "make" else await make() for name in names])
        finally:
            with anyio.CancelScope(shield=True):
                await stack.aclose()


def behaviours(namespace: Mapping[str, Any]) -> list[Behaviour]:
    """Return the public async functions that a module defines, in order.

    A parameter ``make`` of theirs gets the factory; every other one gets an object made by it.
    """
    return [
        value
        for name, value in namespace.items()
        if inspect.iscoroutinefunction(value)  # so is the module itself, in Python 3.12.1
        and getattr(value, "__module__", None) == namespace["__name__"]
        and not name.startswith("_")
    ]


def needs(messages: int) -> Callable[[Behaviour], Behaviour]:
    """Mark a behaviour of memories that hold at least this many messages."""

    def mark(behaviour: Behaviour) -> Behaviour:
        behaviour.needs = messages  # type: ignore[attr-defined]
        return behaviour

    return mark


def expect(actual: object, wanted: object, what: str) -> None:
    """Raise AssertionError unless both are equal."""
    if actual != wanted:
        raise AssertionError(f"{what}: expected {wanted!r:.1000}, got {actual!r:.1000}")


def expect_true(condition: object, what: str) -> None:
    """Raise AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(what)


def expect_end(actual: list[Any], wanted: list[Any], what: str) -> None:
    """Raise AssertionError unless ``actual`` is a non-empty end of ``wanted``."""
    expect(actual, wanted[-len(actual) :] if actual else wanted, what)


async def expect_error(doing: Awaitable[object], error: type[Exception], what: str) -> None:
    """Raise AssertionError unless awaiting raises ``error``."""
    try:
        await doing
    except error:
        return
    raise AssertionError(f"{what}: expected {error.__name__}, but nothing was raised")


async def both(call: Callable[[], Awaitable[T]]) -> list[T]:
    """Return what two calls at once return."""
    results: list[T] = []

    async def keep() -> None:
        results.append(await call())

    async with anyio.create_task_group() as group:
        group.start_soon(keep)
        group.start_soon(keep)
    return results


def look_up(word: str) -> str:
    """Look up a word."""
    return word


def ids(messages: Iterable[Any]) -> list[str]:
    """Return the IDs of messages."""
    return [message.id for message in messages]


def contents(messages: Iterable[Any]) -> list[str]:
    """Return the texts of messages."""
    return [message.content for message in messages]
