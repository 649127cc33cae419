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


def public_objects() -> Iterator[Any]:
    """Every class and function that some package exports, and the public members of the classes."""
    seen = set()
    for package in reversed(PACKAGES):
        try:
            module = load(package)
            values = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
        except (AttributeError, ImportError):
            continue  # test_exported_names_can_be_imported says so; here it would end all collection
        for name, value in values.items():
            is_code = inspect.isclass(value) or inspect.isfunction(value)
            if not is_code or not is_ours(value) or value in seen:
                continue
            seen.add(value)
            yield pytest.param(value, id=f"{package}.{name}")
            if inspect.isclass(value):
                for member_name, member in public_members(value):
                    yield pytest.param(member, id=f"{package}.{name}.{member_name}")


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


@pytest.mark.parametrize("package", PACKAGES)
def test_exported_names_are_sorted_and_unique(package: str) -> None:
    names = list(getattr(load(package), "__all__", ()))

    assert names == sorted(set(names), key=sort_key)


@pytest.mark.parametrize("package", PACKAGES)
def test_exported_names_can_be_imported(package: str) -> None:
    module = load(package)
    names = getattr(module, "__all__", ())

    assert [name for name in names if not hasattr(module, name)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_names_that_are_loaded_late_are_listed_by_dir(package: str) -> None:
    module = load(package)

    assert set(getattr(module, "__all__", ())) <= set(dir(module)), (
        "define __dir__ beside __getattr__"
    )


@pytest.mark.parametrize("value", list(public_objects()))
def test_public_objects_have_a_docstring(value: Any) -> None:
    if value.__name__ == "__init__":
        return  # documented by its class
    # A class inherits no docstring here, and a dataclass's made-up one is its signature.
    text = vars(value).get("__doc__") if inspect.isclass(value) else documentation(value)
    assert text, f"{value.__qualname__} has no docstring"
    assert not text.startswith(f"{value.__name__}("), f"{value.__qualname__} has no docstring"


def documentation(function: Any) -> str | None:
    """A function's docstring; an overriding method may leave it to the method that it overrides."""
    owner: Any = inspect.getmodule(function)
    *path, name = function.__qualname__.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    return inspect.getdoc(getattr(owner, name, function))


@pytest.mark.parametrize("value", list(public_objects()))
def test_public_callables_are_fully_annotated(value: Any) -> None:
    if inspect.isclass(value):
        return  # its __init__ is checked separately
    signature = inspect.signature(value)
    bare = [
        name
        for index, (name, parameter) in enumerate(signature.parameters.items())
        if parameter.annotation is parameter.empty and not (index == 0 and name in {"self", "cls"})
    ]
    if signature.return_annotation is signature.empty:
        bare.append("return")
    assert bare == [], f"{value.__qualname__} is not annotated"
