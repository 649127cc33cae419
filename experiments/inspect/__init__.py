"""Run a Brain in Inspect, and nets over Inspect's models.

::

    from agent_brain import Brain
    from agent_brain.experiments.inspect import InspectLLM, brain_agent
    from inspect_ai import eval

    eval("inspect_evals/gsm8k", model="agent_brain/openai/gpt-4.1-mini",
         solver=brain_agent(lambda: Brain("plan_execute", llm=InspectLLM())))

``agent_brain/NAME`` is a model of Inspect that calls the model of that name by LiteLLM; Inspect's
own provider for OpenAI needs a newer client of OpenAI than LiteLLM does.

Needs ``pip install "agent-brain[inspect]"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import extra, lazy_exports
from agent_brain.errors import ExperimentError

with extra("inspect", ExperimentError):
    import inspect_ai as inspect_ai

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.experiments.inspect.agent import brain_agent as brain_agent
    from agent_brain.experiments.inspect.provider import InspectLLM as InspectLLM
    from agent_brain.experiments.inspect.provider import LLMModel as LLMModel
