"""IDs that are unique across processes: a random prefix for each process, and a counter.

They cost a tenth of ``uuid4``. They do not sort by time.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextvars import ContextVar

# Set for the task of a request and what it starts; a detached run keeps that of its start.
request_id: ContextVar[str | None] = ContextVar("agent_brain_request_id", default=None)
"""The ID of the HTTP request that is being handled, for logs and errors."""

_process = {"prefix": os.urandom(8).hex()}
_count = itertools.count()


def _renew() -> None:
    """Take another prefix: a forked child must not repeat the IDs of its parent."""
    _process["prefix"] = os.urandom(8).hex()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def new_id(kind: str) -> str:
    """Return a new ID such as ``"call_5f0c…1a"``; ``kind`` is for human readers."""
    return f"{kind}_{_process['prefix']}{next(_count)}"


def ids_of(kind: str) -> Callable[[], str]:
    """Return a function that returns what :func:`new_id` does, for IDs that are made often."""
    form = f"{kind}_{{0[prefix]}}{{1}}".format
    return map(form, itertools.repeat(_process), _count).__next__
