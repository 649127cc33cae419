"""The pages in the write-ahead log of a SQLite file: which of them are damaged."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words: TypeAlias = NDArray[np.uint32]

_HEADER, _FRAME = 32, 24  # bytes; a frame is a header and a page
_MAGIC = (0x377F0682, 0x377F0683)
_AT_ONCE = 256  # frames
_TRIES = 3  # another process may begin the log anew


def ignored_pages(path: Path) -> int:
    """Return how many pages of a log SQLite ignores although they were written, 0 if none.

    SQLite reads up to the last whole transaction before the first damaged page. The transaction
    that was written last may be incomplete, as its process was killed; more than that is damage.
    """
    return min(_ignored_pages(path) for _ in range(_TRIES))


def _ignored_pages(path: Path) -> int:
    with path.open("rb") as file:
        header = file.read(_HEADER)
        size = path.stat().st_size
        if len(header) < _HEADER or not _is_header(header):
            return max(0, size - _HEADER) // 4096
        step = _FRAME + struct.unpack(">I", header[8:12])[0]
        order = ">" if header[3] & 1 else "<"
        sums, salts, whole = header[24:32], header[16:24], True
        at = known = frames = 0
        later: list[int] = []  # where transactions end that SQLite does not read
        while block := file.read(_AT_ONCE * step):
            count = len(block) // step
            right = _check(block[: count * step], step, order, sums) if whole and count else []
            for index in range(count):
                frame = block[index * step : index * step + _FRAME]
                at += 1
                same, ends = frame[8:16] == salts, frame[4:8] != bytes(4)
                whole = whole and same and bool(right[index])
                frames = at if same else frames
                if same and ends and whole:
                    known = at
                elif same and ends:
                    later.append(at)
                sums = frame[16:24]
    return frames - known if later and frames > later[0] else 0


def _is_header(header: bytes) -> bool:
    magic = struct.unpack(">I", header[:4])[0]
    if magic not in _MAGIC:
        return False
    words = struct.unpack((">" if magic & 1 else "<") + "6I", header[:24])
    one = two = 0
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return bool((one, two) == struct.unpack(">2I", header[24:]))


def _check(block: bytes, step: int, order: str, before: bytes) -> Any:
    """Return for each frame whether its checksum continues that of the frame before it.

    The two sums of a checksum go on with each pair of words, as in :func:`_is_header`. That is
    linear, so the words of all frames are multiplied with the same weights.
    """
    import numpy as np

    frames = np.frombuffer(block, dtype=np.uint8).reshape(-1, step)
    covered = np.concatenate([frames[:, :8], frames[:, _FRAME:]], axis=1)
    words = covered.view(np.dtype(f"{order}u4")).astype(np.uint32)
    stored = np.ascontiguousarray(frames[:, 16:24]).view(np.dtype(">u4")).astype(np.uint32)
    first = np.frombuffer(before, dtype=np.dtype(">u4")).astype(np.uint32)
    start = np.concatenate([first[None, :], stored[:-1]])
    weights, ends = _weights(words.shape[1] // 2)
    firsts, both = words[:, ::2], words[:, ::2] + words[:, 1::2]
    right = np.ones(len(words), dtype=bool)
    for which in (0, 1):
        total = (firsts * weights[which, 0]).sum(axis=1, dtype=np.uint32)
        total += (both * weights[which, 1]).sum(axis=1, dtype=np.uint32)
        total += start[:, 0] * ends[which, 0] + start[:, 1] * ends[which, 1]
        right &= total == stored[:, which]
    return right


@cache
def _weights(pairs: int) -> tuple[Words, Words]:
    """Return what each of so many pairs of words adds to the two sums, and what the start does."""
    import numpy as np

    powers = [(1, 0, 0, 1)]  # of the matrix by which one step multiplies the two sums
    for _ in range(pairs):
        a, b, c, d = powers[-1]
        powers.append(((a + b) % 2**32, (a + 2 * b) % 2**32, (c + d) % 2**32, (c + 2 * d) % 2**32))
    table = np.array(powers, dtype=np.uint32).reshape(-1, 2, 2).transpose(1, 2, 0)
    return table[:, :, -2::-1], table[:, :, -1]
