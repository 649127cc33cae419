"""Tree of thoughts: search for the best path of thoughts."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from agent_brain.common.values import is_count
from agent_brain.memories.base import Memory
from agent_brain.nets.library.thought_tree import Bounds, Search, Tree, breadth_first, depth_first
from agent_brain.nets.library.tree_states import (
    JUDGING,
    PROPOSING,
    Assess,
    Propose,
    ProposeState,
    SearchState,
    written,
)
from agent_brain.nets.net import Net
from agent_brain.states import prompts
from agent_brain.states.answering import AnswerState
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm, choice_or_llm
from agent_brain.states.output_types import OutputType

ANSWER = (
    "Answer the user's goal now, directly and completely, by these thoughts. Where they do not "
    "reach the goal, say how far they go.\n\nGoal: {goal}\n\n{thoughts}"
)
VOTES = 3  # votes on one level

_SEARCHES: dict[str, Search] = {"bfs": breadth_first, "dfs": depth_first}


class TreeOfThoughts(Enum):
    """The states of :func:`tree_of_thoughts`."""

    PROPOSE = "propose"
    SEARCH = "search"
    ANSWER = "answer"


def tree_of_thoughts(
    llm: LLM | str,
    *,
    propose: LLM | Propose | str = "propose",
    evaluate: LLM | Assess | str = "value",
    strategy: Literal["bfs", "dfs"] = "bfs",
    thoughts: int = 3,
    breadth: int = 3,
    depth: int = 3,
    threshold: float = 0.0,
    max_calls: int = 100,
    output_type: OutputType | None = None,
    propose_prompt: prompts.Prompt = PROPOSING,
    evaluate_prompt: prompts.Prompt = JUDGING,
    answer_prompt: prompts.Prompt = ANSWER,
    fallback: bool = False,
) -> Net:
    """Tree of Thoughts (Yao et al. 2023, https://arxiv.org/abs/2305.10601).

    Proposes thoughts, judges the resulting paths, and continues with the best: level by level
    (``"bfs"``, the best ``breadth`` of a level), or depth first with backtracking (``"dfs"``, the
    best ``breadth`` continuations of a thought). The search ends with the first path that reaches
    the goal, or when no path is left.

    Model calls, breadth first: at most 1 + thoughts for the first level, breadth · (1 + thoughts)
    for each further one, and 1 to answer. ``"sample"`` takes ``thoughts`` calls instead of 1,
    ``"vote"`` takes 3 a level instead of one for each thought, functions take none.

    Args:
        llm: The model that does everything else.
        propose: ``"propose"``: one call proposes several thoughts; ``"sample"``: one call for each;
            another model; or a function of the memory and the thoughts so far, sync or async, that
            returns the thoughts that could come next.
        evaluate: ``"value"``: one call judges each path; ``"vote"``: calls compare all paths of a
            level; another model; or a function of the memory and the thoughts of a path, sync or
            async, that returns a score from 0 (impossible) to 1 (sure), or a
            :class:`~agent_brain.nets.library.thought_tree.Value`. A complete path with a score of 1
            is a solution.
        strategy: ``"bfs"`` or ``"dfs"``.
        thoughts: The number of thoughts that a model proposes at a time.
        breadth: The number of thoughts to follow.
        depth: The number of thoughts in a complete path.
        threshold: Paths must have a higher score to be followed.
        max_calls: The maximum number of proposals and judgements, by models or functions.
        output_type: The type of the answer, as in :func:`react`.
        propose_prompt: System prompt of the proposals.
        evaluate_prompt: System prompt of the judgements.
        answer_prompt: System prompt of the answer; ``{thoughts}`` is the best path.
        fallback: Whether to answer from the best path so far when a limit stops the run.

    Raises:
        StateDefinitionError: The strategy is unknown, a bound is less than 1, or votes are combined
            with a depth-first search.
    """
    llm = as_llm(llm)
    propose = choice_or_llm("propose", propose, ("propose", "sample"))
    evaluate = choice_or_llm("evaluate", evaluate, ("value", "vote"))
    if strategy not in _SEARCHES:
        raise StateDefinitionError(f"strategy={strategy!r}: use 'bfs' or 'dfs'")
    if strategy == "dfs" and evaluate == "vote":
        raise StateDefinitionError("A depth-first search needs values: votes compare a whole level")
    if not all(map(is_count, (thoughts, breadth, depth, max_calls))):
        raise StateDefinitionError("thoughts, breadth, depth and max_calls must be at least 1")
    bounds = Bounds(breadth=breadth, depth=depth, threshold=threshold, max_calls=max_calls)

    def best_path(memory: Memory) -> str:
        tree = Tree.read(memory)
        return written(tree.path(tree.best(threshold)))

    return Net(
        {
            TreeOfThoughts.PROPOSE: ProposeState(
                llm if isinstance(propose, str) else propose,
                on_done=TreeOfThoughts.SEARCH,
                count=thoughts,
                sample=propose == "sample",
                bounds=bounds,
                prompt=propose_prompt,
            ),
            TreeOfThoughts.SEARCH: SearchState(
                llm if isinstance(evaluate, str) else evaluate,
                search=_SEARCHES[strategy],
                on_more=TreeOfThoughts.PROPOSE,
                on_done=TreeOfThoughts.ANSWER,
                bounds=bounds,
                votes=VOTES if evaluate == "vote" else 0,
                prompt=evaluate_prompt,
            ),
            TreeOfThoughts.ANSWER: AnswerState(
                llm,
                ask=True,
                output_type=output_type,
                prompt=prompts.extended(answer_prompt, thoughts=best_path),
            ),
        },
        fallback=TreeOfThoughts.ANSWER if fallback else None,
        name="tree_of_thoughts",
    )
