"""Nets, memories, models and tasks as a file names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agent_brain.common.references import is_reference

ONE = {"nets": "net", "memories": "memory", "models": "model", "tasks": "set"}
"""The key by which a table of each list says what it is."""

_EXAMPLES = {
    "nets": '["react", "plan_execute"]',
    "memories": '["messages", "vector"]',
    "models": '["openai/gpt-4.1-mini", "rule-based"]',
    "tasks": '["basics", "my_tasks.toml"]',
}
_FILES = (".toml", ".yaml", ".yml", ".json", ".jsonl")


class Entry(NamedTuple):
    """One of the nets, memories, models or task sets of a file.

    Attributes:
        place: Where it is in the file, such as ``memories.short``.
        name: Its name in the experiment.
        what: What it is: a registered name, a file, or ``module:object``.
        options: Its options.
    """

    place: str
    name: str
    what: str
    options: dict[str, Any]


def read_entries(key: str, value: object, problems: list[str]) -> list[Entry]:
    """Return what a text, a list or a table of the file names.

    Args:
        key: A key of :data:`ONE`.
        value: Its value in the file.
        problems: Gets what is wrong with it.
    """
    if isinstance(value, str):
        value = [value]
    if isinstance(value, Mapping):
        found = [_from_table(key, name, entry, problems) for name, entry in value.items()]
    elif isinstance(value, list):
        found = [_from_list(key, entry, problems) for entry in value]
    else:
        found = []
    if not found:
        problems.append(f"{key}: write {key} = {_EXAMPLES[key]}, or tables [{key}.NAME]")
    entries = [entry for entry in found if entry is not None]
    names = [entry.name for entry in entries]
    problems += [
        f"{key}: two are named {name!r}. Name them yourself: [{key}.NAME]"
        for name in dict.fromkeys(name for name in names if names.count(name) > 1)
    ]
    return entries


def _from_list(key: str, entry: object, problems: list[str]) -> Entry | None:
    if isinstance(entry, str) and entry.strip():
        return Entry(key, short_name(entry), entry, {})
    problems.append(
        f"{key}: {entry!r} is not a name. For options, write each of them as a table [{key}.NAME]"
    )
    return None


def _from_table(key: str, name: str, entry: object, problems: list[str]) -> Entry | None:
    place, one = f"{key}.{name}", ONE[key]
    if isinstance(entry, str):
        entry = {one: entry}
    if not isinstance(entry, Mapping):
        problems.append(f"{place} is {entry!r}: write a table, such as [{place}] {one} = …")
        return None
    options = dict(entry)
    what = options.pop(one, name)
    if isinstance(what, str) and what.strip():
        return Entry(place, name, what, options)
    problems.append(f"{place}.{one} is {what!r}: write a name, a file or module:object")
    return None


def short_name(text: str) -> str:
    """Return what an experiment calls an entry: the last part of a file or a reference."""
    if is_reference(text):
        return text.rpartition(":")[2]
    return Path(text).stem if is_file(text) else text


def is_file(text: str) -> bool:
    """Return whether ``text`` is the path of a file of data."""
    return Path(text).suffix.lower() in _FILES
