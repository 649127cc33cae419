"""The nets of an experiment, and how each is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from agent_brain.brainfile import net_from_file
from agent_brain.common.references import load_object
from agent_brain.common.suggest import wrong_option
from agent_brain.demo import DemoLLM
from agent_brain.errors import ExperimentError
from agent_brain.experiments.choices.axis import (
    check_call,
    in_words,
    name_of,
    parameters_of,
    read_axis,
    split_options,
)
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.nets.net import Net, as_net
from agent_brain.nets.registry import create_net, find_net
from agent_brain.states.models.llm import LLM

SUFFIXES = (".toml", ".yaml", ".yml")
MakeNet = Callable[[Any, Any], Net]  # of the model, if it has none, and the output type


@dataclass(frozen=True, slots=True)
class NetChoice:
    """A net of an experiment.

    Attributes:
        name: Its name in the experiment.
        text: What was given, in words.
        key: Stands for what was given, in the IDs of cases.
        create: Makes it for a model and an output type.
        net: The net, if it was given as an object, which has its model.
        made: The nets that were made, by model and output type.
    """

    name: str
    text: str
    key: Key
    create: MakeNet
    net: Net | None = None
    made: dict[tuple[int, Any], Net] = field(default_factory=dict)

    def make(self, llm: LLM | None, output_type: Any) -> Net:
        """Return the net for a model. All cases share it, as runs keep nothing in nets."""
        key = id(llm), id(output_type)
        if key not in self.made:
            self.made[key] = self.create(llm, output_type)
        return self.made[key]


def read_nets(given: object, options: object = None) -> dict[str, NetChoice]:
    """Return the nets by name.

    Args:
        given: What was given for them.
        options: Options of all those that are given by a registered name, if there are any.

    Raises:
        ExperimentError: Something is not a net, or cannot be made.
    """
    common = {} if options is None else options
    if not isinstance(common, Mapping):
        raise ExperimentError(f"net_options={options!r}: a dict of options")
    return read_axis("nets", given, lambda where, thing: _read(where, thing, common))


def _read(where: str, given: Any, common: Mapping[str, Any]) -> NetChoice:
    thing, options = split_options(where, given)
    if isinstance(thing, Net | Mapping):
        return _of_object(as_net(thing))
    if isinstance(thing, str | PathLike):
        text = fspath(thing)
        if Path(text).suffix.lower() in SUFFIXES:
            choice = _of_file(where, text, options)
        elif ":" in text:
            choice = _of_reference(where, text, options)
        else:
            choice = _of_name(text, {**common, **options})
        choice.create(DemoLLM(), None)  # an option may have a wrong value
        return choice
    if callable(thing) and not isinstance(thing, type):
        return _of_function(where, name_of(thing), name_of(thing), thing, {})
    raise ExperimentError(
        f"{where}={thing!r}: give the name of a net, a net, a file (.toml, .yaml), 'module:name', "
        "a tuple (name, options), or a function of a model that returns a net"
    )


def _of_object(net: Net) -> NetChoice:
    name = net.name or "net"
    return NetChoice(name, f"the net {name}", fingerprint(net), lambda _, __: net, net)


def _of_name(name: str, options: dict[str, Any]) -> NetChoice:
    factory = find_net(name)
    typed = factory is not None and wrong_option(factory, ["output_type"]) is None

    def create(llm: LLM, output_type: Any) -> Net:
        more = {"output_type": output_type} if typed and output_type is not None else {}
        return create_net(name, llm, **{**options, **more})

    return NetChoice(name, in_words(name, options), fingerprint(name, options, factory), create)


def _of_file(where: str, text: str, options: Mapping[str, Any]) -> NetChoice:
    path = Path(text)
    if options:
        raise ExperimentError(f"{where}: a net of a file takes no options: write them into it")
    if not path.is_file():
        raise ExperimentError(f"{where}: there is no file {text!r}")
    key = fingerprint("file", path.read_bytes(), net_from_file(path, DemoLLM()))
    return NetChoice(path.stem, text, key, lambda llm, _: net_from_file(path, llm))


def _of_reference(where: str, text: str, options: dict[str, Any]) -> NetChoice:
    thing: Any = load_object(f"{where}={text!r}", text, ExperimentError)
    if isinstance(thing, Net | Mapping):
        return replace(_of_object(as_net(thing)), text=text)
    if not callable(thing):
        raise ExperimentError(f"{where}={text!r} is {thing!r}: name a net or a function")
    return _of_function(where, text.rpartition(":")[2], text, thing, options)


def _of_function(
    where: str, name: str, text: str, function: Callable[..., Any], options: dict[str, Any]
) -> NetChoice:
    """Return the choice of a function, which takes the output type by name, by place, or not."""
    parameters = parameters_of(where, function)
    found = parameters.get("output_type")
    by_name = found is not None and found.kind is not found.POSITIONAL_ONLY
    required = sum(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
        for p in parameters.values()
    )

    def arguments(llm: LLM | None, output_type: Any) -> tuple[list[Any], dict[str, Any]]:
        if by_name:
            return [llm], {**options, "output_type": output_type}
        return [llm, output_type] if required > 1 else [llm], options

    def create(llm: LLM, output_type: Any) -> Net:
        args, named = arguments(llm, output_type)
        return as_net(function(*args, **named))

    args, named = arguments(None, None)
    check_call(where, function, *args, **named)
    return NetChoice(name, in_words(text, options), fingerprint(function, options), create)
