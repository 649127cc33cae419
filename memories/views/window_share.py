"""A token limit as a share of a model's context window."""

from __future__ import annotations

from dataclasses import dataclass

import anyio.to_thread

from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.store.checks import share, whole_number


@dataclass(frozen=True, slots=True)
class WindowShare:
    """A share of the context window of a model.

    Attributes:
        share: More than 0, at most 1.
        window: How many tokens the model can read, or the name of a LiteLLM model.
    """

    share: float
    window: int | str

    @classmethod
    def of(
        cls, max_share: float | None, context_window: int | str | None, max_tokens: int | None
    ) -> WindowShare | None:
        """Return the options of a memory as a share, or None if none are given.

        Raises:
            MemoryDefinitionError: They do not go together.
        """
        if max_share is None and context_window is None:
            return None
        if max_share is None or context_window is None or max_tokens is not None:
            raise MemoryDefinitionError(
                "Give max_tokens=, or both max_share= and context_window=: the share, and how many "
                "tokens the model can read (a number, or the name of a LiteLLM model)"
            )
        share("max_share", max_share)
        if not isinstance(context_window, str):
            whole_number("context_window", context_window)
        return cls(max_share, context_window)

    @property
    def tokens(self) -> int | None:
        """The limit; None until the model has been looked up."""
        return None if isinstance(self.window, str) else self._of(self.window)

    def _of(self, window: int) -> int:
        return max(1, int(window * self.share))

    async def look_up(self) -> int:
        """Return the limit from litellm's table of models, without network access.

        Raises:
            MemoryUseError: The table does not have the model, or not its context window.
        """
        if not isinstance(self.window, str):
            return self._of(self.window)
        from agent_brain.common.litellm import model_entry

        entry = await anyio.to_thread.run_sync(model_entry, self.window)
        window = (entry or {}).get("max_input_tokens")
        if not isinstance(window, int):
            raise MemoryUseError(
                f"litellm's table does not say how many tokens {self.window!r} can read: give "
                "context_window= as a number"
            )
        return self._of(window)
