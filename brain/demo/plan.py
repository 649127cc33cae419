"""What to do next: which calls are to be made, or what the answer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_brain.demo.asks import Ask
from agent_brain.demo.box import Box, NoTool, Stopped, Waiting
from agent_brain.demo.conversation import Turn
from agent_brain.demo.schema import Card
from agent_brain.demo.solve import Solved, solve
from agent_brain.demo.talk import HOW, WHO, talk, unable
from agent_brain.demo.understand import understand


@dataclass(slots=True)
class Plan:
    """The state of a question.

    Attributes:
        calls: Tool calls to be made now, by name and arguments; none when all is done.
        solved: What has been answered, in the order of the asks.
        failed: Why the others could not be.
        beyond: Something was asked for that this model or its tools cannot do at all.
    """

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    solved: list[Solved] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    beyond: bool = False

    @property
    def text(self) -> str:
        """The answer as far as it goes."""
        if self.failed and not self.solved:
            return unable(self.failed, explain=self.beyond)
        parts = [solved.sentence for solved in self.solved]
        parts += [f"One part I cannot answer: {reason}." for reason in dict.fromkeys(self.failed)]
        return " ".join([*parts, WHO, HOW] if self.beyond else parts)


def make_plan(turns: Sequence[Turn], cards: Sequence[Card]) -> Plan:
    """Plan the last of ``turns`` with the tools of ``cards``."""
    turn = turns[-1]
    box = Box(cards, turn.called)
    plan = Plan()
    earlier = next((t.called[-1].content for t in reversed(turns[:-1]) if t.called), None)
    blocked = False
    for ask in understand(turn.question):
        try:
            if blocked and _needs_earlier(ask):
                continue
            solved = _answer(ask, turns, cards, box, earlier)
        except Waiting as waiting:
            plan.calls += [call for call in waiting.calls if call not in plan.calls]
            blocked = True
        except Stopped as stopped:
            plan.failed.append(str(stopped).rstrip("."))
            plan.beyond = plan.beyond or isinstance(stopped, NoTool)
            earlier, blocked = None, False
        else:
            plan.solved.append(solved)
            earlier = solved.value or earlier
            blocked = False
    return plan


def _answer(
    ask: Ask, turns: Sequence[Turn], cards: Sequence[Card], box: Box, earlier: str | None
) -> Solved:
    if ask.kind == "talk":
        return Solved(talk(ask, turns, cards))
    return solve(ask, box, earlier)


def _needs_earlier(ask: Ask) -> bool:
    return ask.kind == "calculate" and "Earlier" in repr(ask.slots["expression"])
