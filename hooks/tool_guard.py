"""Look at the arguments of tool calls before the tools run."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from agent_brain.common.aio import maybe_await
from agent_brain.common.text import to_compact_json
from agent_brain.common.values import takes
from agent_brain.errors import BrainDefinitionError, Refused
from agent_brain.states.hooks import Hook, ToolRequest, ToolResponse
from agent_brain.tools.action import Action, thawed
from agent_brain.tools.calling import is_valid

Args: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[Any], Any | Awaitable[Any]]

_DENIED = "It may not have these arguments"


class ToolGuard(Hook):
    r"""Denies tool calls by their arguments, has a person approve them, or changes them.

    ::

        ToolGuard(
            deny={"run_*": r"\bsudo\b", "read_page": lambda args: outside(args["url"])},
            ask={"pay": lambda args: args["amount"] > 100},
            change={"search": lambda args: {**args, "limit": 10}},
        )

    Tools are named by patterns as in :meth:`Toolset.filter`. A rule is a function of the arguments,
    sync or async, or for ``deny`` and ``ask`` a regular expression that is searched in each text
    among them, names included. The model reads why a call was denied, and with what it was made if
    it was changed. A function is given valid arguments, as JSON values of its own. If it fails, the
    call is denied.
    A person is asked about changed arguments, and with these, or with what the person has made of
    them, the call is made, unless it is denied: ``deny`` is given the arguments that would run.

    Args:
        deny: A function returns why a call is denied, or True.
        ask: A function returns whether a person must approve the call, as ``requires_approval``
            of a tool does.
        change: A function returns the arguments to call the tool with; None changes nothing.

    Raises:
        BrainDefinitionError: Something that is not a rule.
    """

    def __init__(
        self,
        *,
        deny: Mapping[str, str | Rule] | None = None,
        ask: Mapping[str, str | Rule] | None = None,
        change: Mapping[str, Rule] | None = None,
    ) -> None:
        self._deny = _rules("deny", deny)
        self._ask = _rules("ask", ask)
        self._change = _rules("change", change)

    async def before_approval(self, request: ToolRequest) -> ToolRequest | None:
        """Change the arguments that a person is asked about."""
        try:
            return await self._changed(request)
        except Exception:  # before_tool_call denies the call
            return None

    async def needs_approval(self, request: ToolRequest) -> bool:
        """Return whether a person must approve the call, also if a rule fails."""
        try:
            return any([await maybe_await(rule(args)) for rule, args in _of(self._ask, request)])
        except Exception:  # when in doubt, a person decides
            return True

    async def before_tool_call(self, request: ToolRequest) -> ToolRequest | None:
        """Change the arguments, unless a person has approved them; deny the call that is left."""
        control = None if request.memory is None else request.memory.control
        try:
            changed = await self._changed(request)
            if control is not None and control.decision_on(request.action) is not None:
                changed = None
            for rule, args in _of(self._deny, changed or request):
                if why := await maybe_await(rule(args)):
                    raise Refused(why if isinstance(why, str) else _DENIED)
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"A rule for such calls failed with {error!r}") from error
        return changed

    async def _changed(self, request: ToolRequest) -> ToolRequest | None:
        action = request.action
        for rule in _named(self._change, action.name):
            if (args := _valid_args(request)) is None:
                break
            given = await maybe_await(rule(args))
            if given is None:
                continue
            if not isinstance(given, Mapping):
                raise TypeError(f"a rule of change= returned {given!r}: return a dict or None")
            changed = Action(name=action.name, args=dict(given), id=action.id)
            request = replace(request, action=changed)
        return None if request.action.args == action.args else request

    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> ToolResponse | None:
        """Tell the model with what the call was made, if that was changed."""
        control = None if request.memory is None else request.memory.control
        action = request.action
        asked = [a for a in control.next_actions if a.id == action.id] if control else []
        if not self._change or not asked or asked[0].args == action.args:
            return None
        decision = control.decision_on(action) if control else None
        if decision is not None and decision.args == action.args:  # a person has changed it
            return None
        made = f"[The call was made with other arguments: {to_compact_json(action.args)}]"
        return replace(response, content=f"{made}\n{response.content}")


def _valid_args(request: ToolRequest) -> Args | None:
    """Return the arguments of a call; None for a call that will not run."""
    tool, action = request.tool, request.action
    return None if tool is None or not is_valid(action, tool) else thawed(action.args)


def _of(rules: Mapping[str, Rule], request: ToolRequest) -> Iterator[tuple[Rule, Args]]:
    """Yield the rules for a call, each with arguments of its own."""
    for rule in _named(rules, request.action.name):
        if (args := _valid_args(request)) is not None:
            yield rule, args


def _named(rules: Mapping[str, Rule], name: str) -> list[Rule]:
    return [rule for pattern, rule in rules.items() if fnmatchcase(name, pattern)]


def _rules(option: str, given: Mapping[str, str | Rule] | None) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    if not isinstance(given or {}, Mapping):
        raise BrainDefinitionError(
            f"{option}={given!r}: give a dict of rules, by patterns of names"
        )
    for name, rule in (given or {}).items():
        try:
            found = _search(re.compile(rule)) if isinstance(rule, str) else rule
        except re.error as error:
            raise BrainDefinitionError(f"{option}={{{name!r}: {rule!r}}}: {error}") from error
        rules[name] = found
        if not takes(found, "arguments") or (option == "change" and isinstance(rule, str)):
            raise BrainDefinitionError(
                f"{option}={{{name!r}: {rule!r}}}: give a function of the arguments"
                + ("" if option == "change" else ", or a regular expression")
            )
    return rules


def _search(pattern: re.Pattern[str]) -> Rule:
    def search(value: Any) -> str | None:
        if isinstance(value, str):
            found = pattern.search(value)
            return found and f"No text in its arguments may match {pattern.pattern!r}"
        inner = (*value, *value.values()) if isinstance(value, dict) else value
        several = inner if isinstance(value, dict | list) else ()
        return next(filter(None, map(search, several)), None)

    return search
