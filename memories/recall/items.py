"""Messages as the index takes them."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Item(NamedTuple):
    """A message as the index takes it.

    Attributes:
        id: Unique in the index.
        text: What was said.
        sender: The name of the speaker; None if nobody is named.
        time: When it was said, aware; None if that is not known.
        thread: The conversation that it belongs to; None is one conversation too.
        role: Tells speakers without a name apart.
    """

    id: str
    text: str
    sender: str | None = None
    time: datetime | None = None
    thread: str | None = None
    role: str | None = None
