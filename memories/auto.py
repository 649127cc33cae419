"""A memory that shows everything while it fits, then less of it, by itself."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from os import PathLike
from typing import Any, Unpack, cast

from pydantic import JsonValue

from agent_brain.common.secrets import get_logger
from agent_brain.common.text import count_tokens
from agent_brain.memories.embedders import EmbedderLike
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.options import StoreOptions, refuse_others
from agent_brain.memories.recall.indexing import Indexed
from agent_brain.memories.store.checks import whole_number
from agent_brain.memories.store.events import Change, ValueSet
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.summary import INTRODUCTION, report_compacted, summary_message
from agent_brain.memories.vector import VectorMemory
from agent_brain.memories.vectors.vectors import Vectors
from agent_brain.memories.views.base import View
from agent_brain.memories.views.fitting import DIGEST, Fitting
from agent_brain.memories.views.groups import behind_rules
from agent_brain.memories.views.summary import SUMMARY
from agent_brain.memories.views.summary_writer import Summarize, SummaryWriter
from agent_brain.memories.views.tokens import WindowShare
from agent_brain.tools.toolset import ToolLike

logger = get_logger(__name__)

DEFAULT_TOKENS = 16_000  # fits in the windows of small models, and costs little with large ones
MOST_TOKENS = 64_000  # of a model with a large window: each call pays for all that it reads
LEAST_RECALLED = 100  # tokens, for what introduces recalled messages and for the best of them
RETRY = 8  # messages after which a summariser that has failed is tried again


class AutoMemory(VectorMemory):
    """Everything while it fits; then the newest messages, recalled ones, and a summary.

    While the conversation takes at most ``max_tokens``, a model sees all of it. When it takes more,
    it sees the newest messages in half of that, and older ones that fit the goal, as
    :class:`VectorMemory` recalls them; with ``summarize`` also a summary of what has left. All of
    it is one log: nothing is copied or dropped, and a session of another built-in memory can be
    continued. Nothing is indexed or embedded before something has left. In the events of a run
    ``escalated`` says that it shows less from now on::

        brain = Brain("react", "auto", memory_options={"journal": "brain.db"})

    The summary is written when something is about to leave that it does not cover: one call for a
    quarter of ``max_tokens``, about. Of what was said before it began, at most ``max_tokens`` are
    summarised; the rest can be recalled. If the summariser fails, a warning is logged, and it is
    tried again later. A summary that may quote something forgotten is written again.

    Args:
        tools: What the agent may call.
        max_tokens: How many tokens a model is shown at most; with less than 200 little or nothing
            is recalled. None for half of ``context_window``, but at most 64,000; without that,
            16,000.
        context_window: How many tokens the model can read, or the name of a LiteLLM model, which is
            looked up in litellm's table when the memory is opened; one that is not there counts as
            None.
        summarize: As for :class:`SummaryMemory`, such as ``model_summarizer(llm)``; None for no
            summary.
        embedder: As for :class:`VectorMemory`; None finds words.
        path: As for :class:`VectorMemory`, like ``url`` and ``client``: where vectors are stored.
        url: See ``path``.
        client: See ``path``.
        journal: As for :class:`StoredMemory`, like ``session``, ``tenant``, ``ttl``, ``clock``,
            ``readonly``, ``shared``, ``dedupe``, ``history`` and ``lease_wait``.

    Raises:
        MemoryDefinitionError: A limit that is not a whole number from 1, or options that do not go
            together.
        EmbeddingError: ``embedder`` is not an embedder.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        *,
        max_tokens: int | None = None,
        context_window: int | str | None = None,
        summarize: Summarize | None = None,
        embedder: EmbedderLike = None,
        path: str | PathLike[str] | None = None,
        url: str | None = None,
        client: Any = None,
        **options: Unpack[StoreOptions],
    ) -> None:
        refuse_others(type(self), options)  # those of VectorMemory
        whole_number("max_tokens", max_tokens, optional=True)
        if max_tokens is not None and context_window is not None:
            raise MemoryDefinitionError("Give max_tokens= or context_window=, not both")
        if summarize is not None and options.get("shared"):
            raise MemoryDefinitionError(
                "summarize= and shared=True do not go together: each memory of the session would "
                "write the summary"
            )
        share = None if context_window is None else WindowShare.of(0.5, context_window, None)
        self._share = share if share is not None and share.tokens is None else None  # to look up
        known = None if share is None else share.tokens
        self._max_tokens = max_tokens or min(known or DEFAULT_TOKENS, MOST_TOKENS)
        self._writer = summarize and SummaryWriter(summarize, None, count_tokens)
        self._summarising, self._retry_at = False, 0
        self._fitted = True  # when it was last looked at
        super().__init__(tools, path=path, url=url, client=client, embedder=embedder, **options)
        self._limit(self._max_tokens)

    def _new_views(self, recent: int, max_tokens: int | None) -> list[View]:
        return [Fitting(self._max_tokens)]

    @property
    def _indexed(self) -> Indexed:
        """The index, which is made when it is needed."""
        if len(self.store.views) == 1:
            indexed = Indexed(self._new_vectors())
            indexed.attach(self.store.log)
            self.store.views += (indexed,)
        return cast("Indexed", self.store.views[1])

    async def _forked(self) -> None:
        await super()._forked()
        embedder = self._new_vectors.args[0]
        self._new_vectors = partial(Vectors, embedder, None)  # the store is another memory's

    def _limit(self, max_tokens: int) -> None:
        """Set the limit: half of it is for messages, a quarter or more for what is recalled."""
        self._max_tokens = max_tokens
        self._recalled_tokens = min(1_500, max(max_tokens // 4, LEAST_RECALLED), max_tokens // 2)
        if self._recalled_tokens < LEAST_RECALLED:
            logger.warning(
                "max_tokens=%d is too small to recall what has left: give at least %d",
                max_tokens,
                2 * LEAST_RECALLED,
            )
        self._tail.limit(max_tokens)

    @property
    def _tail(self) -> Fitting:
        return cast("Fitting", self.store.views[0])

    @property
    def fits(self) -> bool:
        """Whether a model sees the whole conversation."""
        tail: Any = self.store.views[0]  # without another call, as each change looks at it
        return bool(tail.fits)

    @property
    def summary(self) -> str:
        """The summary of what has left; empty if there is none."""
        return str(self._tail.digest.get("shown", "")).removeprefix(INTRODUCTION)

    # Nothing is indexed while everything fits

    async def _settle(self) -> None:
        await self._look_up()
        await super()._settle()

    async def open(self) -> None:
        """As :meth:`VectorMemory.open`; what has not left is not indexed."""
        if self._share is not None:
            await self._look_up()
        await StoredMemory.open(self)
        self._fitted = self.fits
        if not self._fitted:
            await super().open()

    async def _look_up(self) -> None:
        """Find out how much the model can read."""
        share, self._share = self._share, None
        if share is not None:
            with suppress(MemoryUseError):  # the table does not have the model
                self._limit(min(await share.look_up(), MOST_TOKENS))

    async def _catch_up(self, *, embed: bool = True) -> None:
        if self._show_less():  # what has left is indexed when it is first looked for
            return
        self._fitted = self.fits
        if not self._fitted:
            await super()._catch_up(embed=embed)

    def _report_leaving(self) -> None:
        self._show_less()
        super()._report_leaving()

    def _show_less(self) -> bool:
        """Return whether less is shown since now, and report it, before what has left."""
        begins = self._fitted and not self.fits
        if begins:
            self._fitted = False
            self._escalate("everything", "window")
        return begins

    def _escalate(self, before: str, now: str) -> None:
        tokens = self._tail.total
        self.report("escalated", before=before, now=now, tokens=tokens, max_tokens=self._max_tokens)

    # What a model sees

    async def context(self) -> list[Message]:
        """Return everything; or a summary, what fits the goal, and the newest messages."""
        store = self.store
        if self._share is not None or not store.settled:
            await self._settle()
        tail: Any = store.views[0]  # as fits does, at each step
        if tail.fits:
            return await StoredMemory.context(self)
        if self._writer is not None and not self.readonly:
            await self._summarise(self._writer)
        shown, digest = await super().context(), self._tail.digest
        if not digest:
            return shown
        return behind_rules([summary_message(self, str(digest["shown"]), digest["at"])], shown)

    async def _summarise(self, writer: SummaryWriter) -> None:
        """Summarise what has left, if the summary does not have it."""
        before, held = self._tail.digest, len(self.store.log)
        if self._summarising or held < self._retry_at or not (due := self._tail.undigested()):
            return
        self._summarising = True
        try:
            with self.work_for(SUMMARY):
                level = cast(int, before.get("level", 0))
                most = min(1_000, max(1, self._max_tokens // 8))
                text, level, done = await writer.write(self.summary, level, [due], most)
        finally:
            self._summarising = False
        if not done:
            self._retry_at = held + RETRY
            return
        value: dict[str, JsonValue] = {
            "shown": INTRODUCTION + text,
            "level": level,
            "upto": due[-1].id,
            "at": self.store.clock().isoformat(),
        }

        def plan() -> list[Change]:
            whole = {message.id for message in due} <= self.store.log.ids()
            return [ValueSet(DIGEST, value)] if whole and self._tail.digest == before else []

        await self.store.change(plan)
        if self.heard and self._tail.digest == value:
            if not before:
                self._escalate("window", "summary")
            report_compacted(self, due, str(before.get("shown", "")), str(value["shown"]), level)
