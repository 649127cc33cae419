"""An agent from what the user typed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from agent_brain.cli.exits import UserError, tell
from agent_brain.cli.loading import load_tools
from agent_brain.cli.screen import waiting
from agent_brain.controller import Brain
from agent_brain.errors import AgentBrainError
from agent_brain.limits import Limits
from agent_brain.models import MODEL_VARIABLE

DEMO_NOTE = (
    "no model was chosen, so the built-in demo model answers: a small rule-based program, offline. "
    f"Choose a real one with --model openai/gpt-4.1-mini, or set {MODEL_VARIABLE}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What the user typed, still unchecked."""

    model: str | None = None
    net: str = "react"
    memory: str = "messages"
    tools: tuple[str, ...] = ()
    max_steps: int | None = None
    timeout: float | None = None
    max_cost: float | None = None

    def limits(self) -> Limits:
        """The limits given, over the usual ones."""
        given = {
            "max_steps": self.max_steps,
            "timeout": self.timeout,
            "max_cost": self.max_cost,
        }
        return Limits(**{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]


def build(options: AgentOptions) -> Brain:
    """The agent; says on stderr if it has to use the demo model.

    Raises:
        UserError: The options name something that does not exist, or do not go together.
    """
    chosen = options.model if options.model is not None else os.environ.get(MODEL_VARIABLE, "")
    model = chosen.strip() or "demo"
    tools = load_tools(options.tools)
    if model == "demo" and not tools:
        from agent_brain.demo import demo_tools

        tools = demo_tools()
    wait = nullcontext() if model == "demo" else waiting("Loading LiteLLM …")
    with mistakes(), wait:
        limits = options.limits()
        brain = Brain(options.net, options.memory, tools, llm=model, limits=limits)
    if not chosen.strip():
        tell(DEMO_NOTE, kind="Note")
    return brain


@contextmanager
def mistakes() -> Iterator[None]:
    """What is refused inside is the user's mistake.

    Raises:
        UserError: For every error that this library raises on purpose.
    """
    try:
        yield
    except AgentBrainError as error:
        raise UserError(str(error)) from error
