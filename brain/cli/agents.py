"""An agent from what the user typed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_brain.brain import Brain
from agent_brain.cli.exits import UserError, machine_refused, tell
from agent_brain.cli.loading import load_tools
from agent_brain.cli.screen import waiting
from agent_brain.default_model import MODEL_VARIABLE, resolve_llm
from agent_brain.errors import AgentBrainError
from agent_brain.limits import Limits
from agent_brain.nets import net_names
from agent_brain.tools import BaseTool

DEMO_NOTE = (
    "no model was chosen, so the built-in demo model answers: a small rule-based program, offline. "
    f"Choose a real one with --model openai/gpt-4.1-mini, or set {MODEL_VARIABLE}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What the user typed, still unchecked; None for what was not given."""

    model: str | None = None
    net: str = "react"
    file: str | None = None
    memory: str | None = None
    folder: Path | None = None
    session: str | None = None
    tools: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    max_steps: int | None = None
    timeout: float | None = None
    max_cost: float | None = None

    @property
    def memory_name(self) -> str:
        """The memory, where no file says which."""
        return "messages" if self.memory is None else self.memory

    def memory_options(self) -> dict[str, Any]:
        """Where the memory is kept, if anywhere.

        Raises:
            UserError: The folder cannot be used, or a session is named without one.
        """
        if self.folder is None:
            if self.session is not None:
                raise UserError("--session names a conversation in a folder: give --folder too")
            return {}
        session = self.session or "default"
        try:
            session.encode()
        except UnicodeEncodeError:
            raise UserError(f"--session {session!r} is not text in UTF-8") from None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = machine_refused(error) or str(error)
            raise UserError(f"--folder {str(self.folder)!r} cannot be used: {why}") from error
        if self.memory_name.casefold() == "vector":
            return {"path": self.folder, "session": session}
        return {"journal": self.folder / "memory.db", "session": session}

    def words(self) -> list[str]:
        """The options that lead another command to the same agent and conversation."""
        single = {
            "--model": self.model,
            "--net": self.net if self.net != "react" else None,
            "--memory": self.memory if self.memory_name != "messages" else None,
            "--folder": None if self.folder is None else str(self.folder),
            "--session": self.session,
        }
        several = {"--tool": self.tools, "--mcp": self.servers}
        found = [word for name, value in single.items() if value for word in (name, value)]
        return found + [w for name, values in several.items() for v in values for w in (name, v)]

    def limits(self, usual: Mapping[str, Any] | None = None) -> Limits:
        """The limits given, over the usual ones or others."""
        given = {
            "max_steps": self.max_steps,
            "timeout": self.timeout,
            "max_cost": self.max_cost,
        }
        return Limits(**{**(usual or {}), **{k: v for k, v in given.items() if v is not None}})


def build(options: AgentOptions) -> Brain:
    """The agent; says on stderr if it has to use the demo model.

    Raises:
        UserError: The options name something that does not exist, or do not go together.
    """
    chosen = _chosen_model(options)
    model = chosen.strip() or "demo"
    tools = load_tools(options.tools)
    if model == "demo" and not tools and not options.servers:
        from agent_brain.demo import demo_tools

        tools = demo_tools()
    wait = nullcontext() if model == "demo" else waiting("Loading LiteLLM …")
    with mistakes(), wait:
        limits = options.limits()
        brain = _make(options, model, tools, limits)
    if not chosen.strip():
        tell(DEMO_NOTE, kind="Note")
    return brain


def _chosen_model(options: AgentOptions) -> str:
    """What the user says, else the file, else the environment; empty for nothing."""
    if options.model is not None:
        return options.model
    if options.file is not None:
        from agent_brain.brainfile import read_spec

        with mistakes():
            named = read_spec(options.file).model
        if named is not None:
            return named
    return os.environ.get(MODEL_VARIABLE, "")


def _make(options: AgentOptions, model: str, tools: list[BaseTool], limits: Limits) -> Brain:
    if options.file is not None:
        return _from_file(options.file, options, model, tools)
    kept: dict[str, Any] = {"memory_options": options.memory_options()}
    if options.net.casefold() in net_names():
        return Brain(options.net, options.memory_name, tools, llm=model, limits=limits, **kept)
    from agent_brain.cli.netlike import load_net

    llm = resolve_llm(model)
    net = load_net(options.net, llm)
    return Brain(net, options.memory_name, tools, limits=limits, **kept)


def _from_file(file: str, options: AgentOptions, model: str, tools: list[BaseTool]) -> Brain:
    """The agent that the file describes, with what was typed in place of what the file says."""
    from agent_brain.brainfile import brain_from_file, read_spec

    spec = read_spec(file)
    typed: dict[str, Any] = {"limits": options.limits(spec.limits.model_dump())}
    if options.memory not in (None, spec.memory):  # the file's options are those of its own memory
        typed |= {"memory": options.memory, "memory_options": {}}
    return brain_from_file(file, tools, llm=model, **typed)


@contextmanager
def mistakes(*, but: type[AgentBrainError] | tuple[()] = ()) -> Iterator[None]:
    """What is refused inside is the user's mistake.

    Args:
        but: Errors that are let through as they are.

    Raises:
        UserError: For every error that this library raises on purpose.
    """
    try:
        yield
    except but:
        raise
    except AgentBrainError as error:
        raise UserError(str(error)) from error
