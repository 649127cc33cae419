"""Router: choose the net for a goal, and run it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pydantic import BaseModel, Field

from agent_brain.common.aio import maybe_await
from agent_brain.memories.base import Memory
from agent_brain.nets.composition import NetLike
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.nets.library.plan_execute import plan_execute
from agent_brain.nets.library.react import react
from agent_brain.nets.net import Net, as_net
from agent_brain.states import prompts
from agent_brain.states.base import RoutedState
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.model_request import StructuredRequest, build_messages
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.models.resolve import as_llm, llm_or
from agent_brain.states.session_state import Notes
from agent_brain.states.work import StreamItem

Choose: TypeAlias = Callable[[Memory], str | Awaitable[str]]

CHOOSING = (
    "You decide who works on the user's goal, and do not work on it yourself. Choose the one that "
    "fits best:\n{routes}"
)
REQUEST = "Who should work on my goal? Give the name as it is written above."


class Router(Enum):
    """The states of :func:`router`."""

    CHOICE = "choice"
    ROUTE = "route"


@dataclass(frozen=True, slots=True)
class Route:
    """A net, with a description for the model that chooses."""

    net: NetLike
    description: str = ""


Routes: TypeAlias = Mapping[str, Route | NetLike]


class Chosen(Notes):
    """The route that was chosen."""

    name: str = ""


class RouteName(BaseModel, frozen=True):
    """The name of one route."""

    name: str = Field(description="the name of the one that fits best")


def router(
    llm: LLM | str,
    *,
    routes: Routes | None = None,
    choose: Choose | LLM | str | None = None,
    prompt: prompts.Prompt = CHOOSING,
) -> Net:
    """Choose one of several nets, which then works on the goal.

    The routing of "Building effective agents" (Anthropic 2024). The chosen net runs on the memory
    itself. Model calls: 1 to choose (none with a function), and those of the net.

    Args:
        llm: The model that chooses.
        routes: Nets by name, each a net or a :class:`Route` with a description. Default:
            :func:`react` for short tasks, :func:`plan_execute` for longer ones.
        choose: Another model that chooses; or a function of the memory, sync or async, that returns
            the name of a route.
        prompt: System prompt; ``{routes}`` are names and descriptions.

    Raises:
        StateDefinitionError: There are no routes; while running: a function chose none of them.
    """
    llm = as_llm(llm)
    given: Routes = default_routes(llm) if routes is None else routes
    known = {
        name: route if isinstance(route, Route) else Route(route) for name, route in given.items()
    }
    if not known:
        raise StateDefinitionError("A router needs at least one route")
    return Net(
        {
            Router.CHOICE: ChoiceState(
                chooser=llm if choose is None else llm_or(choose),
                routes={name: route.description for name, route in known.items()},
                on_done=Router.ROUTE,
                prompt=prompts.checked(prompt),
            ),
            Router.ROUTE: RouteState({name: as_net(route.net) for name, route in known.items()}),
        },
        name="router",
    )


def default_routes(llm: LLM | str) -> Mapping[str, Route]:
    """Return the routes that :func:`router` has by default."""
    return {
        "react": Route(react(llm), "questions, and tasks that take a few tool calls"),
        "plan_execute": Route(plan_execute(llm), "tasks of many steps that need a plan"),
    }


@dataclass(eq=False, repr=False, kw_only=True)
class ChoiceState(RoutedState):
    """Choose a route, by a model or by a function."""

    chooser: LLM | Choose
    routes: Mapping[str, str]  # their descriptions, by name
    on_done: Enum | None
    prompt: prompts.Prompt

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Choose, and stream the choice as a thought."""
        if isinstance(self.chooser, LLM):
            listed = "\n".join(f"- {name}: {what}" for name, what in self.routes.items())
            prompt = prompts.extended(self.prompt, routes=lambda memory: listed)
            messages = await build_messages(self.chooser, memory, prompt, REQUEST)
            question = StructuredRequest(self.chooser, messages, RouteName, check=self._unknown)
            yield question
            name = question.output.name
        else:
            name = await maybe_await(self.chooser(memory))
            problem = self._unknown(RouteName(name=name))
            if problem:
                raise StateDefinitionError(f"choose= returned {name!r}: {problem}")
        yield Thought(f"Route: {name}\n")
        Chosen(name=name).write(memory)

    def _unknown(self, chosen: RouteName) -> str | None:
        if chosen.name in self.routes:
            return None
        return f"there is no route of that name, but {', '.join(map(repr, self.routes))}"


@dataclass(eq=False, repr=False)
class RouteState(RoutedState):
    """Run the chosen net on the memory itself."""

    nets: Mapping[str, Net]

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The nets by name."""
        return self.nets

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the net; the ``path`` of its events includes the name of the route."""
        name = Chosen.read(memory).name
        yield Delegate([Branch(name, self.nets[name], memory)])
