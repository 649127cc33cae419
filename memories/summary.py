"""A memory that keeps the recent part of a conversation, and a summary of the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias, cast

from pydantic import JsonValue

from agent_brain.memories.changes import Change, Kept
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.expiry import LONG_AGO, utc_now
from agent_brain.memories.groups import group, is_whole
from agent_brain.memories.message import Message, Role
from agent_brain.memories.outline import outline
from agent_brain.memories.record_core import JournalLike
from agent_brain.memories.record_memory import RecordMemory
from agent_brain.memories.striking import Gone
from agent_brain.memories.tokens import MESSAGE_TOKENS, Counter, cut, message_tokens
from agent_brain.memories.window import Window
from agent_brain.tools.secrets import get_logger
from agent_brain.tools.text import count_tokens
from agent_brain.tools.toolset import ToolLike
from agent_brain.tools.values import is_count

Summarize: TypeAlias = Callable[[str, list[Message]], Awaitable[str]]

logger = get_logger(__name__)

SUMMARY = "summary"  # the name under which it is kept
INTRODUCTION = "Summary of the conversation so far:\n"


class SummaryMemory(RecordMemory):
    """Recent messages as they are, older ones as a running summary (MetaGPT's BrainMemory).

    When the conversation passes a limit, :meth:`context` has its oldest groups summarised, and the
    messages go; the goal, pinned messages and the newest ones stay as they are. Every call of the
    summariser is given the summary so far; a backlog is taken in portions, one upon the other; and
    a summary that has grown too long is itself summarised, a level up.

    Nothing changes until the summary is there and written: messages that arrive meanwhile stay, and
    if the summariser fails or is cancelled everything is as it was. Until the next attempt the
    context is then a window of the newest groups.

    Args:
        tools: What the agent may call.
        summarize: An async function of the summary so far and the messages to add to it, which
            returns the new summary; ``agent_brain.states.model_summarizer(llm)`` asks a model. None
            makes an outline without a model.
        max_messages: Summarise when there are more messages; None for no such limit.
        max_tokens: Summarise when there are more tokens, the summary included; None for no limit.
        keep: How many messages to leave as they are, about; None for half of the limits.
        max_summary_tokens: A longer summary is summarised again, and cut if that does not help.
        counter: Counts the tokens of a text.
        journal: As for :class:`RecordMemory`, like ``session``, ``tenant``, ``ttl``, ``clock`` and
            ``readonly``. What is summarised stays in a durable journal.

    Raises:
        MemoryDefinitionError: A limit below 1, no limit at all, or ``keep`` above the limit.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        *,
        summarize: Summarize | None = None,
        max_messages: int | None = 50,
        max_tokens: int | None = None,
        keep: int | None = None,
        max_summary_tokens: int = 1000,
        counter: Counter = count_tokens,
        journal: JournalLike | None = None,
        session: str = "default",
        tenant: str | None = None,
        ttl: timedelta | float | None = None,
        clock: Callable[[], datetime] = utc_now,
        readonly: bool = False,
    ) -> None:
        Window(max_messages, max_tokens, counter)  # checks the limits
        if max_messages is None and max_tokens is None:
            raise MemoryDefinitionError(
                "Nothing is summarised without max_messages= or max_tokens="
            )
        if keep is not None and (not is_count(keep) or keep > (max_messages or keep)):
            raise MemoryDefinitionError(f"keep= must be from 1 to max_messages, not {keep!r}")
        if not is_count(max_summary_tokens):
            raise MemoryDefinitionError("max_summary_tokens= must be at least 1")
        if summarize is not None and not callable(summarize):
            raise MemoryDefinitionError(
                f"summarize={summarize!r} is not a function: wrap a model in model_summarizer(…) "
                "(from agent_brain.states.summarizing), or leave it out for an outline"
            )
        self._summarize = summarize or outline
        self._max_messages = max_messages
        self._max_tokens = max_tokens
        self._keep_messages = keep
        self._max_summary_tokens = max_summary_tokens
        self._counter = counter
        self._compacting = False
        super().__init__(
            tools,
            journal=journal,
            session=session,
            tenant=tenant,
            ttl=ttl,
            clock=clock,
            readonly=readonly,
        )

    @property
    def summary(self) -> str:
        """The summary so far; empty if there is none."""
        return str(self._state().get("text", ""))

    @property
    def level(self) -> int:
        """How often the summary itself has been summarised."""
        return cast(int, self._state().get("level", 0))

    def _state(self) -> dict[str, JsonValue]:
        return cast("dict[str, JsonValue]", self._kept.get(SUMMARY) or {})

    async def context(self) -> list[Message]:
        """The summary, if there is one, and what came after it; summarises first if it is time."""
        if self._due is not None:
            await self._settle()
        if not self.readonly and self._is_too_much() and len(self._record) >= self._retry_at:
            await self.compact()
        summary = self.summary
        shown = self._show(self._counter(INTRODUCTION + summary) + MESSAGE_TOKENS if summary else 0)
        if not summary:
            return shown
        written = datetime.fromisoformat(str(self._state().get("at") or self._clock().isoformat()))
        return [
            Message.system(
                INTRODUCTION + summary,
                id="summary",
                cause_by=type(self).__name__,
                created_at=written,
            ),
            *shown,
        ]

    async def compact(self) -> bool:
        """Summarise the oldest groups now, except those that are to stay as they are.

        Returns:
            Whether anything was summarised. False too if the summariser failed (the error is in the
            log), if another call is at it, or if a message was deleted meanwhile.
        """
        await self._write("compact()")
        chosen = [] if self._compacting else self._choose()
        if not chosen:
            return False
        before = self._state()
        self._compacting = True
        try:
            text, level = await self._write_summary(chosen)
        except Exception:
            logger.warning("The summariser failed; a window is shown instead", exc_info=True)
            self._retry_at = len(self._record) + max(1, self._target() // 4)
            return False
        finally:
            self._compacting = False
        state: dict[str, JsonValue] = {
            "text": text,
            "level": level,
            "at": self._clock().isoformat(),
        }
        await self._change(lambda: self._replacement(chosen, before, state))
        return self._state() == state

    def _replacement(
        self, chosen: list[Message], before: dict[str, JsonValue], state: dict[str, JsonValue]
    ) -> list[Change]:
        """The new summary, unless what it was made of has changed while it was written."""
        if self._state() != before or any(message.id not in self._record for message in chosen):
            return []
        upto = self._record.place(chosen[-1].id)
        covered = {message.id for message in chosen}
        state["upto"] = upto
        state["spared"] = [
            m.id for m in self._record if self._record.place(m.id) <= upto and m.id not in covered
        ]
        return [Kept(SUMMARY, state)]

    async def _write_summary(self, chosen: list[Message]) -> tuple[str, int]:
        text, level = self.summary, self.level
        for portion in self._portions(chosen):
            text = await self._summarize(text, portion)
            if not text.strip():
                raise ValueError("the summariser returned nothing")
        if self._counter(text) > self._max_summary_tokens:
            text, level = await self._summarize("", [Message.system(text)]), level + 1
            text = cut(text, self._max_summary_tokens, self._counter)
        return text, level

    def _portions(self, messages: list[Message]) -> Iterator[list[Message]]:
        """``messages`` in whole groups, as many at a time as the limits allow."""
        portion: list[Message] = []
        for members in group(messages):
            if portion and self._exceeds([*portion, *members]):
                yield portion
                portion = []
            portion += members
        yield portion

    def _choose(self) -> list[Message]:
        """The oldest messages, in whole groups, without which few enough are left."""
        left, tokens = len(self._record), self._tokens
        most_tokens = None if self._max_tokens is None else self._max_tokens // 2
        chosen: set[str] = set()
        speaker = next((m.id for m in reversed(self._record) if m.role is Role.ASSISTANT), None)
        for members in group(self._record)[:-1]:
            if left <= self._target() and (most_tokens is None or tokens <= most_tokens):
                break
            waits = members[0].id == speaker and not is_whole(members)
            if not waits and not any(m.pinned or m.id == self._goal_id for m in members):
                left -= len(members)
                tokens -= sum(self._sizes.get(m.id, 0) for m in members)
                chosen.update(m.id for m in members)
        return [message for message in self._record if message.id in chosen]

    def _target(self) -> int:
        if self._keep_messages is not None:
            return self._keep_messages
        return len(self._record) if self._max_messages is None else max(1, self._max_messages // 2)

    def _is_too_much(self) -> bool:
        return (self._max_messages is not None and len(self._record) > self._max_messages) or (
            self._max_tokens is not None
            and self._tokens + self._counter(self.summary) > self._max_tokens
        )

    def _exceeds(self, messages: Sequence[Message]) -> bool:
        if self._max_messages is not None and len(messages) > self._max_messages:
            return True
        most = self._max_tokens
        return most is not None and sum(self._sizes.get(m.id, 0) for m in messages) > most

    def _show(self, summary_tokens: int) -> list[Message]:
        """All messages in whole groups, or a window of them if they are too many."""
        room = None if self._max_tokens is None else max(self._max_tokens - summary_tokens, 1)
        window = Window(self._max_messages, room, self._counter)
        window.set_goal(self._goal_id)
        for message in self._record:
            window.add([message])
            window.shorten_newest()
        hidden = set(window.overflow())
        return window.show([message for message in self._record if message.id not in hidden])

    def _emptied(self) -> None:
        self._retry_at = 0
        self._tokens = 0
        self._sizes: dict[str, int] = {}

    def _added(self, messages: Sequence[Message]) -> None:
        if self._max_tokens is not None:
            for message in messages:
                size = self._sizes[message.id] = message_tokens(message, self._counter)
                self._tokens += size

    def _removed(self, messages: Sequence[Message]) -> None:
        self._retry_at = 0
        for message in messages:
            self._tokens -= self._sizes.pop(message.id, 0)

    def _kept_changed(self, name: str) -> None:
        """What a new summary covers goes from the record; a durable journal still has it."""
        if name == SUMMARY and self._state():
            upto = cast(int, self._state().get("upto", 0))
            spared = set(cast("list[str]", self._state().get("spared", [])))
            covered = [
                m.id
                for m in self._record
                if self._record.place(m.id) <= upto and m.id not in spared
            ]
            self._removed(self._record.remove(covered))

    def _tells_of(self, ids: set[str], *, unseen: bool) -> Iterable[str]:
        session = self._session
        complete = session is not None and session.journal.persistent
        covered = any(message_id not in self._record for message_id in ids)
        return [SUMMARY] if covered or (unseen and not complete) else []

    async def _forget(self, ids: Sequence[str], *, unseen: bool, gone: Gone) -> int:
        summary = self.summary
        forgotten = await super()._forget(ids, unseen=unseen, gone=gone)
        if summary and not self.summary and self._session is not None:
            self._due = LONG_AGO  # what the summary told is read again, without what was forgotten
        return forgotten
