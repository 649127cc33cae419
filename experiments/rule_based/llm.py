"""The rule-based model, and the mistakes that it makes if it is asked to."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from anyio.lowlevel import checkpoint
from pydantic import TypeAdapter, ValidationError

from agent_brain.common.text import count_tokens, to_compact_json
from agent_brain.common.values import is_amount
from agent_brain.errors import ExperimentError
from agent_brain.experiments.rule_based.replies import reply_to
from agent_brain.experiments.rule_based.sight import Sight
from agent_brain.experiments.rule_based.solving import UNKNOWN, Answer, Data, Move
from agent_brain.memories.message import Message
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

_NUMBER = re.compile(r"-?\d+")
_SAID_AT = re.compile(r"^- \[\d{4}-\d\d-\d\d \d\d:\d\d\] ", re.MULTILINE)  # of recalled messages


def draw(sight: Sight, seed: int) -> float:
    """Return a number from 0 to 1 that depends on the seed and on all that is shown but the time.

    Memories that recall show when a message was said: a case that is run later, such as after a
    restart, would slip elsewhere.
    """
    shown = [
        [
            m.role.value,
            _SAID_AT.sub("- ", m.content),
            [[call.name, call.args] for call in m.tool_calls],
        ]
        for m in sight.messages
    ]
    asked = [tool.name for tool in sight.tools], getattr(sight.output_type, "__name__", "")
    text = json.dumps([seed, shown, asked], sort_keys=True, default=str)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64


def mistaken(move: Move, output_type: Any) -> Move:
    """Return the move with a mistake in it, of the same form."""
    match move:
        case Action():
            return Action(name=move.name, args=_wrong_argument(move.args))
        case Answer(text):
            return Answer(_wrong_text(text))
        case Data(value, others):
            return Data(others[0] if others else _wrong_data(value, output_type))


def _wrong_argument(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with another last one."""
    if not args:
        return {}
    name = list(args)[-1]
    value = args[name]
    misspelt = isinstance(value, str) and not _NUMBER.search(value)
    return {**args, name: value[:-1] if misspelt else _wrong_value(value)}


def _wrong_value(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case float() if 0 <= value <= 1:
            return 1 - value
        case int() | float():
            return value + 1
        case str():
            return _wrong_text(value)
        case [*_, _]:
            return [*value[:-1], _wrong_value(value[-1])]
    return value


def _wrong_text(text: str) -> str:
    """Return a text with another last number, or one that says nothing."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return f"{UNKNOWN}." if UNKNOWN not in text else "It is as you say."
    last = numbers[-1]
    return f"{text[: last.start()]}{int(last[0]) + 1}{text[last.end() :]}"


def _wrong_data(value: Any, output_type: Any) -> Any:
    """Return data that still fits its type: every value of the first kind that can be wrong."""
    if not isinstance(value, dict):
        return _fitting([_wrong_value(value)], output_type, value)
    kinds: Sequence[tuple[type, ...]] = ((bool,), (int, float), (list,), (str,))
    found = []
    for types in kinds:
        wrong = {k: _wrong_value(v) if type(v) in types else v for k, v in value.items()}
        if wrong.get("passed") != value.get("passed") and "score" in value:
            wrong["score"] = float(wrong["passed"])
        if wrong != value:
            found.append(wrong)
    return _fitting(found, output_type, value)


def _fitting(found: Sequence[Any], output_type: Any, otherwise: Any) -> Any:
    adapter = TypeAdapter(output_type)
    for value in found:
        try:
            adapter.validate_python(value)
        except ValidationError:
            continue
        return value
    return otherwise


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
        pair = isinstance(price, tuple | list) and len(price) == 2
        if not pair or not all(is_amount(part, zero=True) for part in price):
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
        sight = Sight(messages, tools, output_type)
        move = reply_to(sight)
        if self.slip > 0 and draw(sight, self.seed) < self.slip:
            move = mistaken(move, output_type)
        if isinstance(move, Action):
            written = to_compact_json({"name": move.name, "args": move.args})
            await checkpoint()
            yield move
        else:
            written = move.text if isinstance(move, Answer) else json.dumps(move.value)
            for word in re.findall(r"\s*\S+", written):
                await checkpoint()
                yield word
        yield self._usage(messages, tools, written)

    def _usage(self, messages: Sequence[Message], tools: Sequence[BaseTool], written: str) -> Usage:
        read = sum(count_tokens(message.content) for message in messages)
        read += sum(count_tokens(to_compact_json(c.args)) for m in messages for c in m.tool_calls)
        read += sum(count_tokens(to_compact_json(tool.to_dict())) for tool in tools)
        wrote = count_tokens(written)
        cost = (read * self.price[0] + wrote * self.price[1]) / 1e6
        return Usage(read, wrote, cost, 1, self.model)
