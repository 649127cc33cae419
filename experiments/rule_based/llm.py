"""The rule-based model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

from anyio.lowlevel import checkpoint

from agent_brain.common.text import count_tokens, to_compact_json
from agent_brain.common.values import is_amount
from agent_brain.errors import ExperimentError
from agent_brain.experiments.rule_based.moves import Answer, Call, Move
from agent_brain.experiments.rule_based.replies import reply_to
from agent_brain.experiments.rule_based.sight import Sight
from agent_brain.experiments.rule_based.slips import draw, mistaken
from agent_brain.memories.message import Message
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.states.usage import Usage
from agent_brain.tools.base import BaseTool


class RuleBasedLLM(LLM):
    """A model of rules for the task sets of this package: offline, free and repeatable.

    It answers only from what it is shown in messages and tools: it calculates with the tools that
    are offered, follows look-ups, recalls what a message states, fills in forms, tries again when
    a tool fails, and says "I do not know" otherwise. It reads the prompts of all built-in nets.
    What an experiment measures with it is about nets, memories and this library, never about the
    quality of a language model::

        from agent_brain import Brain
        from agent_brain.experiments import RuleBasedLLM

        print(Brain("react", llm=RuleBasedLLM()).run_sync("What is (17 + 25) * 3?").answer)

    Equal messages and tools get equal responses, as from a language model at temperature 0: paths
    of ``self_consistency`` agree, and repeats of a case are alike.

    Args:
        slip: The probability of a mistake in a response, from 0 to 1: a wrong argument, number,
            judgement or choice, of the right form. Whether a response has one is decided by a hash
            of the seed and of what is shown, without the times of recalled messages, so it is the
            same after a restart.
        seed: Another seed makes other mistakes.
        price: US dollars for a million tokens read, and for a million written.

    Raises:
        ExperimentError: ``slip`` is not from 0 to 1, or a price is below 0.
    """

    rule_based = True

    def __init__(
        self, slip: float = 0.0, seed: int = 0, *, price: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        if not is_amount(slip, zero=True) or slip > 1:
            raise ExperimentError(f"RuleBasedLLM(slip={slip!r}): a probability from 0 to 1")
        if not _is_price(price):
            raise ExperimentError(f"RuleBasedLLM(price={price!r}): US dollars, at least 0")
        self.slip = slip
        self.seed = seed
        self.price = price
        self.model = f"rules-slip-{slip:g}-seed-{seed}" if slip else "rules"

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Piece]:
        """Reply to ``messages``; see :meth:`agent_brain.states.models.llm.LLM.stream`."""
        move = self._decide(Sight(messages, tools, output_type))
        written = _written(move)
        if isinstance(move, Call):
            await checkpoint()
            yield move.action
        else:
            for word in re.findall(r"\s*\S+", written):
                await checkpoint()
                yield word
        yield self._usage(messages, tools, written)

    def _decide(self, sight: Sight) -> Move:
        move = reply_to(sight)
        slips = self.slip > 0 and draw(sight, self.seed) < self.slip
        return mistaken(move, sight.output_type) if slips else move

    def _usage(self, messages: Sequence[Message], tools: Sequence[BaseTool], written: str) -> Usage:
        read = sum(count_tokens(message.content) for message in messages)
        read += sum(count_tokens(to_compact_json(c.args)) for m in messages for c in m.tool_calls)
        read += sum(count_tokens(to_compact_json(tool.to_dict())) for tool in tools)
        wrote = count_tokens(written)
        cost = (read * self.price[0] + wrote * self.price[1]) / 1e6
        return Usage(read, wrote, cost, 1, self.model)


def _is_price(given: Any) -> bool:
    pair = isinstance(given, tuple | list) and len(given) == 2
    return pair and all(is_amount(part, zero=True) for part in given)


def _written(move: Move) -> str:
    if isinstance(move, Call):
        return to_compact_json({"name": move.action.name, "args": move.action.args})
    return move.text if isinstance(move, Answer) else json.dumps(move.value)
