"""Tree of thoughts: it solves the Game of 24 without an exhaustive search, within its bounds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, MessagesMemory, Net, StopReason
from agent_brain.errors import LLMServerError, MalformedOutputError
from agent_brain.nets import Value, tree_of_thoughts
from agent_brain.nets.library.thought_tree import Bounds, Tree, TreeNode, breadth_first, depth_first
from agent_brain.nets.library.tree_of_thoughts import Thoughts
from agent_brain.nets.library.voting import Choice
from agent_brain.states import StateDefinitionError, TextDelta
from agent_brain.testing import ModelCall, ScriptedLLM
from tests.nets import game24
from tests.nets.models import FunctionLLM, last_user

pytestmark = pytest.mark.anyio

# Of the paper's test set (ranks 901 to 1000 of 4nums.com), and a hard one.
PUZZLES = ["4 9 10 13", "5 8 8 8", "1 6 6 6", "2 5 6 6", "4 4 7 10", "1 7 10 13", "3 3 8 8"]
HARD = ["1 6 6 6", "3 3 8 8"]  # the first way that looks good is a wrong one
FAR = Limits(max_steps=20_000)


class Puzzle:
    """A puzzle with its proposer and its evaluators, and what they were asked."""

    def __init__(self, numbers: str) -> None:
        self.numbers = numbers
        self.looked_at: list[tuple[str, ...]] = []

    def propose(self, memory: Memory, path: Sequence[str]) -> list[str]:
        return game24.propose(self.numbers, path)

    async def exact(self, memory: Memory, path: Sequence[str]) -> float:
        self.looked_at.append(tuple(path))
        await anyio.lowlevel.checkpoint()
        return float(game24.solvable(game24.left_after(self.numbers, path)))

    def short_sighted(self, memory: Memory, path: Sequence[str]) -> float:
        """Sees whether two numbers make 24, and of three only whether one of them is a factor."""
        self.looked_at.append(tuple(path))
        left = game24.left_after(self.numbers, path)
        if len(left) <= 2:
            return float(game24.solvable(left))
        return 0.6 if any(n and n.denominator == 1 and 24 % n == 0 for n in left) else 0.3

    async def solve(self, **options: Any) -> tuple[Tree, str]:
        llm = ScriptedLLM([lambda messages: messages[0].content])
        memory = MessagesMemory()
        net = tree_of_thoughts(llm, propose=self.propose, max_calls=50_000, **options)
        result = await Brain(net, memory, limits=FAR).run(f"Make 24 of {self.numbers}")
        assert result.stop_reason is StopReason.DONE
        return Tree.read(memory), result.answer


@pytest.mark.parametrize("numbers", PUZZLES)
@pytest.mark.parametrize(("strategy", "breadth"), [("bfs", 5), ("dfs", 40)])
async def test_it_solves_the_game_of_24_and_explores_less_than_everything(
    numbers: str, strategy: str, breadth: int
) -> None:
    puzzle = Puzzle(numbers)
    tree, answer = await puzzle.solve(evaluate=puzzle.exact, strategy=strategy, breadth=breadth)
    best = tree.best(0)
    assert best is not None
    assert tree.solved(best)
    way = tree.path(best)
    assert game24.is_solution(numbers, way)
    assert all(thought in answer for thought in way)
    assert len(puzzle.looked_at) == len(set(puzzle.looked_at)) == len(tree.nodes)
    assert len(tree.nodes) < game24.all_nodes(numbers) / 5


@pytest.mark.parametrize("numbers", PUZZLES)
async def test_depth_first_backtracks_from_a_dead_end(numbers: str) -> None:
    puzzle = Puzzle(numbers)
    tree, _ = await puzzle.solve(evaluate=puzzle.short_sighted, strategy="dfs", breadth=40)
    assert game24.is_solution(numbers, tree.path(tree.best(0)))
    beginnings = {path[0] for path in puzzle.looked_at if len(path) > 1}
    assert len(beginnings) > 1 or numbers not in HARD
    assert len(tree.nodes) < game24.all_nodes(numbers)


async def test_a_narrow_beam_follows_only_the_best_of_a_level() -> None:
    puzzle = Puzzle("4 9 10 13")
    tree, _ = await puzzle.solve(evaluate=puzzle.exact, breadth=1)
    parents = {node.parent for node in tree.nodes}
    assert len(parents) == 3


async def test_an_impossible_puzzle_ends_without_a_solution() -> None:
    puzzle = Puzzle("1 1 1 1")
    for strategy in ("bfs", "dfs"):
        tree, _ = await puzzle.solve(evaluate=puzzle.exact, strategy=strategy, breadth=3)
        assert not any(tree.solved(number) for number in range(len(tree.nodes)))


def think(call: ModelCall) -> Any:
    """Spell "abc" letter by letter: propose letters, value the ways, answer with the best."""
    asked = last_user(call.messages)
    if call.output_type is Thoughts:
        return Thoughts(thoughts=["a", "b", "c", "d"])
    so_far = "".join(line[-1] for line in asked.splitlines() if line[:1].isdigit())
    if call.output_type is Value:
        return Value(score=0.9 if "abc".startswith(so_far) else 0.1, solved=so_far == "abc")
    if call.output_type is Choice:
        options = asked.split("Number ")[1:]
        spelt = ["".join(x[-1] for x in o.splitlines()[1:] if x[:1].isdigit()) for o in options]
        fits = [n for n, text in enumerate(spelt, 1) if "abc".startswith(text)]
        return Choice(number=fits[0] if fits else 1)
    return call.messages[0].content[-25:]


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({}, 1 + 3 + 3 * (1 + 3) + 3 * (1 + 3) + 1),
        ({"breadth": 1}, 3 * (1 + 3) + 1),
        ({"breadth": 1, "evaluate": "vote"}, 3 * (1 + 3) + 1),
        ({"breadth": 1, "propose": "sample"}, 3 * (3 + 1) + 1),  # equal samples count once
        ({"breadth": 3, "strategy": "dfs"}, 3 * (1 + 3) + 1),
    ],
)
async def test_a_model_proposes_and_judges_at_the_documented_cost(
    options: dict[str, Any], calls: int
) -> None:
    llm = FunctionLLM(think)
    brain = Brain(tree_of_thoughts(llm, **options))
    result = await brain.run("Spell abc")
    assert len(llm.calls) == result.usage.requests == calls
    tree = Tree.read(brain.memory)
    way = tree.path(tree.best(0))
    assert way == (["a", "a", "a"] if "sample" in options.values() else ["a", "b", "c"])
    assert result.answer.endswith("\n".join(f"{n}. {t}" for n, t in enumerate(way, 1)))


async def test_a_solution_ends_the_search_before_its_full_depth() -> None:
    llm = FunctionLLM(think)
    await Brain(tree_of_thoughts(llm, depth=9, max_calls=1000)).run("Spell abc")
    assert len(llm.calls) == 1 + 3 + 2 * 3 * (1 + 3) + 1


@pytest.mark.parametrize(
    "options", [{}, {"strategy": "dfs"}, {"propose": "sample"}, {"evaluate": "vote"}]
)
@pytest.mark.parametrize("most", [1, 2, 3, 5, 7, 11])
async def test_max_calls_ends_the_search_with_the_best_path(
    options: dict[str, Any], most: int
) -> None:
    llm = FunctionLLM(think)
    brain = Brain(tree_of_thoughts(llm, max_calls=most, **options))
    assert (await brain.run("Spell abc")).stop_reason is StopReason.DONE
    assert len(llm.calls) <= most + 1


async def test_only_the_answer_streams_as_text() -> None:
    said: dict[bool, str] = {True: "", False: ""}
    async with Brain(tree_of_thoughts(FunctionLLM(think), breadth=1)).stream("Spell abc") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                said[event.thought] += event.text
    assert said[False] == run.result.answer
    assert "0.9: a\n" in said[True]


async def test_it_resumes_at_the_state_where_it_failed() -> None:
    asked = itertools.count()

    def shaky(call: ModelCall) -> Any:
        return LLMServerError("down") if next(asked) in (2, 9) else think(call)

    brain = Brain(tree_of_thoughts(FunctionLLM(shaky), breadth=1))
    for _ in range(2):
        with pytest.raises(LLMServerError):
            await (brain.resume() if brain.memory.control.run_id else brain.run("Spell abc"))
    result = await brain.resume()
    assert result.answer.endswith("1. a\n2. b\n3. c")
    assert len(Tree.read(brain.memory).nodes) == 9


@pytest.mark.parametrize(("fallback", "answer"), [(False, ""), (True, "1. a")])
async def test_a_limit_keeps_the_tree(fallback: bool, answer: str) -> None:
    net = tree_of_thoughts(FunctionLLM(think), fallback=fallback)
    brain = Brain(net, limits=Limits(max_steps=2))
    result = await brain.run("Spell abc")
    assert (result.stop_reason, result.usage.requests) == (StopReason.MAX_STEPS, 4 + fallback)
    assert result.answer.endswith(answer)
    assert len(Tree.read(brain.memory).nodes) == 3


async def test_what_judging_cost_is_counted_even_if_one_judgement_fails() -> None:
    def reply(call: ModelCall) -> Any:
        bad = call.output_type is Value and last_user(call.messages).endswith("1. c")
        return [LLMServerError("down")] if bad else think(call)

    brain = Brain(tree_of_thoughts(FunctionLLM(reply), breadth=1))
    with pytest.raises(LLMServerError):
        await brain.run("Spell abc")
    assert brain.memory.control.spent.requests >= 1


async def test_malformed_thoughts_are_corrected_once() -> None:
    llm = ScriptedLLM(["hm", "hm"])
    with pytest.raises(MalformedOutputError, match="does not fit Thoughts"):
        await Brain(tree_of_thoughts(llm)).run("go")
    llm.assert_complete()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"strategy": "astar"}, "'bfs' or 'dfs'"),
        ({"strategy": "dfs", "evaluate": "vote"}, "needs values"),
        ({"breadth": 0}, "at least 1"),
        ({"max_calls": 0}, "at least 1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(StateDefinitionError, match=match):
        tree_of_thoughts(ScriptedLLM(), **options)


def tree_of(*scores: float, solved: Sequence[int] = ()) -> Tree:
    values = [Value(score=score, solved=n in solved) for n, score in enumerate(scores)]
    nodes = [TreeNode(thought=str(n), parent=None, depth=1, value=v) for n, v in enumerate(values)]
    return Tree(nodes=nodes, fresh=list(range(len(nodes))))


BOUNDS = Bounds(breadth=4, depth=2, threshold=0.2, max_calls=10)


async def test_breadth_first_keeps_the_best_above_the_threshold() -> None:
    tree = tree_of(0.1, 0.5, 0.9, 0.7)
    breadth_first(tree, BOUNDS)
    assert tree.frontier == [2, 3, 1]


async def test_depth_first_takes_the_best_and_keeps_the_next_for_later() -> None:
    tree = tree_of(0.1, 0.5, 0.9, 0.7)
    depth_first(tree, BOUNDS)
    assert (tree.frontier, tree.waiting) == ([2], [1, 3])


@pytest.mark.parametrize("search", [breadth_first, depth_first])
async def test_a_solution_ends_either_search(search: Any) -> None:
    tree = tree_of(0.9, 0.3, solved=[1])
    search(tree, BOUNDS)
    assert (tree.frontier, tree.best(0.2)) == ([], 1)


async def test_one_net_serves_concurrent_runs() -> None:
    net: Net = tree_of_thoughts(FunctionLLM(think), breadth=1)
    answers: list[str] = []

    async def one() -> None:
        answers.append((await Brain(net, MessagesMemory()).run("Spell abc")).answer)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    assert len(set(answers)) == 1
    assert answers[0].endswith("1. a\n2. b\n3. c")
