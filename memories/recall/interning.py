"""Labels, such as the names of senders, as numbers that arrays can hold."""

from __future__ import annotations

NOBODY = -1


class Labels:
    """Gives each label a number for as long as something carries it, and then forgets it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._labels: dict[int, str] = {}
        self._carried: dict[int, int] = {}
        self._next = 0

    def add(self, label: str | None) -> int:
        """The number of ``label``, which one thing more carries; :data:`NOBODY` for None."""
        if label is None:
            return NOBODY
        if label not in self._numbers:
            self._numbers[label] = self._next
            self._labels[self._next] = label
            self._next += 1
        number = self._numbers[label]
        self._carried[number] = self._carried.get(number, 0) + 1
        return number

    def remove(self, number: int) -> str | None:
        """Take back one :meth:`add`; returns the label if nothing carries it any more."""
        if number == NOBODY:
            return None
        self._carried[number] -= 1
        if self._carried[number]:
            return None
        del self._carried[number]
        label = self._labels.pop(number)
        del self._numbers[label]
        return label

    def number(self, label: str) -> int:
        """The number of ``label``; :data:`NOBODY` if nothing carries it."""
        return self._numbers.get(label, NOBODY)
