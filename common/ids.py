"""IDs that are unique across processes: a random prefix for each process, and a counter.

They cost a tenth of ``uuid4``. They do not sort by time.
"""

from __future__ import annotations

import itertools
import os

_prefix = os.urandom(8).hex()
_count = itertools.count()


def _renew() -> None:
    global _prefix  # noqa: PLW0603 - a forked child must not repeat the ids of its parent
    _prefix = os.urandom(8).hex()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def new_id(kind: str) -> str:
    """Return a new ID such as ``"call_5f0c…1a"``; ``kind`` is for human readers."""
    return f"{kind}_{_prefix}{next(_count)}"
