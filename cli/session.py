"""Runs of one brain, one after the other, on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent_brain.brain import Brain
from agent_brain.brainfile import BrainSpec, read_spec
from agent_brain.cli.decisions import Read, ask_person, how_to_answer
from agent_brain.cli.exit_codes import ExitCode, UserError, conclude, notify, user_errors
from agent_brain.cli.nets import is_file, load_net, load_tools
from agent_brain.cli.options import DEFAULT_MEMORY, Options, window_options
from agent_brain.cli.printers import Printer, by_memory, make_printer
from agent_brain.cli.screen import busy
from agent_brain.cli.signals import signals_wake_loop, sigterm_as_ctrl_c
from agent_brain.default_model import MODEL_VARIABLE, models_of, resolve_llm
from agent_brain.demo import DemoLLM, demo_tools
from agent_brain.errors import ResumeError
from agent_brain.limits import WAITING, Limits, StopReason
from agent_brain.memories import Memory, UserMemory
from agent_brain.memories.user.learning import Extract
from agent_brain.nets import Net
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.states.events import FactsLearned, Position, RunFinished
from agent_brain.states.extracting import model_extractor
from agent_brain.tools.toolset import named_tools

DEFAULTS = BrainSpec.model_validate({"memory": DEFAULT_MEMORY})  # of a net that is not in a file

DEMO_NOTE = (
    "no model was chosen, so the built-in demo model answers: a small rule-based program, offline. "
    f"Choose a real one with --model openai/gpt-4.1-mini, or set {MODEL_VARIABLE}"
)


@dataclass(slots=True)
class Session:
    """Runs the agent that ``options`` describe; Ctrl-C and SIGTERM cancel the current run.

    Between runs nothing executes, so the program may block while it reads the user's input.
    """

    options: Options
    brain: Brain
    new_printer: Callable[[], Printer]
    runner: asyncio.Runner
    clean: bool = True  # false while a run is not yet closed, as after a second Ctrl-C
    told_to_end: bool = False  # by SIGTERM

    def run(self, question: str) -> Result:
        """Run one turn. What tools print goes to stderr, because stdout is for the answer."""
        return self._show(self.brain.stream(question))

    def resume(self, **decisions: Any) -> Result:
        """Continue the run in the memory; see :meth:`Brain.resume`."""
        return self._show(self.brain.stream_resume(**decisions))

    def settle(self, result: Result, read: Read) -> Result:
        """Ask the person and resume, until the run no longer waits or the person postpones it."""
        while result.stop_reason in WAITING:
            decisions = ask_person(self.brain.memory, read)
            if decisions is None:
                break
            result = self.resume(**decisions)
        return result

    def open_memory(self) -> Memory:
        """Return the memory, loaded from where it is stored."""
        with user_errors():
            self.runner.run(self.brain.memory.open())
        return self.brain.memory

    def conclude(self, result: Result) -> ExitCode:
        """Return the exit code of a run, after reporting why it stopped and how to continue it."""
        return conclude(result, how_to_answer(self.brain.memory, self.options))

    def postpone(self) -> ExitCode:
        """Return the exit code of a run that still waits, after telling how to continue it."""
        how = how_to_answer(self.brain.memory, self.options)
        notify(f"the run waits for a person{how}", kind="Stopped")
        return ExitCode.STOPPED

    def _show(self, run: Run) -> Result:
        self.clean, show = False, self.new_printer()  # before stdout is redirected
        with contextlib.redirect_stdout(sys.stderr), sigterm_as_ctrl_c() as terminated:
            try:
                return self.runner.run(self._drive(run, show))
            finally:
                self.told_to_end = terminated.is_set()

    async def _drive(self, run: Run, show: Printer) -> Result:
        try:
            with signals_wake_loop():
                async with run:
                    async for event in run:
                        show(event)
        except ResumeError as error:
            raise UserError(str(error)) from error
        except asyncio.CancelledError:
            end = run.result  # the stream was closed before it could yield its last event
            at = Position(end.run_id, end.steps)
            show(RunFinished(StopReason.CANCELLED, end.answer, end.output, end.usage, at=at))
            raise
        finally:
            self.clean = True
        return run.result


@contextlib.contextmanager
def open_session(
    options: Options, new_printer: Callable[[], Printer] | None = None
) -> Iterator[Session]:
    """Yield a session, with the tools of MCP servers; close its brain at the end."""
    brain = build(options)
    with asyncio.Runner() as runner:
        try:
            if options.servers:
                with user_errors():
                    runner.run(brain.connect(*options.servers))
            yield Session(options, brain, new_printer or partial(make_printer, options), runner)
        finally:
            with busy("Learning …") if options.learn else contextlib.nullcontext():
                runner.run(brain.aclose())
            if brain.user is not None:
                if (error := brain.user.learning_error) is not None:
                    notify(f"this chat will be learned from the next time: {error}", kind="Note")
                for fields in brain.user.untold:
                    if fields["added"]:
                        notify(by_memory(FactsLearned(**fields)), kind="Note")
                runner.run(brain.user.aclose())


def spec_of(agent: Options) -> BrainSpec:
    """Return what the file of the net says, if it has one, with the memory that was chosen."""
    spec = read_spec(agent.net) if is_file(agent.net) else DEFAULTS
    if agent.memory in (None, spec.memory):
        return spec
    return spec.model_copy(update={"memory": agent.memory, "memory_options": {}})


def named_model(agent: Options, spec: BrainSpec) -> str:
    """Return the name of the model that was chosen; empty if none was."""
    named = (agent.model, spec.model, os.environ.get(MODEL_VARIABLE, ""))
    return next(name for name in named if name is not None).strip()


def build(agent: Options) -> Brain:
    """Return the agent that the options describe; they override the net's file, if it has one.

    A note on stderr says that no model was chosen, if the net has none of its own.
    """
    with user_errors():
        spec = spec_of(agent)
    chosen = named_model(agent, spec)
    model = chosen or "demo"
    with user_errors():
        tools = [*named_tools(spec.tools), *load_tools(agent.tools)]
    if model == "demo" and not tools and not agent.servers:
        tools = demo_tools()
    with user_errors(), contextlib.nullcontext() if model == "demo" else busy("Loading LiteLLM …"):
        memory, kept = spec.memory, spec.memory_options
        llm = resolve_llm(model)
        net, storage = load_net(agent.net, llm), agent.storage(memory)
        user = None
        if agent.learn:
            place = {name: value for name, value in storage.items() if name != "session"}
            user = UserMemory(**place, extract=extractor_of(net, agent))
        brain = Brain(
            net,
            memory,
            tools,
            trace=agent.trace or spec.trace,
            limits=Limits(**{**spec.limits.model_dump(), **agent.limits()}),
            memory_options={**window_options(memory, model, kept), **kept, **storage},
            user=user,
        )
    if not chosen and llm in models_of(brain.net):
        notify(DEMO_NOTE, kind="Note")
    return brain


def extractor_of(net: Net, options: Options) -> Extract:
    """Return what learns about users with the model of a net.

    Raises:
        UserError: There is no folder, or no model that could.
    """
    if options.folder is None:
        raise UserError("--learn keeps what is known about users in a folder: give --folder too")
    models = [model for model in models_of(net) if not isinstance(model, DemoLLM)]
    if not models:
        raise UserError("--learn needs a model, which the demo model is not: choose one (--model)")
    return model_extractor(models[0])
