"""The tool calls of a run that a user interface knows. Private."""

from __future__ import annotations

from collections.abc import Iterable

from agent_brain.serving.web.chat.parts import Path
from agent_brain.states.events import Event
from agent_brain.tools.action import Action

NOT_RUN = "The call was not run"  # what a user interface reads when a run ends before a call


class ShownCalls:
    """The calls that the client was told of and that have no result yet.

    Args:
        known: Those that it was told of by an earlier run, which this one continues, with their
            paths.
        answered: Calls of that run whose results the client has given itself.
        visible: Whether it is told of calls that need nothing from it.
    """

    def __init__(
        self,
        known: Iterable[tuple[Path, Action]] = (),
        *,
        answered: Iterable[tuple[Path, Action]] = (),
        visible: bool = True,
    ) -> None:
        self._visible = visible
        self._open: dict[tuple[Path, str], Action] = {(path, call.id): call for path, call in known}
        self._hidden = {(path, call.id) for path, call in answered}

    def request(self, event: Event, action: Action) -> bool:
        """Note a new call; return whether the client is told of it."""
        key = (event.path, action.id)
        self._hidden.discard(key)
        if not self._visible:
            self._open.pop(key, None)
            self._hidden.add(key)
            return False
        self._open[key] = action
        return True

    def need(self, event: Event, action: Action) -> bool:
        """Note a call that the client must know; return whether it is to be told of it now."""
        key = (event.path, action.id)
        self._hidden.discard(key)
        if key in self._open:
            return False
        self._open[key] = action
        return True

    def begin(self, event: Event, action: Action) -> bool:
        """Note a call that begins or ends; return whether the client is to be told of it now."""
        if not self._visible or (event.path, action.id) in self._hidden:
            return False
        return self.need(event, action)

    def finish(self, event: Event, action: Action) -> bool:
        """Note a result; return whether the client is told of it."""
        return self._open.pop((event.path, action.id), None) is not None

    def is_hidden(self, event: Event, action: Action) -> bool:
        """Return whether the client was not told of a call."""
        return (event.path, action.id) not in self._open

    def open_call(self, event: Event, call_id: str) -> Action | None:
        """Return the call at the path of ``event`` with that ID, if the client knows it."""
        return self._open.get((event.path, call_id))

    def close_path(self, path: Path) -> list[tuple[Path, Action]]:
        """Forget the calls at a path and inside it, and return them; the empty path means all."""
        left = [key for key in self._open if key[0][: len(path)] == path]
        return [(key[0], self._open.pop(key)) for key in left]
