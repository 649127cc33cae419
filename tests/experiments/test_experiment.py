"""Experiments: what they are given, what they run, and how cases end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_brain import LLM, Brain, Limits, LiteLLM, Memory, Message, Net, StuckPolicy
from agent_brain.errors import ExperimentError, LLMServerError
from agent_brain.experiments import (
    CaseResult,
    Cell,
    Experiment,
    Judge,
    Outcome,
    Progress,
    RuleBasedLLM,
    Task,
    Turn,
    Verdict,
    load_report,
)
from agent_brain.memories import (
    LayeredMemory,
    MessagesMemory,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    list_sessions,
)
from agent_brain.nets import react
from agent_brain.states import Finish, Usage, model_summarizer
from agent_brain.testing import FakeMemory, ScriptedLLM
from agent_brain.tools import Action, tool

pytestmark = pytest.mark.anyio


class Says(LLM):
    """A model that says what a function of the messages returns."""

    def __init__(self, say: Callable[[Sequence[Message]], Any], model: str = "says") -> None:
        self.say = say
        self.model = model

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[Any]:
        said = self.say(messages)
        for piece in said if isinstance(said, list) else [said]:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
        yield Finish("tool_calls" if isinstance(said, list) else "stop")
        yield Usage(100, 10, cost=0.01, model=self.model)


def echo(messages: Sequence[Message]) -> str:
    return messages[-1].content


def task(number: int = 1, **options: Any) -> Task:
    given: dict[str, Any] = {"id": f"t{number}", "turns": f"Say {number}", "expected": str(number)}
    return Task(**given | options)


def experiment(**options: Any) -> Experiment:
    given: dict[str, Any] = {"nets": "react", "models": Says(echo), "tasks": [task()]}
    given["trace"] = False
    return Experiment(**{**given, **options})


async def only_case(folder: Path, **options: Any) -> CaseResult:
    report = await experiment(**options).run(folder)
    (case,) = report.cases
    return case


def lines(folder: Path) -> list[str]:
    return (folder / "cases.jsonl").read_text().splitlines()


# What is given


def both(number: int) -> int:
    """Return a number."""
    return number


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nets": []}, "nets= is empty"),
        ({"nets": "reakt"}, "Did you mean 'react'"),
        ({"nets": ("react", {"rounds": 3})}, "no option 'rounds'"),
        ({"nets": 3}, "nets=3"),
        ({"nets": "nowhere.toml"}, "no file"),
        ({"nets": "nowhere_at_all:net"}, "cannot be imported"),
        ({"nets": {"a/b": "react"}}, "name 'a/b'"),
        ({"nets": {"a\x1b[31m": "react"}}, "control character"),
        ({"nets": ["react", "react"]}, "two of the name 'react'"),
        ({"memories": "vectro"}, "Did you mean 'vector'"),
        ({"memories": MessagesMemory()}, "each case has one of its own"),
        ({"memories": ("windowed", {"max_messages": 0})}, "max_messages"),
        ({"memories": ("windowed", {"journal": "x.db"})}, "leave journal to the experiment"),
        ({"memories": ("todo", {"inner": MessagesMemory()})}, "all cases would share"),
        ({"models": 3}, "not a model"),
        ({"models": {}}, "models= is empty"),
        ({"tasks": []}, "tasks= is empty"),
        ({"tasks": "basics"}, "give a list of tasks"),
        ({"tasks": [task(), task()]}, "two of the ID 't1'"),
        ({"tasks": [1]}, "not a Task"),
        ({"tools": "add"}, "tools='add'"),
        ({"tools": [1]}, "tools="),
        ({"repeat": 0}, "repeat=0"),
        ({"at_once": 0}, "at_once=0"),
        ({"model_at_once": {"gpt": 1}}, "not a model of the experiment"),
        ({"model_at_once": 0}, "model_at_once=0"),
        ({"limits": 3}, "limits=3"),
        ({"stuck": 3}, "stuck=3"),
        ({"max_cost": 0}, "max_cost=0"),
        ({"case_seconds": -1}, "case_seconds=-1"),
        ({"seed": "a"}, "seed='a'"),
        ({"name": ""}, "name=''"),
        ({"trace": "yes"}, "trace='yes'"),
        ({"name": "\ud800"}, "a name"),
        ({"nets": {"\ud800": "react"}}, "nets= has the name"),
        ({"net_options": 3}, "net_options=3: a dict"),
        ({"nets": ("reflexion", {"attempts": "x"})}, "nets: attempts='x': it must be"),
        (
            {"models": "gpt5-mini"},
            "models: 'gpt5-mini' has no provider.* Did you mean 'gpt-5-mini'",
        ),
        ({"models": "opanai/gpt-5"}, "there is no provider 'opanai'. Did you mean 'openai'"),
        ({"nets": ("react", {"answer_llm": "gpt5-mini"})}, "nets: 'gpt5-mini' has no provider"),
        ({"nets": lambda: None}, r"nets: <lambda>\(\) cannot be called: too many"),
        ({"memories": lambda: None}, r"memories: <lambda>\(\) cannot be called: too many"),
        ({"memories": lambda tools, size: None}, "missing a required argument: 'size'"),
        ({"memories": dict}, "a function of your own"),
        ({"models": ("demo", {})}, r"models=\('demo', {}\) is not a model"),
        ({"models": {"a": ""}}, r"models\['a'\]='' is not a model"),
        ({"models": ["rule-based", "rule-based"]}, "two of the name 'rule-based'"),
        ({"tasks": [task(tools=[3])]}, "Task 't1': tools=: 3 is not a tool"),
        ({"tools": [both], "tasks": [task(tools=[both])]}, "Two tools are named 'both'"),
        ({"base": 3}, "base=3: 3 is not a cell: give a text"),
        ({"base": "reflexion"}, "no cell is 'reflexion'"),
        ({"memories": ["messages", "windowed"], "base": "react"}, "several cells are 'react'"),
        ({"nets": react(Says(echo)), "models": ["demo", Says(echo)]}, "has its model already"),
        ({"nets": react(Says(echo)), "models": "demo"}, "has the model says"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        experiment(**options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "\ud800"),
        ("turns", None),
        ("turns", [3]),
        ("tools", 3),
        ("tags", None),
        ("tags", [1]),
        ("messages", "Hello"),
        ("messages", iter([Message.user("Hello")])),
        ("prepare", 3),
        ("limits", {}),
        ("max_cost", -1),
        ("source", None),
        ("expected", object()),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ExperimentError, match=name):
        task(**{name: value})


@pytest.mark.parametrize("options", [{"session": ""}, {"session": 1}, {"restart": "no"}])
def test_a_turn_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError, match=next(iter(options))):
        Turn(text="Hello", **options)


async def test_each_case_has_all_tools_of_a_generator(tmp_path: Path) -> None:
    tasks = [task(tools=(tool for tool in [pay]))]
    seen: list[int] = []

    class Counts(Says):
        async def stream(self, messages: Sequence[Message], **more: Any) -> AsyncIterator[Any]:
            seen.append(len(more["tools"]))
            yield "1"

    await experiment(tasks=tasks, models=Counts(echo), repeat=3).run(tmp_path)

    assert seen == [1, 1, 1]


def test_everything_that_is_wrong_is_told() -> None:
    with pytest.raises(ExperimentError) as raised:
        Experiment(
            nets=["raect", "react", "reflexoin"],
            memories="vectro",
            models=["gpt5-mini", "opanai/a"],
            tasks=[],
            repeat=0,
            seed=True,
        )

    said = [re.sub("[:=].*", "", line) for line in str(raised.value).splitlines()]
    assert said == ["nets", "nets", "memories", "models", "models", "tasks", "repeat", "seed"]


@pytest.mark.parametrize("folder", [3, None, "", b"results", "a\0b"])
def test_what_is_no_folder_is_refused(folder: Any, tmp_path: Path) -> None:
    told = re.escape(f"folder={folder!r}: give the path of a folder")
    with pytest.raises(ExperimentError, match=told):
        experiment().run_sync(folder)
    with pytest.raises(ExperimentError, match=told):
        load_report(folder)
    if folder is not None:  # a plan needs none
        with pytest.raises(ExperimentError, match=told):
            experiment().plan(folder)


def test_a_model_is_called_as_it_was_named() -> None:
    assert experiment(models="rule-based").cells == [Cell("react", "messages", "rule-based")]


async def test_what_cannot_tell_the_progress_is_refused(tmp_path: Path) -> None:
    wrong: Any = 3
    with pytest.raises(ExperimentError, match="on_progress=3"):
        await experiment().run(tmp_path, on_progress=wrong)


def test_a_task_may_be_chosen_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    compared = experiment(tasks=[task(id="a[1]"), task()])

    assert len(compared.plan(only_tasks="a[1]").cases) == 1


def test_cells_are_all_combinations_by_name() -> None:
    made = experiment(
        nets={"plain": "react", "mine": lambda llm: react(llm), "more": ("react", {})},
        memories=["messages", ("windowed", {"max_messages": 4})],
        models={"one": Says(echo), "two": Says(echo)},
        base="mine/windowed/two",
    )

    assert len(made.cells) == 12
    assert made.base == Cell("mine", "windowed", "two")


def test_nets_are_found_in_files_and_modules(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('net = "react"\n')
    (tmp_path / "nets_of_mine.py").write_text("from agent_brain.nets import react\n")
    made = experiment(nets=[tmp_path / "mine.toml", f"{tmp_path}/nets_of_mine.py:react"])

    assert [cell.net for cell in made.cells] == ["mine", "react"]


async def test_a_net_brings_its_own_model(tmp_path: Path) -> None:
    case = await only_case(tmp_path, nets=react(Says(echo, "own")), models=None)

    assert (case.model, case.outcome) == ("own", Outcome.PASSED)


async def test_the_default_is_the_demo_model(tmp_path: Path) -> None:
    report = await Experiment(
        nets="react", tasks=Task(id="t", turns="What is 17 * 23?", expected=391)
    ).run(tmp_path)

    assert report.info.rule_based == ("demo",)
    assert report.cases[0].passed


# IDs and the plan


def test_ids_are_the_same_for_the_same_cases() -> None:
    def made() -> Experiment:
        return experiment(nets=["react", "refact"], tasks=[task(1), task(2)], repeat=2)

    ids = {case.id for case in made().plan().cases}

    assert len(ids) == 8
    assert ids == {case.id for case in made().plan().cases}


@pytest.mark.parametrize(
    "options",
    [
        {"nets": ("react", {"prompt": "Be brief."})},
        {"memories": ("messages", {"ttl": 60})},
        {"models": Says(echo, "other")},
        {"models": Says(lambda messages: "other")},
        {"tasks": [task(expected="2")]},
        {"tasks": [task(turns="Say it")]},
        {"tasks": [task(messages=[Message.user("Hi")])]},
        {"tasks": [task(tools=[echo])]},
        {"tasks": [task(limits=Limits(max_steps=3))]},
        {"limits": Limits(max_steps=3)},
        {"stuck": StuckPolicy(threshold=3)},
        {"tools": [echo]},
        {"case_max_cost": 1.0},
    ],
)
def test_other_cases_have_other_ids(options: dict[str, Any]) -> None:
    (plain,) = experiment().plan().cases
    (other,) = experiment(**options).plan().cases

    assert plain.id != other.id


def test_what_does_not_change_a_case_does_not_change_its_id() -> None:
    (plain,) = experiment().plan().cases
    (other,) = experiment(at_once=1, max_cost=3, name="other", trace=True, seed=3).plan().cases

    assert plain.id == other.id


async def test_ids_do_not_change_by_running(tmp_path: Path) -> None:
    llm = ScriptedLLM(["1", "1"])
    before = experiment(models=llm).plan().cases[0].id
    await experiment(models=llm).run(tmp_path)

    assert experiment(models=llm).plan(tmp_path).done == 1
    assert experiment(models=llm).plan().cases[0].id == before


def test_a_plan_bounds_the_cost() -> None:
    assert experiment(models=RuleBasedLLM()).plan().max_cost == 0
    unknown = experiment().plan()
    assert (unknown.max_cost, unknown.unpriced) == (None, ["says"])
    assert "no price of says" in str(unknown)


def test_a_plan_knows_the_price_of_rules() -> None:
    made = experiment(models=RuleBasedLLM(price=(1.0, 2.0)), limits=Limits(max_tokens=1000))

    assert made.plan().max_cost == pytest.approx(0.002)
    assert experiment(models=RuleBasedLLM(price=(1.0, 2.0))).plan().max_cost is None
    assert experiment(models=RuleBasedLLM()).plan().max_cost == 0


def test_a_plan_knows_prices() -> None:

    llm = LiteLLM("openai/gpt-x", input_cost_per_token=1e-6, output_cost_per_token=2e-6)
    tasks = [task(1, turns=["Say 1", "Say 2"]), task(2, max_cost=0.01)]

    def most(**options: Any) -> float | None:
        return experiment(models=llm, tasks=tasks, **options).plan().max_cost

    assert most() is None
    assert most(case_max_cost=0.5) == pytest.approx(0.51)
    assert most(limits=Limits(max_tokens=1000)) == pytest.approx(0.004 + 0.002)
    assert most(limits=Limits(max_tokens=1000), max_cost=0.001, at_once=1) == pytest.approx(0.005)


# How cases end


@tool
def fail() -> str:
    """Fail."""
    raise AssertionError("broken")


@tool(requires_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


async def broken_prepare(memory: Memory) -> None:
    raise ValueError("no data")


def broken_check(reply: Any) -> bool:
    raise KeyError("x")


def call(name: str) -> Callable[[Sequence[Message]], Any]:
    return lambda messages: [Action(name=name, args={})]


@pytest.mark.parametrize(
    ("options", "outcome", "reason"),
    [
        ({}, Outcome.PASSED, "The answer contains '1'"),
        ({"tasks": [task(expected="2")]}, Outcome.WRONG, "The answer does not contain '2'"),
        (
            {"models": Says(lambda m: [LLMServerError("down")])},
            Outcome.CRASHED,
            "LLMServerError: down",
        ),
        ({"models": Says(lambda m: [SystemExit(3)])}, Outcome.CRASHED, "SystemExit: 3"),
        ({"tasks": [task(prepare=broken_prepare)]}, Outcome.CRASHED, "ValueError: no data"),
        (
            {"tasks": [task(expected=broken_check)]},
            Outcome.CRASHED,
            "The check (broken_check()) raised KeyError: 'x'",
        ),
        (
            {"tasks": [task(expected=lambda reply: Verdict(True, 2.0))]},
            Outcome.CRASHED,
            "raised ExperimentError: Verdict(score=2.0): a number from 0 to 1",
        ),
        (
            {"tasks": [task(expected=lambda reply: Verdict(True, 1.0, None))]},  # type: ignore[arg-type]
            Outcome.CRASHED,
            "raised ExperimentError: Verdict(reason=None): a text",
        ),
        (
            {"tasks": [task(tools=lambda: [fail, fail.function])]},
            Outcome.CRASHED,
            "ToolDefinitionError",
        ),
        ({"memories": lambda tools: 3}, Outcome.CRASHED, "not a memory"),
        (
            {"models": Says(call("pay")), "tools": [pay], "limits": Limits(max_steps=4)},
            Outcome.WAITING,
            "The run waits for approval",
        ),
        (
            {"models": Says(call("fail")), "tools": [fail], "limits": Limits(max_steps=4)},
            Outcome.LIMIT,
            "The limit of steps was reached",
        ),
        (
            {"models": Says(call("fail")), "tools": [fail]},
            Outcome.STUCK,
            "The run repeated itself",
        ),
        (
            {"models": Says(call("fail")), "tools": [fail], "case_max_cost": 0.02},
            Outcome.LIMIT,
            "The budget was used up",
        ),
        (
            {"models": Says(call("fail")), "tasks": [task(tools=[fail], max_cost=0.02)]},
            Outcome.LIMIT,
            "The budget was used up",
        ),
    ],
)
async def test_how_a_case_ends(
    tmp_path: Path, options: dict[str, Any], outcome: Outcome, reason: str
) -> None:
    case = await only_case(tmp_path, **options)

    assert (case.outcome, case.score) == (outcome, float(outcome is Outcome.PASSED))
    assert reason in case.reason
    assert (case.error is not None) == (outcome is Outcome.CRASHED)


async def test_a_case_may_take_its_time_only(tmp_path: Path) -> None:
    import anyio

    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return ""

    case = await only_case(
        tmp_path, models=Says(call("wait")), tools=[wait], case_seconds=0.05, case_max_cost=1
    )

    assert (case.outcome, case.stop_reason) == (Outcome.LIMIT, None)
    assert "longer than 0.05 s" in case.reason


async def test_the_cost_of_a_case_includes_what_its_memory_pays(tmp_path: Path) -> None:
    def summarising(tools: Any, **options: Any) -> Memory:
        summarize = model_summarizer(Says(lambda _: "They counted."))
        return SummaryMemory(tools, summarize=summarize, max_messages=2, **options)

    turns = [f"Say {n}" for n in range(4)]
    case = await only_case(
        tmp_path, memories={"summary": summarising}, tasks=[task(turns=turns, expected="3")]
    )
    assert case.model_calls > 4
    assert case.cost == pytest.approx(case.model_calls * 0.01)


async def test_what_was_used_is_counted(tmp_path: Path) -> None:
    def say(messages: Sequence[Message]) -> Any:
        if messages[-1].role == "user":
            return [Action(name="echo", args={"text": "1"})]
        return LLMServerError("down") if "2" in messages[-1].content else "It is 1"

    def repeat(text: str) -> str:
        """Return the text."""
        return text

    repeat.__name__ = "echo"
    case = await only_case(
        tmp_path, models=Says(say), tasks=[task(turns=["Say 1", "Say 1 again"], tools=[repeat])]
    )

    assert (case.outcome, case.turns, case.steps) == (Outcome.PASSED, 2, 8)
    assert (case.model_calls, case.tool_calls) == (4, 2)
    assert (case.input_tokens, case.output_tokens) == (400, 40)
    assert case.cost == pytest.approx(0.04)
    assert case.seconds > 0
    assert case.seconds_waiting == 0
    assert (case.answer, case.stop_reason) == ("It is 1", "done")


async def test_an_unknown_price_makes_the_cost_unknown(tmp_path: Path) -> None:
    case = await only_case(tmp_path, models=ScriptedLLM([["It is 1", Usage(3, 1)]]))

    assert (case.cost, case.input_tokens) == (None, 3)


async def test_a_case_ends_with_the_first_turn_that_does_not_pass(tmp_path: Path) -> None:
    turns = [Turn(text="a", expected="a"), Turn(text="b", expected="x"), "c"]
    case = await only_case(tmp_path, tasks=[task(turns=turns, expected=None)])

    assert (case.outcome, case.turns, case.answer) == (Outcome.WRONG, 2, "b")


async def test_the_score_is_the_lowest_of_the_checks(tmp_path: Path) -> None:
    def some(reply: Any) -> Verdict:
        return Verdict(True, 0.6, "mostly", judged=True, cost=0.5)

    turns = [Turn(text="1", expected=some), "1"]
    report = await experiment(tasks=[task(turns=turns)]).run(tmp_path)
    (case,) = report.cases

    assert (case.outcome, case.score, case.judged) == (Outcome.PASSED, 0.6, True)
    assert case.judge_cost == 0.5


# Memories and sessions


def all_said(messages: Sequence[Message]) -> str:
    return " ".join(message.content for message in messages if message.role == "user")


async def test_an_answer_may_have_half_a_surrogate_pair(tmp_path: Path) -> None:
    case = await only_case(tmp_path, models=Says(lambda m: "1 \ud83d"))

    assert (case.outcome, case.answer) == (Outcome.PASSED, "1 \ufffd")
    assert load_report(tmp_path).cases == [case]


async def test_prepare_may_be_a_plain_function(tmp_path: Path) -> None:
    seen: list[Memory] = []
    case = await only_case(tmp_path, tasks=[task(prepare=seen.append)])

    assert (case.outcome, len(seen)) == (Outcome.PASSED, 1)


async def test_no_result_holds_a_secret_of_an_error(tmp_path: Path) -> None:
    def prepare(memory: Memory) -> None:
        raise ValueError("refused: sk-proj-abcdefgh12345678")

    case = await only_case(tmp_path, tasks=[task(prepare=prepare)])

    assert (case.reason, case.error) == ("ValueError: refused: [hidden]",) * 2


async def test_a_judge_without_a_grade_costs_all_the_same(tmp_path: Path) -> None:
    case = await only_case(tmp_path, tasks=[task(expected=Judge(Says(echo), "Is it polite?"))])

    assert case.outcome is Outcome.CRASHED
    assert "MalformedOutputError" in case.reason
    assert case.judge_cost == pytest.approx(0.02)  # it was asked twice


@pytest.mark.parametrize("error", [asyncio.CancelledError(), pytest.fail.Exception("no")])
async def test_what_is_no_exception_ends_its_case_alone(
    tmp_path: Path, error: BaseException
) -> None:
    async def raises(_: Any) -> bool:
        raise error

    @tool
    async def broken() -> str:
        """Raise."""
        raise error

    tasks = [task(), task(2, expected=raises), task(3, prepare=raises), task(4)]
    report = await experiment(tasks=tasks).run(tmp_path)
    with_tool = {"models": Says(call("broken")), "tools": [broken], "limits": Limits(max_steps=4)}
    report_of_tool = await experiment(**with_tool).run(tmp_path / "tool")

    outcomes = [case.outcome for case in report.cases]
    assert outcomes == [Outcome.PASSED, Outcome.CRASHED, Outcome.CRASHED, Outcome.PASSED]
    assert report_of_tool.missing == 0


async def test_messages_and_prepare_come_before_the_first_turn(tmp_path: Path) -> None:
    async def prepare(memory: Memory) -> None:
        await memory.update([Message.user("second")])

    begun = task(messages=[Message.user("first")], prepare=prepare, expected="first second Say 1")
    case = await only_case(tmp_path, models=Says(all_said), tasks=[begun])

    assert case.passed, case.answer


@pytest.mark.parametrize("memory", ["messages", "windowed", "vector", "summary", "todo", "layered"])
@pytest.mark.parametrize("keep_sessions", [True, False])
async def test_a_memory_outlives_a_restart(
    tmp_path: Path, memory: str, keep_sessions: bool
) -> None:
    turns = ["My name is Ann", Turn(text="Who am I?", restart=True, expected="Ann")]
    case = await only_case(
        tmp_path,
        models=Says(all_said),
        memories=memory,
        tasks=[task(turns=turns, expected=None)],
        keep_sessions=keep_sessions,
        trace=True,
    )

    assert case.passed, case.reason
    assert case.sessions == (("1",) if keep_sessions else ())
    assert (tmp_path / "sessions.db").exists() == keep_sessions


async def test_sessions_are_apart_and_go_on(tmp_path: Path) -> None:
    turns = [
        Turn(text="My name is Ann"),
        Turn(text="Who am I?", session="2", expected=lambda r: "Ann" not in r.result.answer),
        Turn(text="And here?", expected="Ann"),
    ]
    case = await only_case(
        tmp_path, models=Says(all_said), tasks=[task(turns=turns, expected=None)]
    )

    assert case.passed, case.reason
    assert case.sessions == ("1", "2")
    async with SQLiteJournal(tmp_path / "sessions.db") as journal:
        kept = await list_sessions(journal, tenant=case.id)
    assert sorted(info.session for info in kept) == ["1", "2"]


async def test_a_memory_of_a_user_spans_sessions(tmp_path: Path) -> None:
    def user(tools: Any, *, session: str, journal: Any, tenant: str) -> Memory:
        long = VectorMemory(journal=journal, session="user", tenant=tenant, shared=True)
        short = WindowedMemory(tools, journal=journal, session=session, tenant=tenant)
        return LayeredMemory(short, long)

    turns = [
        Turn(text="My cat Miso likes fish"),
        Turn(text="What does my cat Miso like?", session="2", expected="fish"),
    ]

    def everything(messages: Sequence[Message]) -> str:
        return " ".join(message.content for message in messages)

    case = await only_case(
        tmp_path,
        models=Says(everything),
        memories={"user": user},
        tasks=[task(turns=turns, expected=None)],
    )

    assert case.passed, case.answer


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_shared_memory_outlives_a_restart(tmp_path: Path, wrapped: bool) -> None:
    def user(tools: Any, *, journal: Any, tenant: str) -> Memory:
        place = {"journal": journal, "session": "user", "tenant": tenant}
        memory = MessagesMemory(tools, **place, shared=True)
        return TodoMemory(memory) if wrapped else memory

    turns = [
        Turn(text="My cat Miso likes fish"),
        Turn(text="What does my cat Miso like?", session="2", expected="fish"),
        Turn(text="Really?", restart=True, session="2", expected="fish"),
    ]
    case = await only_case(
        tmp_path,
        models=Says(lambda messages: " ".join(message.content for message in messages)),
        memories={"user": user},
        tasks=[task(turns=turns, expected=None)],
    )

    assert case.passed, case.reason


async def test_cases_of_one_task_do_not_share_memory(tmp_path: Path) -> None:
    def alone(reply: Any) -> bool:
        return str(reply.result.answer).count("Say") == 1

    report = await experiment(
        models=Says(all_said), tasks=[task(expected=alone)], repeat=4, memories=["vector"]
    ).run(tmp_path)

    assert [case.outcome for case in report.cases] == [Outcome.PASSED] * 4


async def test_an_embedded_memory_keeps_vectors_in_the_folder(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]

    turns = ["My name is Ann", Turn(text="Who am I?", restart=True, expected="Ann")]
    case = await only_case(
        tmp_path,
        models=Says(all_said),
        memories=("vector", {"embedder": embed}),
        tasks=[task(turns=turns, expected=None)],
    )

    assert case.passed, case.reason
    assert (tmp_path / "vectors" / "chroma.sqlite3").exists()


async def test_a_memory_that_is_not_stored_fails_a_restart(tmp_path: Path) -> None:
    turns = ["Say 1", Turn(text="Say 1", restart=True)]
    made = experiment(
        memories={"mine": lambda tools: FakeMemory(tools=tools)},
        tasks=[task(1), task(2, turns=turns)],
    )
    cases = {case.task: case for case in (await made.run(tmp_path)).cases}

    assert cases["t1"].passed
    assert cases["t1"].sessions == ()
    assert cases["t2"].outcome is Outcome.WRONG
    assert "not stored" in cases["t2"].reason


async def test_tools_are_made_anew_for_each_case(tmp_path: Path) -> None:
    def make() -> list[Any]:
        calls: list[int] = []

        def count() -> str:
            """Count."""
            calls.append(1)
            return f"{len(calls)} calls"

        return [count]

    def say(messages: Sequence[Message]) -> Any:
        last = messages[-1]
        return [Action(name="count", args={})] if last.role == "user" else last.content

    report = await experiment(
        models=Says(say), tasks=[task(tools=make, expected="1 calls")], repeat=3
    ).run(tmp_path)

    assert all(case.passed for case in report.cases)


async def test_model_calls_are_traced(tmp_path: Path) -> None:
    case = await only_case(tmp_path, trace=True)
    async with SQLiteJournal(tmp_path / "sessions.db", readonly=True) as journal:
        memory = MessagesMemory(journal=journal, session="1", tenant=case.id, readonly=True)
        (record,) = await memory.model_calls()
        await memory.aclose()

    assert "Say 1" in record.messages[-1].content


async def test_output_types_are_given_to_nets_that_take_them(tmp_path: Path) -> None:
    def mine(llm: LLM, output_type: Any) -> Net:
        return react(llm, output_type=output_type)

    typed = task(expected={"a": 1}, output_type=dict[str, int])
    report = await experiment(
        nets={"react": "react", "mine": mine}, models=Says(lambda m: '{"a": 1}'), tasks=[typed]
    ).run(tmp_path)

    assert [case.outcome for case in report.cases] == [Outcome.PASSED] * 2


# Running


async def test_results_are_kept_and_not_run_again(tmp_path: Path) -> None:
    calls: list[str] = []

    def say(messages: Sequence[Message]) -> str:
        calls.append(messages[-1].content)
        return messages[-1].content

    made = experiment(models=Says(say), tasks=[task(1), task(2, expected="x")])
    first = await made.run(tmp_path)
    again = await made.run(tmp_path)

    assert len(calls) == 2
    assert again.cases == first.cases
    kept = [CaseResult.model_validate_json(line) for line in lines(tmp_path)]
    assert sorted(kept, key=lambda case: case.task) == first.cases


async def test_what_is_new_is_run(tmp_path: Path) -> None:
    await experiment(tasks=[task(1)]).run(tmp_path)
    report = await experiment(tasks=[task(1), task(2)], memories=["messages", "windowed"]).run(
        tmp_path
    )

    assert len(lines(tmp_path)) == 4
    assert report.missing == 0


async def test_results_of_other_cases_stay_out_of_the_report(tmp_path: Path) -> None:
    await experiment(limits=Limits(max_steps=7)).run(tmp_path)
    report = await experiment().run(tmp_path)

    assert len(lines(tmp_path)) == 2
    assert len(report.cases) == 1
    assert len(load_report(tmp_path).cases) == 1


async def test_only_some_cells_and_tasks_are_run(tmp_path: Path) -> None:
    made = experiment(
        nets=["react", "refact"], memories=["messages", "windowed"], tasks=[task(1), task(2)]
    )

    assert len((await made.run(tmp_path, only="react")).cases) == 4
    assert len((await made.run(tmp_path, only=["*/windowed"], only_tasks="t2")).cases) == 5
    report = await made.run(tmp_path)
    assert len(report.cases) == 8
    with pytest.raises(ExperimentError, match="fits no cell"):
        await made.run(tmp_path, only="reflexion")
    wrongs: list[dict[str, Any]] = [{"only": []}, {"only": 3}, {"only": [3]}, {"only_tasks": []}]
    for wrong in wrongs:
        with pytest.raises(ExperimentError, match="only"):
            await made.run(tmp_path, **wrong)
    with pytest.raises(ExperimentError, match="fits no task"):
        await made.run(tmp_path, only_tasks=["t3"])


def test_a_cell_may_be_chosen_by_its_name_in_the_report() -> None:
    planned = experiment(memories=["messages", "windowed"]).plan(only="windowed")

    assert [cell.memory for cell in planned.cells] == ["windowed"]
    assert {case.cell for case in planned.cases} == {*planned.cells}


async def test_fresh_runs_again(tmp_path: Path) -> None:
    made = experiment(nets=["react", "refact"], memories=["vector"])
    first = {case.net: case.started for case in (await made.run(tmp_path)).cases}
    some = {c.net: c.started for c in (await made.run(tmp_path, only="refact", fresh=True)).cases}
    report = await made.run(tmp_path, fresh=True)
    every = {c.net: c.started for c in report.cases}

    assert some["react"] == first["react"]
    assert some["refact"] > first["refact"]
    assert every["react"] > first["react"]
    assert report.info.started > max(some.values())
    assert len(lines(tmp_path)) == 2


async def test_progress_is_told(tmp_path: Path) -> None:
    told: list[Progress] = []
    made = experiment(nets=["react", "refact"], tasks=[task(1), task(2, expected="x")], at_once=1)
    await made.run(tmp_path, only="react")
    await made.run(tmp_path, on_progress=told.append)

    assert [p.cases_done for p in told] == [2, 3, 4]
    assert [p.cells_done for p in told] == [1, 1, 2]
    assert (told[-1].cases, told[-1].cells, told[-1].passed) == (4, 2, 2)
    assert told[0].last is None
    assert told[0].seconds_left is None
    assert told[-1].last is not None
    assert told[-1].seconds_left == 0


async def test_an_error_of_on_progress_is_raised(tmp_path: Path) -> None:
    async def broken(progress: Progress) -> None:
        if progress.last is not None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await experiment().run(tmp_path, on_progress=broken)
    assert len(lines(tmp_path)) == 1


async def test_no_case_begins_when_the_money_is_spent(tmp_path: Path) -> None:
    tasks = [task(number) for number in range(1, 9)]
    report = await experiment(tasks=tasks, max_cost=0.03, at_once=2).run(tmp_path)

    assert 3 <= len(report.cases) <= 4
    assert report.missing == 8 - len(report.cases)


async def test_no_case_begins_when_the_time_is_up(tmp_path: Path) -> None:
    tasks = [task(number) for number in range(1, 5)]
    report = await experiment(tasks=tasks, max_seconds=1e-9).run(tmp_path)

    assert (len(report.cases), report.missing) == (0, 4)


async def test_so_many_run_at_once(tmp_path: Path) -> None:
    import anyio

    running = {"one": 0, "two": 0}
    most = {"one": 0, "two": 0, "all": 0}

    class Slow(LLM):
        def __init__(self, model: str) -> None:
            self.model = model

        async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[Any]:
            running[self.model] += 1
            most[self.model] = max(most[self.model], running[self.model])
            most["all"] = max(most["all"], sum(running.values()))
            for _step in range(20):
                await anyio.lowlevel.checkpoint()
            running[self.model] -= 1
            yield messages[-1].content

    report = await experiment(
        models=[Slow("one"), Slow("two")],
        tasks=[task(number) for number in range(1, 9)],
        at_once=4,
        model_at_once={"one": 1},
        keep_sessions=False,
    ).run(tmp_path)

    assert all(case.passed for case in report.cases)
    assert most["one"] == 1
    assert 1 < most["all"] <= 4


async def test_the_order_is_shuffled_by_the_seed() -> None:
    tasks = [task(number) for number in range(1, 9)]
    orders = [
        [case.task.id for case in experiment(tasks=tasks, seed=seed).plan().cases]
        for seed in (0, 0, 1)
    ]

    assert orders[0] == orders[1] != orders[2]


def test_it_runs_without_an_event_loop(tmp_path: Path) -> None:
    assert experiment().run_sync(tmp_path).cases[0].passed


async def test_run_sync_refuses_a_running_loop(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="await"):
        experiment().run_sync(tmp_path)


async def test_a_brain_of_the_same_net_still_works(tmp_path: Path) -> None:
    net = react(Says(echo))
    await experiment(nets=net, models=None).run(tmp_path)

    assert (await Brain(net).run("still")).answer == "still"
