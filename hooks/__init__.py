"""Ready hooks: personal data, moderation, a cache of calls, a guard on tool calls, rate limits.

Each is given to a brain, or to a net, and sees all that its runs do::

    from agent_brain import Brain
    from agent_brain.hooks import HidePersonalData

    Brain("react", hooks=[HidePersonalData()])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.hooks.cache import CacheStore as CacheStore
    from agent_brain.hooks.cache import CallCache as CallCache
    from agent_brain.hooks.cache import RamStore as RamStore
    from agent_brain.hooks.moderation import Moderation as Moderation
    from agent_brain.hooks.personal_data import HidePersonalData as HidePersonalData
    from agent_brain.hooks.rate_limits import Rate as Rate
    from agent_brain.hooks.rate_limits import RateLimits as RateLimits
    from agent_brain.hooks.tool_guard import ToolGuard as ToolGuard
