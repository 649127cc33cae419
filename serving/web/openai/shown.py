"""What a client is shown of a run, beside its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import BaseModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a client is shown of a run, beside its answer.

    Attributes:
        tools: The tool calls, with arguments and results.
        thoughts: Text that is reasoning, not meant for the reader.
    """

    tools: bool = False
    thoughts: bool = False


class Extension(BaseModel):
    """The field ``agent_brain`` of a request: what this request changes.

    Attributes:
        show_tools: Show the tool calls; None for what the server does.
        show_thoughts: Show reasoning; None for what the server does.
    """

    show_tools: bool | None = None
    show_thoughts: bool | None = None

    def over(self, shown: Shown) -> Shown:
        """Return ``shown`` with the changes of the request."""
        if self.show_tools is not None:
            shown = replace(shown, tools=self.show_tools)
        if self.show_thoughts is not None:
            shown = replace(shown, thoughts=self.show_thoughts)
        return shown
