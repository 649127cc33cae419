"""The models of an experiment. Private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agent_brain.default_model import resolve_llm
from agent_brain.errors import AgentBrainError, ExperimentError
from agent_brain.experiments.choices.axis import read_axis
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.experiments.task import is_name
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import made_of_names


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
    found = read_axis("models", [None] if given is None else given, _read)
    return {name: replace(choice, name=name) for name, choice in found.items()}


def check_model(where: str, llm: LLM) -> None:
    """Check what can be known of a model without a call.

    Raises:
        ExperimentError: Its name or its parameters cannot be right.
    """
    if llm.rule_based:
        return
    from agent_brain.states.models.litellm.faults import faults_of

    if faults := faults_of(llm):
        raise ExperimentError(f"{where}: {'; '.join(faults)}")


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
    check_model(where, llm)
    choice = choice_of(llm)
    return replace(choice, name=given) if isinstance(given, str) else choice
