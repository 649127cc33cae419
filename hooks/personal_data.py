"""Keep personal data from models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from json import dumps
from secrets import token_bytes
from typing import Any
from weakref import WeakKeyDictionary

from agent_brain.common.values import takes
from agent_brain.errors import BrainDefinitionError
from agent_brain.hooks.finding import KINDS, Find, Places, finder, own_finder, spans
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role
from agent_brain.states.hooks import (
    EmbeddingRequest,
    Hook,
    ModelRequest,
    ModelResponse,
    RunRequest,
    ToolRequest,
)
from agent_brain.states.model_stream import Replaced
from agent_brain.states.models.llm import ArgumentsDelta, Thought
from agent_brain.states.work import closing
from agent_brain.tools.action import Action

_NAME = re.compile(r"\[\w{1,30} \d{1,9}\]")
_BEGUN = re.compile(r"\[(?:\w{1,30}(?: \d{0,9})?)?\Z")


class HidePersonalData(Hook):
    r"""Replaces personal data in what models and embedders are sent by names as ``[email 1]``.

    ::

        Brain("react", hooks=[HidePersonalData()])
        Brain("react", hooks=[HidePersonalData("email", "card", also={"order": r"ORD-\d+"})])

    Of a name that a model writes, tools get the real value, and so do the reader and the memory.
    Only texts are searched: of pictures and files nothing is hidden.

    Args:
        kinds: What to find: ``"email"``, ``"iban"``, ``"card"`` (with a valid check digit),
            ``"ip"``, ``"phone"``. Default: all of them.
        also: What else to find, by the kind that the names show: a regular expression, or a
            function that returns the pieces of a text that are personal. Comes before ``kinds``.
        restore: Put the real values back into the answer.

    Raises:
        BrainDefinitionError: An unknown kind, or something that finds nothing.
    """

    def __init__(
        self, *kinds: str, also: Mapping[str, str | Find] | None = None, restore: bool = True
    ) -> None:
        self._finders: dict[str, Places] = {}
        if not isinstance(also or {}, Mapping):
            raise BrainDefinitionError(f"also={also!r}: give a dict of what to find, by its kind")
        for kind, given in (also or {}).items():
            if not (isinstance(given, str) or takes(given, "text")) or not re.fullmatch(
                r"\w{1,30}", kind
            ):
                raise BrainDefinitionError(
                    f"also={{{kind!r}: {given!r}}}: give a word, and a regular expression or a "
                    "function of a text that returns a list of what to hide in it"
                )
            try:
                self._finders[kind] = (
                    finder(given) if isinstance(given, str) else own_finder(kind, given)
                )
            except re.error as error:
                raise BrainDefinitionError(f"also={{{kind!r}: {given!r}}}: {error}") from error
        for kind in kinds or KINDS:
            if kind not in KINDS:
                raise BrainDefinitionError(
                    f"HidePersonalData({kind!r}): the kinds are {', '.join(map(repr, KINDS))}; "
                    "others are given in also="
                )
            self._finders.setdefault(kind, finder(*KINDS[kind]))
        self._restore = restore
        self._names: WeakKeyDictionary[Memory, _Names] = WeakKeyDictionary()

    def hide(self, text: str) -> str:
        """Return ``text`` with the kinds of what is personal in place of it: ``[email]``."""
        return self._replaced(text, lambda kind, _: f"[{kind}]")

    def _replaced(self, text: str, name: Callable[[str, str], str]) -> str:
        parts, at = [], 0
        for start, end, kind in spans(text, self._finders):
            parts += [text[at:start], name(kind, text[start:end])]
            at = end
        return "".join([*parts, text[at:]]) if parts else text

    def before_model_call(self, request: ModelRequest) -> ModelRequest | None:
        """Hide what is personal in the messages."""
        names = self._names_of(request.memory)
        real = names.calls[request.response_id] = _Real()

        def name(kind: str, value: str) -> str:
            return real.add(names.make(kind, value), value)

        hide = partial(self._replaced, name=name)
        messages = [_with_texts(message, hide) for message in request.messages]
        return replace(request, messages=messages) if real else None

    def after_model_call(
        self, request: ModelRequest, response: ModelResponse
    ) -> ModelResponse | None:
        """Put the real values back into what a hook after this one has answered or changed."""
        real = self._names_of(request.memory).calls.pop(request.response_id, _Real())
        changed = self._restored(real, response, json=request.output_type is not None)
        return None if changed == response else changed

    def _restored(self, real: _Real, response: ModelResponse, *, json: bool) -> ModelResponse:
        changed = replace(response, actions=tuple(map(real.in_action, response.actions)))
        if self._restore:
            texts = (response.text, response.thoughts)
            text, thoughts = (real.in_text(each, json=json) for each in texts)
            changed = replace(changed, text=text, thoughts=thoughts)
        return changed

    def on_model_error(self, request: ModelRequest, error: Exception) -> None:
        """Forget the values of the call."""
        self._names_of(request.memory).calls.pop(request.response_id, None)

    def after_run(self, request: RunRequest, result: object) -> None:
        """Forget the values of calls that were cut off."""
        self._names_of(request.memory).calls.clear()

    def on_run_error(self, request: RunRequest, error: Exception) -> None:
        """Forget the values of calls that were cut off."""
        self._names_of(request.memory).calls.clear()

    async def before_tool_call(self, request: ToolRequest) -> ToolRequest | None:
        """Put the real values back, if a model without native calls has written them as text."""
        action, memory = request.action, request.memory
        if memory is None or not _NAME.search(f"{action.args} {action.unparsed}"):
            return None
        names, real = self._names_of(memory), _Real()

        def note(kind: str, value: str) -> str:
            name = names.known(kind, value)
            return value if name is None else real.add(name, value)

        for message in [*await memory.goal(), *await memory.dump()]:
            _with_texts(message, partial(self._replaced, name=note))
        restored = real.in_action(action)
        return None if restored == action else replace(request, action=restored)

    async def before_approval(self, request: ToolRequest) -> ToolRequest | None:
        """Show a person the real values."""
        return await self.before_tool_call(request)

    def before_embedding(self, request: EmbeddingRequest) -> EmbeddingRequest:
        """Hide what is personal in the texts."""
        return replace(request, texts=[*map(self.hide, request.texts)])

    async def stream_model_call(
        self, request: ModelRequest, pieces: AsyncIterator[Any]
    ) -> AsyncGenerator[Any, None]:
        """Put the real values back into calls of tools, and into the text."""
        real = self._names_of(request.memory).calls.get(request.response_id, _Real())
        in_json, held = request.output_type is not None, dict[object, str]()

        def shown(key: object, text: str, *, json: bool) -> str:
            text = real.in_text(held.get(key, "") + text, json=json)
            begun = _BEGUN.search(text)  # it may become a name
            held[key] = "" if begun is None else begun[0]
            return text.removesuffix(held[key])

        async with closing(pieces):
            async for piece in pieces:
                if isinstance(piece, Action):
                    if rest := held.pop(piece.id, ""):
                        yield ArgumentsDelta(piece.id, piece.name, rest)
                    yield real.in_action(piece)
                elif isinstance(piece, ArgumentsDelta):
                    if text := shown(piece.id, piece.text, json=True):
                        yield replace(piece, text=text)
                elif isinstance(piece, str) and self._restore:
                    kind = Thought if isinstance(piece, Thought) else str
                    if text := shown(kind, piece, json=in_json):
                        yield kind(text)
                elif isinstance(piece, Replaced):  # an attempt, by a hook
                    held.clear()
                    yield replace(
                        piece, response=self._restored(real, piece.response, json=in_json)
                    )
                else:
                    yield piece
            for kind in (str, Thought):
                if rest := held.get(kind, ""):
                    yield kind(rest)

    def _names_of(self, memory: Memory | None) -> _Names:
        return _Names() if memory is None else self._names.setdefault(memory, _Names())


class _Names:
    """The names of what was hidden in a memory's messages, without the values.

    Attributes:
        calls: What the names stand for in each model call on its way.
    """

    def __init__(self) -> None:
        self.calls: dict[str, _Real] = {}
        self._key = token_bytes(32)
        self._names: dict[bytes, str] = {}  # by the digests of values
        self._counts: Counter[str] = Counter()

    def make(self, kind: str, value: str) -> str:
        """Return the name of a value; a new one if it has none."""
        if (name := self.known(kind, value)) is None:
            self._counts[kind] += 1
            name = self._names[self._digest(kind, value)] = f"[{kind} {self._counts[kind]}]"
        return name

    def known(self, kind: str, value: str) -> str | None:
        """Return the name of a value; None if it has none."""
        return self._names.get(self._digest(kind, value))

    def _digest(self, kind: str, value: str) -> bytes:
        return blake2b(f"{kind} {value}".encode("utf-8", "surrogatepass"), key=self._key).digest()


class _Real(dict[str, str]):
    """What names stand for, by the names in lower case."""

    def add(self, name: str, value: str) -> str:
        """Note what a name stands for; return the name."""
        self[name.lower()] = value
        return name

    def in_text(self, text: str, *, json: bool = False) -> str:
        """Return a text with the values in place of their names."""

        def real(match: re.Match[str]) -> str:
            value = self.get(match[0].lower())
            if value is None:
                return match[0]
            return dumps(value, ensure_ascii=False)[1:-1] if json else value

        return _NAME.sub(real, text) if self else text

    def in_action(self, action: Action) -> Action:
        """Return a call with the values in place of their names."""
        return _in_action(action, self.in_text) if self else action


def _with_texts(message: Message, change: Callable[[str], str]) -> Message:
    """Return a message with ``change`` applied to what a model reads of it."""
    changed: dict[str, Any] = {"content": change(message.content)}
    if message.name is not None and message.role is not Role.TOOL:
        changed["name"] = change(message.name)
    if message.tool_calls:
        changed["tool_calls"] = tuple(_in_action(call, change) for call in message.tool_calls)
    if message.attachments:
        changed["attachments"] = tuple(
            each.model_copy(
                update={
                    "name": each.name and change(each.name),
                    "at": None if each.at is None else len(change(message.content[: each.at])),
                }
            )
            for each in message.attachments
        )
    same = all(getattr(message, field) == value for field, value in changed.items())
    return message if same else message.model_copy(update=changed)


def _in_action(action: Action, change: Any) -> Action:
    """Return a call with ``change`` applied to the texts in its arguments."""

    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, Mapping):
            return {change(name): changed(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [changed(item) for item in value]
        return value

    args = {name: changed(value) for name, value in action.args.items()}
    update = {"args": args, "unparsed": changed(action.unparsed)}
    return action.model_copy(update=update)
