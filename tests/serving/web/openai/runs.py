"""Events of real runs for the translators."""

from __future__ import annotations

from typing import Any

from agent_brain import Brain
from agent_brain.states.events import AgentEvent


async def events_of(brain: Brain, task: str = "Go.", **resume: Any) -> list[AgentEvent]:
    """Return the events of a run, also of one that fails; or of a resumed one."""
    run = brain.stream_resume(**resume) if resume else brain.stream(task)
    events: list[AgentEvent] = []
    async with run:
        try:
            async for event in run:
                events.append(event)
        except Exception:
            assert events[-1].kind == "run_failed"
    return events
