"""Registries of classes and functions by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from agent_brain.common.suggest import did_you_mean, wrong_option

T = TypeVar("T")
MAX_CHECKED = 1000


class Registry(Generic[T]):
    """Factories by name: case is ignored, and ``-`` equals ``_``."""

    def __init__(self, noun: str, error: type[Exception], built_in: Mapping[str, str]) -> None:
        self._noun = noun
        self._error = error
        self.built_in = built_in  # "module:name" by name; imported at first use
        self.factories: dict[str, Callable[..., T]] = {}
        # Names with the options that were found right: reading a signature is slow.
        self._checked: set[tuple[str, ...]] = set()

    def register(self, name: str, factory: Callable[..., T]) -> None:
        """Register ``factory`` under ``name``, which must not belong to another one.

        A definition that is run again, as in a notebook, replaces itself.
        """
        if not callable(factory):
            raise self._error(f"{factory!r} is not callable: register a class or a function")
        known = self.find(name)
        if known is not None and _place(known) != _place(factory):
            raise self._error(
                f"A {self._noun} named {name!r} is already registered ({known!r}): use another name"
            )
        self.factories[_key(name)] = factory
        self._checked.clear()

    def resolve(
        self, name: object, argument: object, options: Mapping[str, Any]
    ) -> Callable[..., T]:
        """Return the factory of that name; refuse arguments that it does not take."""
        factory = self.find(name) if isinstance(name, str) else None
        if factory is None:
            raise self._error(
                f"There is no {self._noun} named {name!r}; registered are: "
                f"{', '.join(self.names())}.{did_you_mean(name, self.names())}"
            )
        if not options and _key(cast("str", name)) in self.built_in:
            return factory  # nothing to check, and reading a signature is slow
        checked = (_key(cast("str", name)), *options)
        if checked in self._checked:
            return factory
        problem = wrong_option(factory, options)
        if problem is not None:
            raise self._error(f"{self._noun.capitalize()} {name!r}: {problem}")
        try:
            inspect.signature(factory).bind(argument, **options)
        except TypeError as error:
            raise self._error(f"{self._noun.capitalize()} {name!r}: {error}") from error
        if len(self._checked) < MAX_CHECKED:
            self._checked.add(checked)
        return factory

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted({*self.factories, *self.built_in})

    def find(self, name: str) -> Callable[..., T] | None:
        """Return the factory of that name, if there is one."""
        key = _key(name)
        if key not in self.factories and key in self.built_in:
            module, _, attribute = self.built_in[key].partition(":")
            self.factories[key] = getattr(import_module(module), attribute)
        return self.factories.get(key)


def _key(name: str) -> str:
    return name.casefold().replace("-", "_")


def _place(factory: Callable[..., object]) -> object:
    """Return where a class or a function is defined; itself if that is inside a function."""
    name = getattr(factory, "__qualname__", "<")
    return factory if "<" in name else (factory.__module__, name)
