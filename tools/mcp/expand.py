"""``${NAME}`` and ``${NAME:-default}`` in a configuration, from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}", re.ASCII)


class Expander:
    """Puts in the values, and remembers them: they may be secret.

    Args:
        environ: The environment.

    Attributes:
        missing: Names that have neither a value nor a default, in the order they were met.
        secrets: The values that were put in.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.missing: dict[str, None] = {}
        self.secrets: set[str] = set()

    def expand(self, text: str) -> str:
        """``text`` with its variables replaced; a missing one is noted and becomes nothing."""
        return _VARIABLE.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        name, default = match.groups()
        value = self._environ.get(name)
        if value or (value is not None and default is None):
            self.secrets.add(value)
            return value
        if default is None:
            self.missing[name] = None
        return default or ""
