"""A journal on a Redis server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.memories.journal.redis.journal import RedisJournal as RedisJournal
