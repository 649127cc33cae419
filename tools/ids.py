"""Identifiers that are unique across processes and cheap to make.

A random prefix a process and a counter: about a tenth of the cost of ``uuid4``, and ids made by one
process sort in the order in which they were made only by accident; nothing relies on it.
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
    """A new id such as ``"call_5f0c…1a"``; ``kind`` only helps a reader."""
    return f"{kind}_{_prefix}{next(_count):x}"
