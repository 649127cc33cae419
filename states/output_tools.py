"""The tools that a model calls to answer with data of an output type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from agent_brain.common.values import error_lines
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.output_types import Shape
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.schemas import resolved

OUTPUT = "output"
"""Key in the metadata of a message whose text is the data of the run's output."""


OUTPUT_NAME = "final_result"
"""How the names of these tools begin."""


class OutputTool(BaseTool):
    """A tool that takes the answer; it is offered to a model and never run.

    Args:
        shape: The type of the answer.
        member: The member of a union that it takes; None for the whole type.
    """

    def __init__(self, shape: Shape[Any], member: str | None = None) -> None:
        name = OUTPUT_NAME if member is None else f"{OUTPUT_NAME}_{member}"
        what = shape.name if member is None else member
        schema = resolved(shape.schema) if member is None else shape.members[member].schema
        super().__init__(name, f"Give the final answer of the task: {what}.", schema)
        self.shape = shape
        self.member = member

    def read(self, action: Action) -> Any:
        """Return the data in a call.

        Raises:
            ValidationError: It does not fit.
        """
        return self.shape.read_args(action.args, self.member)

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``args``, which :meth:`read` validates."""
        return dict(args)

    async def execute(self, **kwargs: Any) -> Any:
        """Not called: the state that offers the tool takes the answer.

        Raises:
            StateDefinitionError: Always.
        """
        raise StateDefinitionError(f"{self.name!r} takes the answer and is not run")


def output_tools(shape: Shape[Any]) -> dict[str, OutputTool]:
    """Return the tools for an output type by name: one for each member of a union of objects."""
    made = [OutputTool(shape, member) for member in shape.members or (None,)]
    return {tool.name: tool for tool in made}


def check_names(outputs: Iterable[str], offered: Iterable[str]) -> None:
    """Check that no other tool has the name of an output tool.

    Raises:
        StateDefinitionError: One has.
    """
    if taken := {*outputs} & {*offered}:
        raise StateDefinitionError(
            f"The tool {min(taken)!r} has the name of the tool that takes the answer: rename it"
        )


def read_output(calls: list[Action], tools: dict[str, OutputTool]) -> tuple[Any, str | None]:
    """Return the data in the calls of output tools, and what is wrong with it.

    Args:
        calls: The calls of output tools in a response; at least one.
        tools: The output tools.
    """
    call = calls[0]
    if len(calls) > 1:
        names = " and ".join(repr(one.name) for one in calls)
        return None, f"{names} were called: give one answer"
    if call.unparsed is not None:
        return None, f"the arguments of {call.name!r} are not a JSON object"
    try:
        return tools[call.name].read(call), None
    except ValidationError as error:
        return None, "; ".join(error_lines(error, "the answer"))
