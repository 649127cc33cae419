"""A tool that remembers how it was called: a real one watched, or a fake one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_brain.testing.differences import args_text, explain_lines
from agent_brain.tools.aio import maybe_await
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolDefinitionError
from agent_brain.tools.function import as_tool


@dataclass(slots=True)
class SpiedCall:
    """One call that reached the tool.

    Attributes:
        args: The arguments, as the tool got them.
        result: What it returned; None while it runs, and if it raised.
        exception: What it raised, cancellation included.
    """

    args: dict[str, Any]
    result: Any = None
    exception: BaseException | None = None


class ToolSpy(BaseTool):
    """Records the calls of a tool: ``ToolSpy(weather)``, or ``ToolSpy("weather", returns="rain")``.

    A tool or function is watched while it works. Given one of ``returns``, ``raises``, ``replies``
    and ``does`` as well, it is not run, only its name, description and schema count. A name makes a
    tool that exists in the test alone; it returns None unless told otherwise.

    Calls whose arguments do not fit the schema never reach a tool, and so are not recorded.

    Args:
        tool: A tool, a function, or the name of a fake.
        returns: What every call returns.
        raises: What every call raises, such as a :class:`~agent_brain.tools.ToolError`.
        replies: What the calls return one after the other; exceptions are raised.
        does: A function, sync or async, of the arguments by name.
        description: Of a fake tool.
        input_schema: JSON Schema of a fake tool; default: any arguments.
        options: Options of :class:`~agent_brain.tools.BaseTool`, such as ``requires_approval``.

    Attributes:
        calls: Every call so far, in the order in which they began.

    Raises:
        ToolDefinitionError: More than one behaviour, or a fake whose schema is none.
    """

    def __init__(
        self,
        tool: BaseTool | Callable[..., Any] | str,
        *,
        returns: Any = None,
        raises: BaseException | None = None,
        replies: Iterable[Any] | None = None,
        does: Callable[..., Any] | None = None,
        description: str = "A fake tool.",
        input_schema: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._wrapped = None if isinstance(tool, str) else as_tool(tool)
        told = [value is not None for value in (returns, raises, replies, does)]
        if sum(told) > 1:
            raise ToolDefinitionError(
                "Tell a ToolSpy one thing to do: returns=, raises=, replies= or does="
            )
        self._fakes = self._wrapped is None or any(told)
        self._returns, self._raises, self._does = returns, raises, does
        self._replies = None if replies is None else list(replies)
        self.calls: list[SpiedCall] = []
        if self._wrapped is None:
            schema = {"type": "object"} if input_schema is None else input_schema
            super().__init__(str(tool), description, schema, **options)
            if problems := self._schema_problems():
                raise ToolDefinitionError(f"ToolSpy({tool!r}): {'; '.join(problems)}")
        else:
            kept = (
                "timeout",
                "requires_approval",
                "idempotent",
                "repeatable",
                "max_result_tokens",
            )
            own = {name: getattr(self._wrapped, name) for name in kept}
            super().__init__(
                self._wrapped.name,
                self._wrapped.description,
                self._wrapped.input_schema,
                **{**own, **options},
            )
            self.limiter = self.limiter or self._wrapped.limiter

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """As the tool that is watched; a fake goes by its schema."""
        return super().validate(args) if self._wrapped is None else self._wrapped.validate(args)

    async def execute(self, **kwargs: Any) -> Any:
        """Note the call, and do what the spy was told."""
        return await self._note(kwargs, kwargs)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """Validate ``args``, note the call, and do what the spy was told."""
        return await self._note(self.validate(args), args)

    async def _note(self, args: dict[str, Any], given: Mapping[str, Any]) -> Any:
        call = SpiedCall(args)
        self.calls.append(call)
        try:
            if self._wrapped is None or self._fakes:
                call.result = await self._fake(len(self.calls) - 1, args)
            elif given is args:
                call.result = await self._wrapped.execute(**args)
            else:
                call.result = await self._wrapped.invoke(given)
        except BaseException as error:
            call.exception = error
            raise
        return call.result

    async def _fake(self, index: int, args: dict[str, Any]) -> Any:
        reply = self._returns if self._raises is None else self._raises
        if self._does is not None:
            reply = await maybe_await(self._does(**args))
        elif self._replies is not None:
            if index >= len(self._replies):
                raise AssertionError(
                    f"Tool {self.name!r} was called {index + 1} times, but has "
                    f"{len(self._replies)} replies. The last call: {self._text(args)}"
                )
            reply = self._replies[index]
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def assert_called(self) -> None:
        """Check that it was called, once or more often."""
        if not self.calls:
            raise AssertionError(f"Tool {self.name!r} was not called")

    def assert_not_called(self) -> None:
        """Check that it was never called."""
        self.assert_calls()

    def assert_called_with(self, **args: Any) -> None:
        """Check that one of the calls had exactly these arguments."""
        if not any(call.args == args for call in self.calls):
            title = f"No call of tool {self.name!r} was as expected"
            raise AssertionError(explain_lines(title, [self._text(args)], self._texts()))

    def assert_called_once_with(self, **args: Any) -> None:
        """Check that it was called once, with exactly these arguments."""
        self.assert_calls(args)

    def assert_calls(self, *calls: Mapping[str, Any]) -> None:
        """Check the arguments of all calls, in the order in which they began."""
        if [call.args for call in self.calls] != [dict(args) for args in calls]:
            title = f"Tool {self.name!r} was called {len(self.calls)} times, not as expected"
            wanted = [self._text(dict(args)) for args in calls]
            raise AssertionError(explain_lines(title, wanted, self._texts()))

    def _text(self, args: dict[str, Any]) -> str:
        return f"{self.name}({args_text(args)})"

    def _texts(self) -> list[str]:
        return [self._text(call.args) for call in self.calls]
