"""The built-in nets: their names, and the types of their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agent_brain.nets.composition import NetLike
    from agent_brain.nets.library.graph_operations import Operation
    from agent_brain.nets.library.router import Choose, Routes
    from agent_brain.nets.library.tree_of_thoughts import Assess, Propose
    from agent_brain.nets.library.voting import Judge
    from agent_brain.states.evaluation import Evaluate
    from agent_brain.states.models.llm import LLM
    from agent_brain.states.output_types import Check
    from agent_brain.states.prompts import Prompt
    from agent_brain.states.reasoning import Mode
    from agent_brain.tools.toolset import ToolLike

LIBRARY = (
    "debate graph_of_thoughts plan_execute react refact reflexion router self_consistency "
    "tree_of_thoughts"
)


class NetOptions(TypedDict, total=False):
    """The options of all built-in nets; their functions document them.

    A net refuses those that it does not take.
    """

    answer_llm: LLM | str | None
    answer_prompt: Prompt
    attempt: NetLike | None
    attempts: int
    breadth: int
    check: Check | None
    choose: Choose | LLM | str | None
    corrections: int
    depth: int
    evaluate: LLM | Evaluate | Assess | str | None
    evaluate_prompt: Prompt
    fallback: bool
    max_calls: int
    max_concurrency: int | None
    max_plans: int
    max_steps: int
    mode: Mode
    moderator: LLM | str | None
    moderator_prompt: Prompt
    normalise: Callable[[str], str]
    operations: Sequence[Operation | Mapping[str, Any]]
    output_type: Any
    path: NetLike | None
    paths: int
    persona_prompt: str
    personas: Mapping[str, str | NetLike] | None
    plan_llm: LLM | str | None
    plan_prompt: Prompt
    prompt: Prompt | None
    propose: LLM | Propose | str
    propose_prompt: Prompt
    reflect_llm: LLM | str | None
    reflect_prompt: Prompt
    rounds: int
    routes: Routes | None
    step: NetLike | None
    step_prompt: Prompt | None
    strategy: Literal["bfs", "dfs"]
    thoughts: int
    threshold: float
    tools: Iterable[ToolLike]
    vote: LLM | Judge | str
    vote_prompt: Prompt
