"""``agent-brain ask``: one question, one answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agent_brain.cli.agents import AgentOptions, build
from agent_brain.cli.exits import ExitCode, UserError
from agent_brain.cli.outcomes import conclude
from agent_brain.cli.printers import OutputOptions
from agent_brain.cli.turns import Turns


def ask(words: Sequence[str], options: AgentOptions, output: OutputOptions) -> ExitCode:
    """Answer one question.

    Args:
        words: The question; a single ``-`` stands for what is on stdin.
        options: The agent.
        output: What is shown of the run.

    Raises:
        UserError: There is no question, or no such agent.
    """
    question = sys.stdin.read() if list(words) == ["-"] else " ".join(words)
    if not question.strip():
        raise UserError('The question is empty. Try: agent-brain ask "What is 17 times 23?"')
    printer = output.printer(sys.stdout, sys.stderr)
    with Turns(build(options), options.servers) as turns:
        return conclude(turns.take(question.strip(), printer), turns.brain.limits)
