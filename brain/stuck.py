"""Noticing that a run goes in circles.

A step that finished actions is known by those actions, their arguments and their results; a step
that only said something, by its text. A tool that is polled and answers differently each time is
not stuck; the same question with the same answer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from agent_brain.errors import BrainDefinitionError
from agent_brain.states.events import ActionFinished

HINT = (
    "You are going in circles: {reason}. Doing it again will not change anything. Try something "
    "different, or answer with what you know."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckPolicy:
    """What to do about a run that repeats itself: a hint to the model, then a stop.

    Attributes:
        threshold: How often in a row the same step, or the same pair of steps, makes a run stuck.
        prompt: The hint; ``{reason}`` stands for what was repeated. The model sees it once; it is
            never stored.
        hints: How many hints in a row to give before the run is stopped.

    Raises:
        BrainDefinitionError: ``threshold`` below 2, or ``hints`` below 0.
    """

    threshold: int = 2
    prompt: str = HINT
    hints: int = 1

    def __post_init__(self) -> None:
        if self.threshold < 2:
            raise BrainDefinitionError(
                f"StuckPolicy(threshold={self.threshold!r}): a repetition needs at least 2; pass "
                "stuck=None to notice none"
            )
        if self.hints < 0:
            raise BrainDefinitionError(f"StuckPolicy(hints={self.hints!r}): at least 0")

    def repeated(self, recent: Sequence[str]) -> str | None:
        """What the last fingerprints repeat, in words; None if they do not."""
        last = recent[-self.threshold :]
        if len(last) == self.threshold and len(set(last)) == 1:
            what = "said" if last[0].startswith("text") else "done, with the same result,"
            return f"the same was {what} {self.threshold} times in a row"
        pairs = recent[-2 * self.threshold :]
        if len(pairs) == 2 * self.threshold and set(pairs[::2]) != set(pairs[1::2]):
            if len(set(pairs[::2])) == len(set(pairs[1::2])) == 1:
                return f"the same two steps alternated {self.threshold} times"
        return None

    def keep(self) -> int:
        """How many fingerprints :meth:`repeated` looks at."""
        return 2 * self.threshold


def fingerprint(
    state: str, finished: Sequence[ActionFinished], text: Sequence[str], *, asked: bool
) -> str | None:
    """A short digest of what a step did; None if it did nothing that could repeat.

    Args:
        state: Name of the state.
        finished: The actions that ended in the step.
        text: What it said, in pieces.
        asked: It asked for actions; then their results will tell.
    """
    if finished:
        done = [
            (e.action.name, sorted(e.action.args.items()), e.result.content, e.result.is_error)
            for e in finished
        ]
        return "done:" + _digest(repr(done))
    if asked or not text:
        return None
    said = "".join(text).strip()
    return "text:" + _digest(f"{state}\0{said}") if said else None


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
