"""A tool that records its calls: a wrapper of a real tool, or a fake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_brain.common.aio import maybe_await
from agent_brain.common.errors import ToolDefinitionError
from agent_brain.testing.differences import args_text, explain_lines
from agent_brain.tools.base import BaseTool
from agent_brain.tools.function import as_tool

_OPTIONS = ("timeout", "requires_approval", "idempotent", "repeatable", "max_result_tokens")


@dataclass(slots=True)
class SpiedCall:
    """One call that reached the tool.

    Attributes:
        args: The validated arguments.
        result: What it returned; None while it runs, and if it raised.
        exception: What it raised, including cancellation.
    """

    args: dict[str, Any]
    result: Any = None
    exception: BaseException | None = None


class ToolSpy(BaseTool):
    """A tool that records its calls.

    For example::

        spy = ToolSpy(weather, returns="Rain")  # or ToolSpy("weather", …) for a tool of that name
        await run_net(react(llm), "How is the weather in Rome?", tools=[spy])
        spy.assert_called_once_with(city="Rome")

    A real tool runs, unless one of ``returns``, ``raises``, ``replies`` and ``does`` replaces it;
    then only its name, description and schema are used. A fake returns None by default.

    Calls whose arguments do not fit the schema never reach the tool and are not recorded.

    Args:
        tool: A tool, a function, or the name of a fake.
        returns: The result of every call.
        raises: An exception that every call raises.
        replies: The results of the calls in order; exceptions are raised.
        does: A function, sync or async, of the arguments by name.
        description: Description of a fake.
        input_schema: JSON Schema of a fake. Default: any arguments.
        options: Options of :class:`~agent_brain.tools.BaseTool`, such as ``requires_approval``.

    Attributes:
        calls: Every call so far, in the order in which they began.

    Raises:
        ToolDefinitionError: More than one behaviour is given, or the schema of a fake is invalid.
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
        given = sum(value is not None for value in (returns, raises, replies, does))
        if given > 1:
            raise ToolDefinitionError(
                "A ToolSpy takes only one of returns=, raises=, replies= and does="
            )
        self._fakes = self._wrapped is None or given > 0
        self._returns, self._raises, self._does = returns, raises, does
        self._replies = None if replies is None else list(replies)
        self.calls: list[SpiedCall] = []
        if self._wrapped is None:
            schema = {"type": "object"} if input_schema is None else input_schema
            super().__init__(str(tool), description, schema, **options)
            if problems := self._schema_problems():
                raise ToolDefinitionError(f"ToolSpy({tool!r}): {'; '.join(problems)}")
        else:
            real = self._wrapped
            own = {name: getattr(real, name) for name in _OPTIONS}
            super().__init__(real.name, real.description, real.input_schema, **own | options)
            self.limiter = self.limiter or real.limiter

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Validate as the real tool does; a fake uses its schema."""
        return super().validate(args) if self._wrapped is None else self._wrapped.validate(args)

    async def execute(self, **kwargs: Any) -> Any:
        """Record a call with validated arguments and run it."""
        return await self._record(kwargs, kwargs)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """Validate ``args``, record the call and run it."""
        return await self._record(self.validate(args), args)

    async def _record(self, args: dict[str, Any], given: Mapping[str, Any]) -> Any:
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
        """Check that it was called at least once."""
        if not self.calls:
            raise AssertionError(f"Tool {self.name!r} was not called")

    def assert_not_called(self) -> None:
        """Check that it was never called."""
        self.assert_calls()

    def assert_called_with(self, **args: Any) -> None:
        """Check that one of the calls had exactly these arguments."""
        if not any(call.args == args for call in self.calls):
            title = f"Tool {self.name!r} was never called with these arguments"
            raise AssertionError(explain_lines(title, [self._text(args)], self._texts()))

    def assert_called_once_with(self, **args: Any) -> None:
        """Check that it was called exactly once, with exactly these arguments."""
        self.assert_calls(args)

    def assert_calls(self, *calls: Mapping[str, Any]) -> None:
        """Check the arguments of all calls, in the order in which they began."""
        if [call.args for call in self.calls] != [dict(args) for args in calls]:
            title = f"Tool {self.name!r} was called {len(self.calls)} times, but not as expected"
            wanted = [self._text(dict(args)) for args in calls]
            raise AssertionError(explain_lines(title, wanted, self._texts()))

    def _text(self, args: dict[str, Any]) -> str:
        return f"{self.name}({args_text(args)})"

    def _texts(self) -> list[str]:
        return [self._text(call.args) for call in self.calls]
