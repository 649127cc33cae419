"""What the protocols of user interfaces tell of a run: the frame of their translators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from agent_brain.common.text import clean, to_text
from agent_brain.memories.message import CUT_REASONS, Message
from agent_brain.serving.event_json import MARK, around, quoted
from agent_brain.serving.event_log import SessionEvent
from agent_brain.serving.web.chat.threads import Path, wait_id
from agent_brain.serving.web.streams import PartT, Translator
from agent_brain.states import events
from agent_brain.tools.action import Action

NOT_RUN = "The call was not run"  # what a user interface reads when a run ends before a call


@dataclass(frozen=True, slots=True)
class Text:
    """A text that has begun and not ended.

    Attributes:
        id: Its ID in the protocol.
        thought: Whether it is reasoning.
        path: The subnets and branches around the state that says it.
        state: That state.
    """

    id: str
    thought: bool
    path: Path
    state: str | None


class ChatTranslator(Translator[PartT]):
    """Translates the events of one run into parts of a protocol.

    Whatever comes in, what goes out is well-formed: everything that is started is finished, in the
    right order, also if the run fails or is cut off (:meth:`fail`). This class knows which texts
    and calls are open; a protocol says how each is told.

    Args:
        session: The ID of the session.
        known: Calls without a result that the client knows from the run that this one continues,
            with their paths.
        answered: Calls of that run whose results the client has given itself.
        asked: Calls of that run that asked in an earlier message; their results are told.
        show_tools: Whether calls are shown that do not need the client and wait for nobody.
    """

    def __init__(
        self,
        session: str,
        *,
        known: Iterable[tuple[Path, Action]] = (),
        answered: Iterable[tuple[Path, Action]] = (),
        asked: Iterable[tuple[Path, Action]] = (),
        show_tools: bool = True,
    ) -> None:
        self._session = session
        self._show_tools = show_tools
        self._texts: dict[tuple[Path, str | None], Text] = {}  # by the response that says it
        self._calls = {(path, call.id): call for path, call in known}  # told, without a result
        self._coming: dict[tuple[Path, str], Action] = {}  # calls whose arguments have not all come
        self._known = {*self._calls}
        self._hidden = {(path, call.id): call for path, call in answered}
        self._asked = {(path, call.id): call for path, call in asked}
        self._around: dict[Text, tuple[str, str]] = {}  # the bytes around a piece of it
        self._said = False  # text of the conversation
        self._started = self._ended = False

    def translate(self, event: events.AgentEvent) -> list[PartT]:
        """Return the parts for an event of the run; none before it starts and after it ends."""
        self._started = self._started or isinstance(event, events.RunStarted)
        if self._ended or not self._started:
            return []
        if isinstance(event, events.RunFailed):
            return self.fail(event.error)
        if isinstance(event, events.RunFinished):
            self._ended = True
            return self._finish(event)
        return self._inside_run(event)

    def frames(self, item: SessionEvent) -> bytes:
        """Return what the client is sent for an event; pieces of an open text are alike."""
        event = item.event
        if type(event) is not events.TextDelta or not event.text or self._ended:
            return super().frames(item)
        text = self._texts.get((event.path, event.response_id))
        if text is None or text.thought != event.thought:
            return super().frames(item)
        if (found := self._around.get(text)) is None:
            found = around(self.encode(self._delta(text, MARK)).decode())
            self._around = {text: found}  # of the last one only
        return f"{found[0]}{quoted(event.text)}{found[1]}".encode()

    def fail(self, error: Exception) -> list[PartT]:
        """Return the parts that end a stream with an error, which the run did not report."""
        if self._ended:
            return []
        self._ended = True
        return self._fail(error)

    def _inside_run(self, event: events.AgentEvent) -> list[PartT]:
        match event:
            case events.TextDelta():
                return self._add_text(event) if event.text else []
            case events.ActionDelta():
                return self._add_arguments(event)
            case events.ActionRequested(action=action):
                ended = self._end_response(event, event.response_id)
                return [*ended, *self._request(event, action)]
            case events.ActionStarted(action=action):
                return self._begin_call(event, action)
            case events.ToolProgress(action=action):
                return self._tell(event) if (event.path, action.id) in self._calls else []
            case events.ActionFinished(action=action):
                shown = self._begin_call(event, action)
                known = self._calls.pop((event.path, action.id), None) is not None
                return [*shown, *(self._result(event) if known else [])]
            case events.ApprovalRequested():
                return [part for call in event.actions for part in self._ask(event, call)]
            case events.InputRequested():
                return self._ask_question(event)
            case events.ProviderToolCalled():
                return self._inside_run(_as_finished(event))
            case _:
                return self._tell(event)

    # Texts

    def _add_text(self, event: events.TextDelta) -> list[PartT]:
        key = event.path, event.response_id
        text = self._texts.get(key)
        parts: list[PartT] = []
        if text is not None and text.thought != event.thought:
            parts, text = self._end_texts([key]), None
        if text is None:
            text = Text(self._text_id(event), event.thought, event.path, event.state)
            self._texts[key] = text
            parts += self._begin_text(text)
        self._said = self._said or not event.thought
        parts.append(self._delta(text, clean(event.text)))
        return parts

    def _unsaid(self, event: events.RunFinished) -> list[PartT]:
        """Tell the answer of a run that is done, if nothing was streamed."""
        if event.stop_reason != "done" or not event.answer or self._said:
            return []
        text_id = self._text_id(events.TextDelta(event.answer, at=event.at))
        text = Text(text_id, thought=False, path=(), state=None)
        said = [*self._begin_text(text), self._delta(text, clean(event.answer))]
        return [*said, *self._end_text(text, cut_off=event.finish_reason in CUT_REASONS)]

    def _end_response(
        self, event: events.Event, response_id: str | None, *, cut_off: bool = False
    ) -> list[PartT]:
        """End the text of a response."""
        return self._end_texts([(event.path, response_id)], cut_off=cut_off)

    def _end_state(self, path: Path, state: str | None) -> list[PartT]:
        """End the texts of a state, and of everything inside it."""
        inside = (*path, state)
        return self._end_texts(
            key
            for key, text in self._texts.items()
            if (text.path == path and text.state == state) or text.path[: len(inside)] == inside
        )

    def _end_path(self, path: Path, *, cut_off: bool = False) -> list[PartT]:
        """End the texts at a path and inside it; the empty path means all."""
        inside = (key for key in self._texts if key[0][: len(path)] == path)
        return self._end_texts(inside, cut_off=cut_off)

    def _end_texts(
        self, keys: Iterable[tuple[Path, str | None]], *, cut_off: bool = False
    ) -> list[PartT]:
        texts = [text for key in [*keys] if (text := self._texts.pop(key, None))]
        return [part for text in texts for part in self._end_text(text, cut_off=cut_off)]

    # Calls

    def _request(self, event: events.ActionRequested, action: Action) -> list[PartT]:
        """Tell of a new call, if the client may know it."""
        key = event.path, action.id
        self._hidden.pop(key, None)
        shown = self._show_tools or self._needs_client(action)
        if shown and key in self._coming:
            return self._need(event, action)
        if shown:
            self._calls[key] = action
            return self._show(event.path, action, event.response_id)
        self._calls.pop(key, None)
        self._hidden[key] = action
        return self._end_coming([key])

    def _begin_call(self, event: events.Event, action: Action) -> list[PartT]:
        """Tell of a call that begins or ends, if the client should know it and does not."""
        key = event.path, action.id
        told = key in self._coming or key in self._asked
        if not told and (not self._show_tools or key in self._hidden):
            return []
        return self._need(event, action)

    def _need(self, event: events.Event, action: Action) -> list[PartT]:
        """Tell of a call that the client must know, if it does not."""
        key = event.path, action.id
        self._hidden.pop(key, None)
        if key in self._calls:
            return []
        self._calls[key] = action
        coming = self._coming.get(key)
        if coming is None or coming.name != action.name:  # or its pieces named another tool
            return [*self._end_coming([key]), *self._show(event.path, action)]
        del self._coming[key]
        return self._end_arguments(event.path, action)

    def _add_arguments(self, event: events.ActionDelta) -> list[PartT]:
        """Tell of a piece of the arguments of a call, if the client may know it."""
        key, parts = (event.path, event.id), list[PartT]()
        if event.dropped:
            return self._end_coming([key])
        action = self._coming.get(key)
        if action is None:
            action = Action(name=event.name, id=event.id)
            shown = self._show_tools or self._needs_client(action)
            if key in self._calls or not shown:  # or the model uses an ID again
                return []
            self._coming[key] = action
            parts += self._end_response(event, event.response_id)
            parts += self._begin_arguments(event.path, action, event.response_id)
        return [*parts, self._arguments(event.path, action, clean(event.text))]

    def _end_coming(self, keys: Iterable[tuple[Path, str]]) -> list[PartT]:
        """Tell that calls whose arguments have not all come are not made."""
        calls = [(key, action) for key in [*keys] if (action := self._coming.pop(key, None))]
        return [part for (path, _), call in calls for part in self._drop(path, call)]

    def _ask(self, event: events.ApprovalRequested, action: Action) -> list[PartT]:
        return [*self._need(event, action), *self._approval(event.path, action)]

    def _ask_question(self, event: events.InputRequested) -> list[PartT]:
        """Tell of a question, and of the call that asks it, if a call does."""
        key = event.path, event.id
        places = (self._calls, self._hidden, self._asked)
        call = next((calls[key] for calls in places if key in calls), None)
        told = [] if call is None else self._need(event, call)
        return [*told, *self._question(event, call)]

    def _end_calls(self, path: Path, *, waits: bool = False) -> list[PartT]:
        """Tell that the calls at a path and inside it were not run; the empty path means all.

        Args:
            path: The path.
            waits: Whether the run waits for a person: calls that are requested may still run.
        """
        coming = self._end_coming(key for key in self._coming if key[0][: len(path)] == path)
        keys = [] if waits else [key for key in self._calls if key[0][: len(path)] == path]
        return [*coming, *(self._not_run(key[0], self._calls.pop(key)) for key in keys)]

    def _wait_id(self, key: str) -> str:
        """Return the ID with which the client answers a call or a question."""
        return wait_id(self._session, key)

    # What a protocol says

    @abstractmethod
    def _finish(self, event: events.RunFinished) -> list[PartT]: ...

    @abstractmethod
    def _fail(self, error: Exception) -> list[PartT]: ...

    @abstractmethod
    def _text_id(self, event: events.TextDelta) -> str: ...

    @abstractmethod
    def _begin_text(self, text: Text) -> list[PartT]: ...

    @abstractmethod
    def _delta(self, text: Text, piece: str) -> PartT: ...

    @abstractmethod
    def _end_text(self, text: Text, *, cut_off: bool) -> list[PartT]: ...

    @abstractmethod
    def _show(self, path: Path, action: Action, response_id: str | None = None) -> list[PartT]: ...

    @abstractmethod
    def _begin_arguments(
        self, path: Path, action: Action, response_id: str | None
    ) -> list[PartT]: ...

    @abstractmethod
    def _arguments(self, path: Path, action: Action, piece: str) -> PartT: ...

    @abstractmethod
    def _end_arguments(self, path: Path, action: Action) -> list[PartT]: ...

    @abstractmethod
    def _drop(self, path: Path, action: Action) -> list[PartT]:
        """Tell that a call is not made whose arguments have not all come."""

    @abstractmethod
    def _result(self, event: events.ActionFinished) -> list[PartT]: ...

    @abstractmethod
    def _not_run(self, path: Path, action: Action) -> PartT: ...

    @abstractmethod
    def _approval(self, path: Path, action: Action) -> list[PartT]: ...

    @abstractmethod
    def _question(self, event: events.InputRequested, call: Action | None) -> list[PartT]: ...

    @abstractmethod
    def _tell(self, event: events.AgentEvent) -> list[PartT]:
        """Tell of an event that is neither of a text nor of a call, or of the progress of one."""

    @abstractmethod
    def _own_event(self, event: events.Event) -> list[PartT]:
        """Tell of an event as it is."""

    def _is_own(self, event: events.AgentEvent) -> bool:
        """Return whether an event is one of a memory, or of the program's own class."""
        return event.kind not in events.KINDS or isinstance(event, events.OF_MEMORIES)

    def _needs_client(self, action: Action) -> bool:
        """Return whether the client is to run a call."""
        return False


def _as_finished(event: events.ProviderToolCalled) -> events.ActionFinished:
    """Return a call of a provider's tool as one of ours that has ended."""
    action = Action(name=event.name, args=dict(event.args), id=event.call_id)
    content = "" if event.result is None else to_text(event.result)
    return events.ActionFinished(action, Message.tool(content, action), at=event.at)
