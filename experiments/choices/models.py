"""The models of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agent_brain.common.references import is_reference, load_object
from agent_brain.common.suggest import wrong_option
from agent_brain.default_model import resolve_llm
from agent_brain.errors import AgentBrainError, ExperimentError
from agent_brain.experiments.choices.axis import read_axis, split_options
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.experiments.task import is_name
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import made_of_names, maker_of


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model of an experiment.

    Attributes:
        name: Its name in the experiment.
        llm: The model; None for that of the nets, if these have none.
        key: Stands for what was given, in the IDs of cases.
    """

    name: str
    llm: LLM | None
    key: Key

    @property
    def text(self) -> str:
        """The name that the provider knows."""
        return "none" if self.llm is None else self.llm.model

    @property
    def is_rule_based(self) -> bool:
        """Whether it is rules and not a language model."""
        return self.llm is None or bool(getattr(self.llm, "rule_based", False))

    @property
    def is_ours(self) -> bool:
        """Whether it was made of a name, so that nobody else can close it."""
        return self.llm is not None and self.llm in made_of_names


def read_models(given: object) -> dict[str, ModelChoice]:
    """Return the models by name.

    Raises:
        ExperimentError: Something is not a model.
    """
    return read_axis("models", [None] if given is None else given, _read)


def make_models(given: object) -> dict[str, LLM]:
    """Return the models of a dict from names to tuples: what names a model, and its options.

    A model is named as for :class:`Experiment`, or as ``"module:name"``.

    Raises:
        ExperimentError: Something is not a model, or does not take its options.
    """
    found = read_axis("models", given, _read_with_options)
    return {name: choice.llm for name, choice in found.items() if choice.llm is not None}


def choice_of(llm: LLM | None) -> ModelChoice:
    """Return the choice of a model that a net has; None for a net without one."""
    return ModelChoice("none" if llm is None else llm.model, llm, fingerprint(llm))


def _read(where: str, given: Any) -> ModelChoice:
    if given is not None and not isinstance(given, LLM) and not is_name(given):
        raise ExperimentError(
            f"{where}={given!r} is not a model: give a LiteLLM model name such as "
            "'openai/gpt-4.1', 'rule-based', or an LLM object"
        )
    try:
        llm = resolve_llm(given)
    except AgentBrainError as error:
        problem = str(error).removeprefix("llm: ")  # here it has another name
        raise ExperimentError(f"{where}: {problem}") from error
    choice = choice_of(llm)
    return replace(choice, name=given) if isinstance(given, str) else choice


def _read_with_options(where: str, given: Any) -> ModelChoice:
    name, options = split_options(where, given)
    if not options and not is_reference(name):
        return _read(where, name)
    make: Any = (
        load_object(f"{where}: {name!r}", name, ExperimentError)
        if is_reference(name)
        else maker_of(name)
    )
    if isinstance(make, LLM) and not options:
        return choice_of(make)
    if isinstance(make, LLM) or not callable(make):
        what = "options go with a function or a class"
        raise ExperimentError(f"{where}: {name!r} is {make!r}: {what}")
    if options and (problem := wrong_option(make, options)) is not None:
        raise ExperimentError(f"{where}: {problem}")
    try:
        made = make(**options)
    except ExperimentError as error:  # of a model of rules
        raise ExperimentError(f"{where}: {error}") from error
    if not isinstance(made, LLM):
        raise ExperimentError(f"{where}: {name!r} returned {made!r}, which is not a model")
    if not is_reference(name):
        made_of_names.add(made)  # the experiment closes it
    return choice_of(made)
