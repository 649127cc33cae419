"""The recorded calls of one memory: in RAM, or where they are in its session."""

from __future__ import annotations

from bisect import bisect_right

from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.store.events import RECORDED_CALL
from agent_brain.memories.trace.chunks import ChunkWriter, begins_chunk
from agent_brain.memories.trace.recorded_call import RecordedCall

RAM_STEPS = 100  # whose calls are kept in RAM


class TraceLog:
    """What a memory knows of the calls that it has recorded.

    Attributes:
        live: The sequence numbers of their entries that a journal has and that are not history yet.
        in_ram: The calls of a memory without a journal.
    """

    __slots__ = ("_starts", "_writer", "in_ram", "live")

    def __init__(self) -> None:
        self.live: set[int] = set()
        self.in_ram: list[RecordedCall] = []
        self._starts: list[int] = []  # where chunks begin
        self._writer: ChunkWriter | None = None

    @property
    def writer(self) -> ChunkWriter:
        """Writes the entries."""
        if self._writer is None:
            self._writer = ChunkWriter()
        return self._writer

    def lose(self) -> None:
        """Write the next call as a whole, as earlier entries are missing, or will be."""
        self._writer = None

    def clear(self) -> None:
        """Note that all entries are removed."""
        self.lose()
        self.live.clear()
        self.in_ram.clear()
        self._starts.clear()

    def take_out(self, rows: Rows) -> Rows:
        """Return ``rows`` without the entries of calls, which are noted."""
        if RECORDED_CALL not in rows.kinds:
            return rows
        pairs = zip(rows.seqs, rows.kinds, strict=True)
        self.live.update(seq for seq, kind in pairs if kind == RECORDED_CALL)
        return rows.without([RECORDED_CALL])

    def note(self, made: Entry, seq: int) -> None:
        """Note that an entry was written."""
        self.live.add(seq)
        if begins_chunk(made):
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

    def keep(self, call: RecordedCall) -> None:
        """Keep a call in RAM, and drop those of old steps."""
        number = self.in_ram[-1].number + 1 if self.in_ram else 1
        self.in_ram.append(call.model_copy(update={"number": number}))
        steps = dict.fromkeys((kept.run_id, kept.step) for kept in self.in_ram)
        if len(steps) > RAM_STEPS:
            oldest = next(iter(steps))
            self.in_ram = [k for k in self.in_ram if (k.run_id, k.step) != oldest]
