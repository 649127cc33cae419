"""Every public name can be imported, is documented, and is fully annotated."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.project.repository import PACKAGES

FACADES = ("", ".memories", ".nets", ".states", ".testing", ".tools")


def load(package: str) -> ModuleType:
    return importlib.import_module(package)


def public_objects() -> Iterator[tuple[str, Any]]:
    """Every class and function that some package exports, and the public members of the classes."""
    seen = set()
    for package in reversed(PACKAGES):
        for name in exports(package):
            value = getattr(load(package), name)
            is_code = inspect.isclass(value) or inspect.isfunction(value)
            if not is_code or not is_ours(value) or value in seen:
                continue
            seen.add(value)
            yield f"{package}.{name}", value
            if inspect.isclass(value):
                for member_name, member in public_members(value):
                    yield f"{package}.{name}.{member_name}", member


def public_members(cls: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties that ``cls`` itself defines; inherited ones count where they are from."""
    for name, value in vars(cls).items():
        if name.startswith("_") and name != "__init__":
            continue
        function = getattr(value, "fget", None) or getattr(value, "func", None) or value
        function = inspect.unwrap(getattr(function, "__func__", function))
        if inspect.isfunction(function) and is_ours(function):
            yield name, function


def is_ours(value: Any) -> bool:
    # Generated code (a dataclass's __init__, say) is in no file of ours.
    if inspect.isfunction(value) and value.__code__.co_filename.startswith("<"):
        return False
    return str(value.__module__).startswith("agent_brain")


def sort_key(name: str) -> tuple[int, str]:
    """The order that ruff keeps (RUF022): constants, classes, the rest."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


@pytest.mark.parametrize("suffix", FACADES)
def test_every_facade_lists_what_it_exports(suffix: str) -> None:
    assert load(f"agent_brain{suffix}").__all__


def exports(package: str) -> list[str]:
    return list(getattr(load(package), "__all__", ()))


def test_exported_names_are_sorted_and_unique() -> None:
    for package in PACKAGES:
        names = exports(package)
        assert names == sorted(set(names), key=sort_key), package


def test_exported_names_can_be_imported_and_are_listed_by_dir() -> None:
    problems = []
    for package in PACKAGES:
        module = load(package)
        listed = dir(module)  # before hasattr() loads what is loaded late
        for name in exports(package):
            if not hasattr(module, name):
                problems.append(f"{package}.{name} cannot be imported")
            elif name not in listed:
                problems.append(f"{package}.{name}: define __dir__ beside __getattr__")
    assert problems == []


def test_public_objects_have_a_docstring() -> None:
    found = list(public_objects())
    assert len(found) > 1_000
    assert [name for name, value in found if not has_docstring(value)] == []


def has_docstring(value: Any) -> bool:
    if value.__name__ == "__init__":
        return True  # documented by its class
    # A class inherits no docstring here, and a dataclass's made-up one is its signature.
    text = vars(value).get("__doc__") if inspect.isclass(value) else documentation(value)
    return bool(text) and not str(text).startswith(f"{value.__name__}(")


def documentation(function: Any) -> str | None:
    """A function's docstring; an overriding method may leave it to the method that it overrides."""
    owner: Any = inspect.getmodule(function)
    *path, name = function.__qualname__.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    return inspect.getdoc(getattr(owner, name, function))


def test_public_callables_are_fully_annotated() -> None:
    bare = {name: unannotated(value) for name, value in public_objects()}
    assert {name: parameters for name, parameters in bare.items() if parameters} == {}


def unannotated(value: Any) -> list[str]:
    if inspect.isclass(value):
        return []  # its __init__ is checked separately
    signature = inspect.signature(value)
    bare = [
        name
        for index, (name, parameter) in enumerate(signature.parameters.items())
        if parameter.annotation is parameter.empty and not (index == 0 and name in {"self", "cls"})
    ]
    if signature.return_annotation is signature.empty:
        bare.append("return")
    return bare
