"""Which public name is documented on which page of the API reference.

A name that several packages export is documented once, on the page of the first of them in
``PAGES``; the others link to it. Pages are Markdown files in ``docs/reference`` with a comment
``<!-- names of PACKAGE -->`` in the place of the entries.
"""

from __future__ import annotations

import importlib
import inspect
import re
from abc import ABC
from collections import defaultdict
from functools import cache
from typing import Generic

PAGES = {
    "agent_brain.errors": "errors",
    "agent_brain.tools": "tools",
    "agent_brain.tools.builtin": "tools",
    "agent_brain.tools.mcp": "tools",
    "agent_brain.memories": "memories",
    "agent_brain.memories.embedders": "memories",
    "agent_brain.states": "states",
    "agent_brain.nets": "nets",
    "agent_brain": "brain",
    "agent_brain.hooks": "hooks",
    "agent_brain.serving": "serving",
    "agent_brain.serving.web": "serving",
    "agent_brain.workers": "workers",
    "agent_brain.telemetry": "telemetry",
    "agent_brain.testing": "testing",
    "agent_brain.demo": "testing",
    "agent_brain.experiments": "experiments",
    "agent_brain.experiments.statistics": "experiments",
    "agent_brain.experiments.inspect": "experiments",
}
PRIVATE = {"agent_brain.cli"}  # exports the entry point of the command, and nothing for programs
COMMENT = re.compile(r"^<!-- names of ([\w.]+) -->$", re.MULTILINE)
TITLES = {
    "class": "Classes",
    "function": "Functions",
    "exception": "Errors",
    "data": "Types and values",
}


@cache
def homes() -> dict[tuple[str, str], str]:
    """Return, for every exported name and its package, the package where it is documented."""
    found: dict[tuple[str, str], str] = {}
    first: dict[tuple[str, int], str] = {}
    for package in PAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            home = first.setdefault((name, id(getattr(module, name))), package)
            found[package, name] = home
    return found


@cache
def public_classes() -> set[type]:
    """Return every exported class."""
    values = [getattr(importlib.import_module(package), name) for package, name in homes()]
    return {value for value in values if isinstance(value, type)}


def public_bases(value: type) -> list[type]:
    """Return the nearest documented bases of a class, and those from other libraries."""
    found: dict[type, None] = {}
    for base in value.__bases__:
        if base.__module__.startswith("agent_brain") and base not in public_classes():
            found |= dict.fromkeys(public_bases(base))
        elif base not in (object, Generic, ABC):
            found[base] = None
    return list(found)


def kind_of(package: str, name: str) -> str:
    """Return which kind of thing a name is: a key of ``TITLES``."""
    value = getattr(importlib.import_module(package), name)
    if inspect.isclass(value):
        return "exception" if issubclass(value, Exception) else "class"
    return "function" if inspect.isroutine(value) else "data"


def directive(package: str, name: str) -> str:
    """Return the autodoc directive for a name, with what a class inherits from private bases."""
    kind, value = kind_of(package, name), getattr(importlib.import_module(package), name)
    text = f".. auto{kind}:: {package}.{name}\n"
    if kind in ("class", "exception") and public_bases(value):
        text += "   :show-inheritance:\n"
    if kind == "class":
        bases = value.__mro__[1:]
        others = {base for base in bases if not base.__module__.startswith("agent_brain")}
        public = [base for base in bases if base in public_classes()]
        known = others | {base for base in bases if any(issubclass(p, base) for p in public)}
        if known != set(bases):
            names = ", ".join(sorted(base.__name__ for base in known))
            text += f"   :inherited-members: {names}\n"
    return text


def entries(package: str) -> str:
    """Return the Markdown that documents what ``package`` exports."""
    own: dict[str, list[str]] = defaultdict(list)
    elsewhere = []
    for (exporter, name), home in homes().items():
        if exporter != package:
            continue
        if home == package:
            own[kind_of(package, name)].append(directive(package, name))
        else:
            elsewhere.append(f"{{py:obj}}`{name} <{home}.{name}>`")
    parts = [
        f"### {title}\n\n```{{eval-rst}}\n{chr(10).join(own[kind])}\n```\n"
        for kind, title in TITLES.items()
        if own[kind]
    ]
    if elsewhere:
        parts.append(f"### Documented elsewhere\n\nAlso exported: {', '.join(elsewhere)}.\n")
    return "\n".join(parts)


def documented() -> set[str]:
    """Return every public name with the package where it is documented."""
    return {f"{home}.{name}" for (_, name), home in homes().items()}
