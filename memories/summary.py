"""A memory that keeps the recent part of a conversation, and a summary of the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import cast

from pydantic import BaseModel, JsonValue

from agent_brain.memories.checks import whole_number
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.store.erasure import Gone
from agent_brain.memories.store.events import Change, Kept
from agent_brain.memories.store.expiry import LONG_AGO, utc_now
from agent_brain.memories.store.store import JournalLike
from agent_brain.memories.views.groups import group, is_whole
from agent_brain.memories.views.outline import outline
from agent_brain.memories.views.summary_writer import Summarize, SummaryWriter
from agent_brain.memories.views.tokens import Counter, kept_tokens, message_tokens
from agent_brain.memories.views.trimming import TrimmingMemory
from agent_brain.memories.views.window import Window
from agent_brain.memories.views.window_share import WindowShare
from agent_brain.tools.secrets import get_logger
from agent_brain.tools.text import count_tokens
from agent_brain.tools.toolset import ToolLike

logger = get_logger(__name__)

SUMMARY = "summary"  # the name under which it is kept
INTRODUCTION = "Summary of the conversation so far:\n"


class SummaryMemory(TrimmingMemory):
    """Recent messages as they are, older ones as a running summary (MetaGPT's BrainMemory).

    When the conversation passes a limit, :meth:`context` has its oldest groups summarised, and the
    messages go; the goal, pinned messages and the newest ones stay as they are, and so do system
    messages, as long as they take at most half of the limits. Every call of the summariser is given
    the summary so far; a backlog is taken in portions, one upon the other; and a summary that has
    grown too long is itself summarised, a level up.

    Nothing changes until the summary is there and written: messages that arrive meanwhile stay, and
    if the summariser fails or is cancelled everything is as it was. Until the next attempt the
    context is then a window of the newest groups.

    What is summarised stays in the journal, or in RAM where there is none: ``forget`` finds it
    there, and a summary that tells of something forgotten is written again without it.

    Args:
        tools: What the agent may call.
        summarize: An async function of the summary so far and the messages to add to it, which
            returns the new summary; ``agent_brain.states.model_summarizer(llm)`` asks a model. None
            makes an outline without a model.
        form: A pydantic model: the summary is JSON that fits it, and :attr:`fields` an instance.
            ``summarize`` returns such an instance, or its JSON; ``model_summarizer(llm, form=…)``
            does.
        max_messages: Summarise when there are more messages; None for no such limit.
        max_tokens: Summarise when there are more tokens, the summary included; None for no limit.
        max_share: Instead of ``max_tokens``: this share of ``context_window``, such as 0.7.
        context_window: How many tokens the model can read, or the name of a LiteLLM model, which is
            looked up in litellm's table at the first use.
        keep: How many messages to leave as they are, about; None for half of the limits.
        max_summary_tokens: A longer summary is summarised again, and cut if that does not help; at
            most half of ``max_tokens`` in any case.
        counter: Counts the tokens of a text.
        journal: As for :class:`RecordMemory`, like ``session``, ``tenant``, ``ttl``, ``clock`` and
            ``readonly``.

    Raises:
        MemoryDefinitionError: A limit that is not a whole number from 1, no limit at all, ``keep``
            above the limit, or options that do not go together.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        *,
        summarize: Summarize | None = None,
        form: type[BaseModel] | None = None,
        max_messages: int | None = 50,
        max_tokens: int | None = None,
        max_share: float | None = None,
        context_window: int | str | None = None,
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
        if form is not None and summarize is None:
            raise MemoryDefinitionError("form= needs summarize=, such as model_summarizer(llm, …)")
        self._share = WindowShare.of(max_share, context_window, max_tokens)
        if self._share is not None:
            max_tokens = self._share.tokens
        Window(max_messages, max_tokens, counter)  # checks the limits
        if max_messages is None and max_tokens is None and self._share is None:
            raise MemoryDefinitionError(
                "Nothing is summarised without max_messages=, max_tokens= or max_share="
            )
        whole_number("keep", keep, optional=True)
        if keep is not None and max_messages is not None and keep > max_messages:
            raise MemoryDefinitionError(f"keep= must be from 1 to max_messages, not {keep}")
        whole_number("max_summary_tokens", max_summary_tokens)
        if summarize is not None and not callable(summarize):
            raise MemoryDefinitionError(
                f"summarize={summarize!r} is not a function: wrap a model in model_summarizer(…) "
                "(from agent_brain.states.summarizing), or leave it out for an outline"
            )
        self._writer = SummaryWriter(summarize or outline, form, counter)
        self._max_summary_tokens = max_summary_tokens
        self._max_messages = max_messages
        self._max_tokens = max_tokens
        self._keep_messages = keep
        self._counter = counter
        self._compacting = False
        self._shown: Message | None = None
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
    def fields(self) -> BaseModel | None:
        """The summary as an instance of ``form``; None without one."""
        form = self._writer.form
        return form.model_validate_json(self.summary) if form and self.summary else None

    @property
    def level(self) -> int:
        """How often the summary itself has been summarised."""
        return cast(int, self._state().get("level", 0))

    @property
    def summarised(self) -> list[str]:
        """Ids of the messages that the summary is made of, oldest first."""
        return [*self._inherited, *sorted(self._covered, key=self._covered.__getitem__)]

    def _state(self) -> dict[str, JsonValue]:
        return cast("dict[str, JsonValue]", self._kept.get(SUMMARY) or {})

    async def context(self) -> list[Message]:
        """The summary, if there is one, and what came after it; summarises first if it is time."""
        if self._due is not None:
            await self._settle()
        await self._learn_limit()
        if not self.readonly and self._is_too_much() and len(self._record) >= self._retry_at:
            await self.compact()
        summary = self._summary_message()
        if summary is None:
            return self._show(0)
        return [summary, *self._show(message_tokens(summary, self._counter))]

    def _summary_message(self) -> Message | None:
        """The summary as a model sees it, made once for each summary."""
        state = self._state()
        if not self.summary:
            return None
        if self._shown is None:
            at = state.get("at")
            self._shown = Message.system(
                INTRODUCTION + self.summary,
                id="summary",
                cause_by=type(self).__name__,
                created_at=datetime.fromisoformat(str(at)) if at else self._clock(),
                metadata={"summarised": cast("list[JsonValue]", self.summarised)},
            )
        return self._shown

    async def _learn_limit(self) -> None:
        if self._share is not None and self._max_tokens is None:
            self._max_tokens = await self._share.look_up()

    async def compact(self) -> bool:
        """Summarise the oldest groups now, except those that are to stay as they are.

        Returns:
            Whether anything was summarised. False too if the summariser failed (the error is in the
            log), if another call is at it, or if a message was deleted meanwhile.
        """
        await self._write("compact()")
        await self._learn_limit()
        chosen = [] if self._compacting else self._choose()
        if not chosen:
            return False
        before = self._state()
        self._compacting = True
        try:
            text, level = await self._writer.write(
                self.summary, self.level, self._portions(chosen), self._most_of_summary()
            )
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

    def _most_of_summary(self) -> int:
        """How many tokens a summary may take: no more than half of what is shown."""
        most = self._max_summary_tokens
        return most if self._max_tokens is None else max(1, min(most, self._max_tokens // 2))

    def _replacement(
        self, chosen: list[Message], before: dict[str, JsonValue], state: dict[str, JsonValue]
    ) -> list[Change]:
        """The new summary, unless what it was made of has changed while it was written."""
        if self._state() != before or any(message.id not in self._record for message in chosen):
            return []
        upto = max(self._record.place(message.id) for message in chosen)
        covered = {message.id for message in chosen}
        state["upto"] = upto
        state["spared"] = [
            m.id for m in self._record if self._record.place(m.id) <= upto and m.id not in covered
        ]
        if self._inherited:
            state["ids"] = cast("list[JsonValue]", [*self._inherited])
        return [Kept(SUMMARY, state)]

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
        newest = {message.id for message in self._record.after(self._record.last - 1)}
        system = self._staying_system()
        for members in group(self._record):
            if left <= self._target() and (most_tokens is None or tokens <= most_tokens):
                break
            waits = members[0].id == speaker and not is_whole(members)
            stays = waits or any(m.id in newest or m.id in system for m in members)
            if not stays and not any(m.pinned or m.id == self._goal_id for m in members):
                left -= len(members)
                tokens -= sum(self._sizes.get(m.id, 0) for m in members)
                chosen.update(m.id for m in members)
        return [message for message in self._record if message.id in chosen]

    def _staying_system(self) -> set[str]:
        """The first system message and the newest others, as far as half of the limits goes."""
        system = [message.id for message in self._record.with_role(Role.SYSTEM)]
        room = sys.maxsize if self._max_messages is None else max(2, self._max_messages // 2)
        room_tokens = sys.maxsize if self._max_tokens is None else self._max_tokens // 2
        staying = {*system[:1], *system[-1:]}
        tokens = sum(self._sizes.get(message_id, 0) for message_id in staying)
        for message_id in reversed(system[1:-1]):
            tokens += self._sizes.get(message_id, 0)
            if len(staying) >= room or tokens > room_tokens:
                break
            staying.add(message_id)
        return staying

    def _target(self) -> int:
        if self._keep_messages is not None:
            return self._keep_messages
        return len(self._record) if self._max_messages is None else max(1, self._max_messages // 2)

    def _is_too_much(self) -> bool:
        if self._max_messages is not None and len(self._record) > self._max_messages:
            return True
        beside = self._counter(self.summary) + kept_tokens(self._kept, self._counter)
        return self._max_tokens is not None and self._tokens + beside > self._max_tokens

    def _exceeds(self, messages: Sequence[Message]) -> bool:
        if self._max_messages is not None and len(messages) > self._max_messages:
            return True
        most = self._max_tokens
        return most is not None and sum(self._sizes.get(m.id, 0) for m in messages) > most

    def _show(self, summary_tokens: int) -> list[Message]:
        """All messages in whole groups, or a window of them if they are too many."""
        window = Window(self._max_messages, self._max_tokens, self._counter)
        window.reserve(summary_tokens + kept_tokens(self._kept, self._counter))
        self._fill(window)
        hidden = set(window.overflow())
        return window.show([message for message in self._record if message.id not in hidden])

    def _emptied(self) -> None:
        super()._emptied()
        self._retry_at = 0
        self._tokens = 0
        self._sizes: dict[str, int] = {}
        self._forget_summary()

    def _forget_summary(self) -> None:
        self._covered: dict[str, int] = {}  # what the summary is made of, with its places
        self._inherited: list[str] = []  # the same, of before a restore: held nowhere
        self._shown = None

    def _added(self, messages: Sequence[Message]) -> None:
        if self._max_tokens is not None or self._share is not None:
            for message in messages:
                size = self._sizes[message.id] = message_tokens(message, self._counter)
                self._tokens += size

    def _removed(self, messages: Sequence[Message]) -> None:
        self._retry_at = 0
        for message in messages:
            self._tokens -= self._sizes.pop(message.id, 0)

    def _kept_changed(self, name: str) -> None:
        """What a new summary covers goes from the record; what a dropped one covered comes back."""
        if name != SUMMARY:
            return
        self._shown = None
        state = self._state()
        if not state:
            back = list(self._departed.values()) if self._keeps_departed else []
            self._departed = {} if self._keeps_departed else self._departed
            self._record.put_back(back)
            self._added([message for _, message in back])
            self._forget_summary()
            return
        self._inherited = cast("list[str]", state.get("ids", []))
        upto = cast(int, state.get("upto", 0))
        spared = set(cast("list[str]", state.get("spared", [])))
        covered = [
            m.id for m in self._record if self._record.place(m.id) <= upto and m.id not in spared
        ]
        left = self._depart(covered)
        self._covered.update((message.id, place) for place, message in left)
        self._removed([message for _, message in left])

    @property
    def _keeps_departed(self) -> bool:
        return self._session is None

    def _stop_watching(self, ids: Iterable[str]) -> None:
        """What is summarised expires, and the summary with it."""

    def _may_miss(self, ids: AbstractSet[str] | None, everything: Sequence[Message]) -> bool:
        missing = {*self._covered, *self._inherited} - {message.id for message in everything}
        return bool(missing if ids is None else missing & ids)

    def _tells_of(self, ids: set[str], *, unseen: bool) -> Iterable[str]:
        told = unseen or not ids.isdisjoint(self._covered) or not ids.isdisjoint(self._inherited)
        return [SUMMARY] if told else []

    async def _forget(self, ids: Sequence[str], *, unseen: bool, gone: Gone) -> int:
        summary = self.summary
        forgotten = await super()._forget(ids, unseen=unseen, gone=gone)
        if summary and not self.summary and self._session is not None:
            self._due = LONG_AGO  # what the summary told is read again, without what was forgotten
        return forgotten

    async def snapshot(self) -> Snapshot:
        """All that the memory holds, with the ids of what the summary is made of."""
        snapshot = await super().snapshot()
        state = snapshot.views.get(SUMMARY)
        if isinstance(state, dict):
            state["ids"] = cast("list[JsonValue]", self.summarised)
        return snapshot
