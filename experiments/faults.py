"""Everything that is wrong with an experiment, told at once."""

from __future__ import annotations

from typing import Self

from agent_brain.errors import ExperimentError


class Faults:
    """Collects what is wrong: a context manager around each check, then :meth:`refuse`."""

    def __init__(self) -> None:
        self._found: list[ExperimentError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, ExperimentError):
            return False
        self._found.append(error)
        return True

    def refuse(self) -> None:
        """Raise what was found.

        Raises:
            ExperimentError: Something was.
        """
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise ExperimentError("\n".join(map(str, self._found)))
