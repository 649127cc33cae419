"""Recognise what the states of the built-in nets say to a model, by their own prompts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from agent_brain.memories.recall.results import HEAD
from agent_brain.memories.user import knowing
from agent_brain.nets.library import debate, plan_execute, router, voting
from agent_brain.nets.library import graph_of_thoughts as graph
from agent_brain.nets.library import tree_of_thoughts as tree
from agent_brain.states import evaluation, planning, prompts
from agent_brain.stuck import HINT

REMARK = "Look at this again: "
"""How the model's own remarks begin, which come back to it as messages of the user."""

_TEMPLATES: tuple[tuple[str, str], ...] = (
    ("plan", planning.REQUEST),
    ("plan again", planning.AGAIN),
    ("step", planning.STEP),
    ("judge answer", evaluation.REQUEST),
    ("judge step", plan_execute.REQUEST),
    ("judge last step", evaluation.STEP_REQUEST),
    ("reflect", evaluation.SELF_REQUEST),
    ("lesson", evaluation.LESSON),
    ("opening", debate.OPENING),
    ("reply", debate.REPLY),
    ("choose answer", voting.REQUEST),
    ("choose path", tree.VOTE),
    ("continue path", tree.CONTINUE),
    ("next thought", tree.SAMPLE),
    ("judge path", tree.JUDGE),
    ("generate", graph.REQUESTS["generate"] + "{ideas}"),
    ("generate", "Write {count} different answers to my goal.{ideas}"),
    ("aggregate", graph.REQUESTS["aggregate"] + "{ideas}"),
    ("refine", graph.REQUESTS["refine"] + "{ideas}"),
    ("rate", graph.REQUESTS["score"] + "{ideas}"),
    ("route", router.REQUEST),
    ("remark", REMARK + "{remark}"),
    ("hint", HINT),
    ("closing", prompts.GO_ON),
    ("closing", prompts.ANSWER_NOW),
    ("closing", prompts.ANSWER_NOW_AS_DATA),
    ("correction", "That could not be used: {problem}. Write it again, corrected."),
    ("recalled", HEAD + "{lines}"),
    ("recalled", knowing.HEAD + "{lines}"),
    ("extract", "Known facts:\n{known}\nNew messages:\n{messages}"),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a state asks for, with the values of the placeholders in its prompt."""

    kind: str
    fields: dict[str, str]


def recognise(text: str) -> Request | None:
    """Return the request that a message of the user is; None if a user has written it."""
    for kind, pattern in _patterns():
        match = pattern.fullmatch(text.strip())
        if match is not None:
            return Request(kind, {name: value.strip() for name, value in match.groupdict().items()})
    return None


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((kind, _pattern(template)) for kind, template in _TEMPLATES)


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template.strip())
    written = [
        f"(?P<{part}>.*?)" if place % 2 else re.escape(part) for place, part in enumerate(parts)
    ]
    return re.compile("".join(written), re.DOTALL)
