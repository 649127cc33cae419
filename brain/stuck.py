"""Detecting runs that repeat themselves.

The fingerprint of a step is made of its tool calls and their results, or else of its text, or else
of its thoughts, with what a person answered. White space, case, and counters that a model adds to
repeated words ("once more (3)") are ignored. Calls of tools that are declared ``repeatable`` do not
count.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from zlib import crc32

from agent_brain.common.secrets import get_logger
from agent_brain.common.text import to_text
from agent_brain.common.values import is_amount, is_count
from agent_brain.errors import BrainDefinitionError
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.runs.work import EMBEDDING

if TYPE_CHECKING:
    from agent_brain.memories.embedders import EmbedderLike
    from agent_brain.recorder import StepReport

log = get_logger(__name__)

HINT = (
    "You are going in circles: {reason}. Doing it again will not change anything. Try something "
    "different, or answer with what you know."
)


class Verdict(NamedTuple):
    """What to do about a run that repeats itself, and the reason."""

    reason: str
    action: Literal["hint", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckPolicy:
    """What to do about a run that repeats itself: give the model a hint, then stop.

    The default allows for polling and paging: the hint comes after five equal steps in a row, or
    three repetitions of a cycle of steps; the run stops if it then repeats itself again. A tool
    that is meant to be called repeatedly is declared with ``@tool(repeatable=True)``.

    Attributes:
        threshold: Number of equal steps in a row that make a run stuck. A cycle of several steps
            must occur three times, or ``threshold`` times if that is less.
        prompt: The hint; ``{reason}`` is replaced by what was repeated. The model sees it once; it
            is never stored.
        hints: Number of hints in a row before the run is stopped.
        max_cycle: Length of the longest cycle of steps that is detected.
        similar: Texts of a state count as equal from this likeness on, above 0 and at most 1: the
            cosine of their vectors, or, without an ``embedder``, the share of their words that both
            have. None compares them as they are, or with an embedder is 0.95. Texts that were said
            before the run was resumed are not compared.
        embedder: Makes the vectors, as for :class:`VectorMemory`, as work of the run.

    Raises:
        BrainDefinitionError: ``threshold`` below 2, ``hints`` below 0, ``max_cycle`` below 1, or
            ``similar`` not above 0 and at most 1.
        EmbeddingError: ``embedder`` is not an embedder.
    """

    threshold: int = 5
    prompt: str = HINT
    hints: int = 1
    max_cycle: int = 6
    similar: float | None = None
    embedder: EmbedderLike = None
    _needed: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        least_times = "a repetition needs at least 2; pass stuck=None to notice none"
        for name, fits, wanted in (
            ("threshold", is_count(self.threshold, least=2), least_times),
            ("hints", is_count(self.hints, least=0), "a number of at least 0"),
            ("max_cycle", is_count(self.max_cycle), "a number of at least 1"),
            ("prompt", isinstance(self.prompt, str), "a text"),
        ):
            if not fits:
                value = getattr(self, name)
                raise BrainDefinitionError(f"StuckPolicy({name}={value!r}): {wanted}")
        if self.embedder is not None:
            from agent_brain.memories.embedders import as_embedder

            object.__setattr__(self, "embedder", as_embedder(self.embedder))
            object.__setattr__(self, "similar", 0.95 if self.similar is None else self.similar)
        if self.similar is not None and not (is_amount(self.similar) and self.similar <= 1):
            raise BrainDefinitionError(
                f"StuckPolicy(similar={self.similar!r}): a number above 0, and at most 1"
            )
        lengths = range(1, self.max_cycle + 1)
        object.__setattr__(self, "_needed", tuple(n * self._times(n) for n in lengths))

    def look(self, control: Control, mark: str) -> Verdict | None:
        """Record the fingerprint of a step; return what to do if the run repeats itself."""
        known = mark in control.fingerprints
        if not known:  # progress
            vars(control)["hint_count"] = 0
        recent = control.fingerprints
        recent.append(mark)
        del recent[: -max(self._needed)]
        length = self._cycle(recent) if known else 0
        if not length:
            return None
        reason = self._reason(recent, length)
        if control.hint_count >= self.hints:
            return Verdict(reason, "stop")
        control.give_hint(self.prompt.replace("{reason}", reason), keep=length)
        return Verdict(reason, "hint")

    def _times(self, length: int) -> int:
        """Return how often a cycle of that many steps must occur."""
        return max(-(-self.threshold // length), min(self.threshold, 3))

    def _cycle(self, recent: Sequence[str]) -> int:
        """Return the length of the shortest cycle that the last steps repeat; 0 for none."""
        last = recent[-1]
        for length, needed in enumerate(self._needed, 1):
            if needed > len(recent):
                continue
            if recent[-1 - length] == last and recent[-needed:-length] == recent[length - needed :]:
                return length
        return 0

    def _reason(self, recent: Sequence[str], length: int) -> str:
        times = self._times(length)
        if length > 1:
            return f"the same {length} steps were repeated {times} times"
        what = _WHAT.get(recent[-1][0], "the same was done, with the same result,")
        return f"{what} {times} times in a row"


_WHAT = {"t": "the same was said", "e": "the same error was raised"}
_COUNTER = re.compile(r"\(\s*\d+\s*\)|#\s*\d+|\b(?:attempt|try|retry|time)\s+\d+")


def fingerprint(state: str, report: StepReport, memory: Memory) -> str | None:
    """Return the fingerprint of a step; None if nothing in it counts.

    Args:
        state: Name of the state.
        report: What it has reported. If it requested tool calls, their results are compared.
        memory: The memory of the run.
    """
    error, finished, text = report.error, report.finished, report.said or report.thought
    if error is not None:
        raised = _plain("".join((*text, "\0", type(error).__name__, ": ", str(error))))
        kind, told = "e", f"{state}\0{raised}"
    elif finished:
        done: list[tuple[str, str, str, str]] = []
        for event in finished:
            action, result = event.action.__dict__, event.result.__dict__  # attributes are slow
            tool = memory.available_tools.get(action["name"])
            if tool is None or not tool.repeatable:
                error_or_not = "e" if result["is_error"] else ""
                args = _plain_args(action["args"])
                done.append((action["name"], args, result["content"], error_or_not))
        if len(done) > 1:
            done.sort()  # calls that run at once end in any order
        kind, told = "d", "\0".join(chain.from_iterable(done))
    else:
        said = "" if report.requested else _plain("".join(text))
        heard = _heard(memory) if memory.control.human_requests else ()
        kind, told = "t", "\0".join((state, said, *heard)) if said else ""
    data = told.encode("utf-8", "surrogatepass")
    # a false alarm needs several collisions in a row
    return f"{kind}{crc32(data):08x}{len(data):x}" if told else None


def _heard(memory: Memory) -> list[str]:
    """Return what a person answered in the step."""
    asked = memory.control.human_requests
    return [] if asked is None else [*map(to_text, asked.answers.values())]


def _plain_args(args: Mapping[str, object]) -> str:
    text = repr(sorted(args.items()) if len(args) > 1 else args)
    return _plain(text) if str in map(type, args.values()) else text


def _plain(text: str) -> str:
    """Return ``text`` without case, white space and counters; other numbers may be pages."""
    return _COUNTER.sub("#", " ".join(text.casefold().split()))


@dataclass(slots=True)
class _Said:
    mark: str
    about: Sequence[str]
    text: str
    vector: Any = None  # or its words


class Paraphrases:
    """The last texts of a run: what says nearly the same as one of them gets its fingerprint.

    Texts are compared from the second one on, so a run that answers at once embeds nothing.

    Args:
        policy: From when on texts count as equal, and what embeds them.
    """

    def __init__(self, policy: StuckPolicy) -> None:
        self._embedder: Any = policy.embedder  # which the policy has made an Embedder
        self._similar = policy.similar or 1
        self._said: deque[_Said] = deque(maxlen=policy.threshold * policy.max_cycle)

    async def mark(self, mark: str, state: str, report: StepReport, memory: Memory) -> str:
        """Return the fingerprint of an earlier step that said nearly the same, or that of the step.

        Args:
            mark: The fingerprint of the step.
            state: Name of its state; with what a person answered, it is the same in both steps.
            report: What it has reported. Only texts are compared.
            memory: The memory of the run.
        """
        if report.finished or report.error:
            return mark
        about, text = [state, *_heard(memory)], "".join(report.said or report.thought)
        others = [said for said in self._said if said.about == about]
        said = _Said(mark, about, text)
        self._said.append(said)
        if not others or any(other.mark == mark for other in others):
            return mark
        try:
            await self._read([each for each in (*others, said) if each.vector is None], memory)
        except Exception as error:
            log.warning("Texts are compared as they are, as they could not be embedded: %s", error)
            return mark
        likeness, best = max((_likeness(other, said), other.mark) for other in others)
        said.mark = best if likeness >= self._similar else mark
        return said.mark

    async def _read(self, texts: Sequence[_Said], memory: Memory) -> None:
        from agent_brain.memories.embedders.base import embed_all
        from agent_brain.memories.recall.tokenizer import runs, terms

        vectors: Iterable[Any] = (frozenset(terms(runs(said.text))) for said in texts)
        if self._embedder is not None:
            with memory.work_for(EMBEDDING):
                vectors = await embed_all(self._embedder, [said.text for said in texts])
        for said, vector in zip(texts, vectors, strict=True):
            said.vector = vector


def _likeness(one: _Said, other: _Said) -> float:
    """Return the cosine of two vectors, or the share of words that both texts have."""
    a, b = one.vector, other.vector
    if isinstance(a, frozenset):
        return len(a & b) / (len(a | b) or 1)
    return float(a @ b) / (float((a @ a) * (b @ b)) ** 0.5 or 1)
