"""Build the agent that the options describe. Private."""

from __future__ import annotations

import os
from contextlib import nullcontext

from agent_brain.brain import Brain
from agent_brain.brainfile import BrainSpec, read_spec
from agent_brain.cli.exit_codes import notify, user_errors
from agent_brain.cli.net_reference import is_file, load_net, load_tools
from agent_brain.cli.options import Options
from agent_brain.cli.screen import busy
from agent_brain.default_model import MODEL_VARIABLE, resolve_llm
from agent_brain.limits import Limits

DEMO_NOTE = (
    "no model was chosen, so the built-in demo model answers: a small rule-based program, offline. "
    f"Choose a real one with --model openai/gpt-4.1-mini, or set {MODEL_VARIABLE}"
)


def build(agent: Options) -> Brain:
    """Return the agent that the options describe; they override the net's file, if it has one.

    A note on stderr says that no model was chosen.
    """
    with user_errors():
        spec = read_spec(agent.net) if is_file(agent.net) else BrainSpec.model_validate({})
    named = (agent.model, spec.model, os.environ.get(MODEL_VARIABLE, ""))
    chosen = next(name for name in named if name is not None).strip()
    model = chosen or "demo"
    tools = load_tools(agent.tools)
    if model == "demo" and not tools and not agent.servers:
        from agent_brain.demo import demo_tools

        tools = demo_tools()
    with user_errors(), nullcontext() if model == "demo" else busy("Loading LiteLLM …"):
        memory = agent.memory or spec.memory
        kept = spec.memory_options if memory == spec.memory else {}
        brain = Brain(
            load_net(agent.net, resolve_llm(model)),
            memory,
            tools,
            limits=Limits(**{**spec.limits.model_dump(), **agent.limits()}),
            memory_options={**kept, **agent.storage(memory)},
        )
    if not chosen:
        notify(DEMO_NOTE, kind="Note")
    return brain
