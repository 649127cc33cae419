"""The recorded calls of one memory: in RAM, or where they are in its session."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.store.kinds import TRACED
from agent_brain.memories.trace.model_calls import Traced
from agent_brain.memories.trace.traced import ChunkWriter

RAM_STEPS = 100  # whose calls are kept in RAM at least
CHUNK_STEPS = 50  # after which a call is kept as a whole, so that what is older can be dropped


class TraceLog:
    """What a memory knows of the calls that it has recorded.

    Attributes:
        live: The sequence numbers of their entries that a journal has and that are not history yet.
        in_ram: The entries of a memory without a journal.
    """

    __slots__ = ("_starts", "_steps", "_writer", "in_ram", "live")

    def __init__(self) -> None:
        self.live: set[int] = set()
        self.in_ram: list[Entry] = []
        self._starts: list[int] = []  # where chunks begin
        self._steps: dict[tuple[str, int], int] = {}  # in RAM: the first call of each step of a run
        self._writer: ChunkWriter | None = None

    @property
    def writer(self) -> ChunkWriter:
        """Writes the entries."""
        if self._writer is None:
            self._writer = ChunkWriter()
        return self._writer

    def lose(self) -> None:
        """Write the next call as a whole, as earlier entries are missing, or will be."""
        if self._writer is not None:
            self._writer.restart()

    def clear(self) -> None:
        """Note that all entries are removed."""
        self.lose()
        self.live.clear()
        self.in_ram.clear()
        self._starts.clear()
        self._steps.clear()

    def take_out(self, rows: Rows) -> Rows:
        """Return ``rows`` without the entries of calls, which are noted."""
        kinds = {*rows.kinds}
        if kinds.isdisjoint(TRACED):
            return rows
        pairs = zip(rows.seqs, rows.kinds, strict=True)
        self.live.update(seq for seq, kind in pairs if kind in TRACED)
        return rows.without(TRACED)

    def note(self, made: Entry, seq: int) -> None:
        """Note that an entry was written."""
        self.live.add(seq)
        if self.writer.begins_chunk(made):
            self._starts.append(seq)

    def whole_from(self, seq: int) -> int | None:
        """Return the place from which entries must be kept so that those from ``seq`` are whole.

        None if it is not known.
        """
        if not self._starts:
            return seq
        at = bisect_right(self._starts, seq)
        if not at:
            return None
        del self._starts[: at - 1]
        return self._starts[0]

    def keep(self, call: Traced) -> None:
        """Keep a call in RAM, and drop those of old steps."""
        step = call.run_id, call.step
        if step not in self._steps and len(self._steps) % CHUNK_STEPS == 0:
            self.lose()
        made = self.writer.entry(call)
        self.keep_entries([made])
        number = self.in_ram[-1].seq
        if self.writer.begins_chunk(made):
            self._starts.append(number)
        self._steps.setdefault(step, number)
        if len(self._steps) > RAM_STEPS:
            oldest = [*self._steps.values()][-RAM_STEPS]
            if (first := self.whole_from(oldest)) is not None and first > self.in_ram[0].seq:
                self.in_ram = [item for item in self.in_ram if item.seq >= first]
                self._steps = {key: at for key, at in self._steps.items() if at >= first}

    def keep_entries(self, entries: Iterable[Entry]) -> None:
        """Keep entries of calls in RAM, numbered anew."""
        for made in entries:
            last = self.in_ram[-1].seq if self.in_ram else 0
            self.in_ram.append(replace(made, seq=last + 1))
