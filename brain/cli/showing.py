"""``agent-brain demo``: a true run, with the offline model and its tools."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agent_brain.brain import Brain
from agent_brain.cli.exits import ExitCode, UserError
from agent_brain.cli.outcomes import conclude
from agent_brain.cli.printers import LivePrinter
from agent_brain.cli.screen import Screen
from agent_brain.cli.trace import Trace
from agent_brain.cli.turns import Turns
from agent_brain.demo import DemoLLM, demo_tools

QUESTIONS = (
    "Which weekday is 24 December 2026, and what is 15% of 240?",
    "Multiply that by 2.",
)
HONEST = """\
This was a real run of the agent: its states, its tools, its memory. The model was the built-in demo
model, a small rule-based program and no language model, which works offline and knows little.
To use a real one:"""
NEXT = """\
  export OPENAI_API_KEY=…       (or the key of any provider that LiteLLM knows)
  agent-brain chat --model openai/gpt-4.1-mini"""


def demo(questions: Sequence[str]) -> ExitCode:
    """Show an agent at work on the questions, as turns of one session.

    Raises:
        UserError: A question is empty.
    """
    if not all(question.strip() for question in questions):
        raise UserError('The question is empty. Try: agent-brain demo "What is 17 times 23?"')
    screen = Screen(sys.stdout)
    code = ExitCode.ANSWERED
    with Turns(Brain("react", tools=demo_tools(), llm=DemoLLM())) as turns:
        screen.line(_introduction(turns.brain), "dim")
        for question in questions:
            screen.line()
            screen.line(f"> {question}", "bold")
            screen.line()
            result = turns.take(question, LivePrinter(Trace(screen, verbose=True)))
            code = code or conclude(result, turns.brain.limits)
    screen.line()
    screen.line(HONEST, "dim")
    screen.line(NEXT, "bold")
    return code


def _introduction(brain: Brain) -> str:
    states = ", ".join(key.name for key in brain.net.states)
    tools = ", ".join(brain.memory.available_tools)
    return f"net {brain.net.name}: {states}\ntools: {tools}"
