"""The arguments of tool calls are looked at before the tools run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, MessagesMemory, tool
from agent_brain.errors import BrainDefinitionError
from agent_brain.hooks import ToolGuard
from agent_brain.states import ApprovalRequested
from agent_brain.testing import ScriptedLLM, ToolSpy
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


@tool
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


def brain_of(guard: ToolGuard, *args: dict[str, Any], **options: Any) -> tuple[Brain, ToolSpy]:
    spy = ToolSpy(pay)
    turns: list[Any] = [[Action(name="pay", args=each, id=f"c{n}") for n, each in enumerate(args)]]
    brain = Brain(
        "react", tools=[spy], llm=ScriptedLLM([*turns, "Done."]), hooks=[guard], **options
    )
    return brain, spy


async def later(args: dict[str, Any]) -> bool:
    return args["amount"] > 100


async def test_calls_are_denied_with_a_reason() -> None:
    def too_much(args: dict[str, Any]) -> str | None:
        return "At most 100 a day" if args["amount"] > 100 else None

    guard = ToolGuard(deny={"p*": too_much, "pay": r"(?i)\bmallory\b", "other": lambda args: True})
    brain, spy = brain_of(
        guard,
        {"to": "Ann", "amount": 500},
        {"to": "dear Mallory", "amount": 5},
        {"to": "Ann", "amount": 5},
        {"to": "Ann"},
    )
    results = [m.content for m in (await brain.run("Pay")).messages if m.role == "tool"]

    assert results[0] == "At most 100 a day"
    assert results[1] == r"No text in its arguments may match '(?i)\\bmallory\\b'"
    assert results[2] == "paid 5 to Ann"
    assert "amount" in results[3], "invalid arguments are the tool's business"
    assert [call.args for call in spy.calls] == [{"to": "Ann", "amount": 5}]


@pytest.mark.parametrize("rule", [lambda args: args["amount"] > 100, later, lambda args: 1 / 0])
@pytest.mark.parametrize("approved", [True, False])
async def test_a_person_is_asked(rule: Any, approved: bool) -> None:
    brain, spy = brain_of(ToolGuard(ask={"pay": rule}), {"to": "Ann", "amount": 500})
    result = await brain.run("Pay")
    assert result.stop_reason == "approval"
    assert not spy.calls

    result = await brain.resume(**({"approve": True} if approved else {"deny": {"c0": "too much"}}))
    assert result.answer == "Done."
    assert len(spy.calls) == approved


async def test_nobody_is_asked_for_other_calls() -> None:
    guard = ToolGuard(ask={"pay": later, "x*": lambda args: True})
    brain, spy = brain_of(guard, {"to": "Ann", "amount": 5})
    assert (await brain.run("Pay")).answer == "Done."
    assert len(spy.calls) == 1


async def test_a_call_is_refused_where_nobody_can_be_asked() -> None:
    guard = ToolGuard(ask={"pay": later})
    brain, spy = brain_of(guard, {"to": "Ann", "amount": 500})
    outer = Brain(
        "react",
        tools=[tool(name="ask")(lambda: brain.run("Pay"))],
        llm=ScriptedLLM(["It is done."]),
    )
    assert (await outer.run("x")).answer == "It is done."
    assert not spy.calls


async def test_arguments_are_changed_and_the_model_reads_it() -> None:
    def capped(args: dict[str, Any]) -> dict[str, Any] | None:
        return {**args, "amount": 100} if args["amount"] > 100 else None

    guard = ToolGuard(change={"pay": capped})
    brain, spy = brain_of(guard, {"to": "Ann", "amount": 500}, {"to": "Bob", "amount": 5})
    results = [m.content for m in (await brain.run("Pay")).messages if m.role == "tool"]

    said = '[The call was made with other arguments: {"to": "Ann", "amount": 100}]'
    assert results == [f"{said}\npaid 100 to Ann", "paid 5 to Bob"]
    assert [call.args["amount"] for call in spy.calls] == [100, 5]


async def test_what_would_run_is_denied() -> None:
    def cleaned(args: dict[str, Any]) -> dict[str, Any]:
        return {"to": args["to"].strip(), "amount": min(args["amount"], 100)}

    guard = ToolGuard(
        deny={"pay": lambda args: args["to"] == "Mallory" or args["amount"] > 100},
        ask={"pay": lambda args: args["to"] == "Carl"},
        change={"pay": cleaned},
    )
    brain, spy = brain_of(guard, {"to": " Mallory", "amount": 5}, {"to": "Bob", "amount": 500})
    results = [m.content for m in (await brain.run("Pay")).messages if m.role == "tool"]
    assert results[0] == "It may not have these arguments"
    assert [call.args for call in spy.calls] == [{"to": "Bob", "amount": 100}]

    brain, spy = brain_of(guard, {"to": "Carl", "amount": 5})
    assert (await brain.run("Pay")).stop_reason == "approval"
    result = await brain.resume(edit={"c0": {"to": "Mallory", "amount": 5}})
    assert "It may not have these arguments" in result.messages[-2].content
    assert not spy.calls


async def test_what_a_person_edits_is_not_said_to_be_changed_by_the_guard() -> None:
    guard = ToolGuard(ask={"pay": later}, change={"pay": lambda args: None})
    brain, _ = brain_of(guard, {"to": "Ann", "amount": 500})
    await brain.run("Pay")
    result = await brain.resume(edit={"c0": {"to": "Ann", "amount": 50}})
    (content,) = [m.content for m in result.messages if m.role == "tool"]
    assert content.endswith("]\npaid 50 to Ann")
    assert "other arguments" not in content


def doubled(args: dict[str, Any]) -> dict[str, Any]:
    return {**args, "amount": 2 * args["amount"]}


GUARDS: dict[str, Any] = {
    "one guard": lambda: ([ToolGuard(ask={"pay": later}, change={"pay": doubled})], pay),
    "two guards": lambda: (
        [ToolGuard(change={"pay": doubled}), ToolGuard(ask={"pay": later})],
        pay,
    ),
    "the tool asks": lambda: (
        [ToolGuard(change={"pay": doubled})],
        tool(requires_approval=lambda args: args["amount"] > 100)(pay.function),
    ),
}


DECISIONS: dict[str, Any] = {
    "approved": ({"approve": True}, 160),
    "edited": ({"edit": {"c0": {"to": "Ann", "amount": 7}}}, 7),
    "denied": ({"deny": {"c0": "no"}}, None),
}


@pytest.mark.parametrize("guards", GUARDS.values(), ids=GUARDS)
@pytest.mark.parametrize(("decision", "paid"), DECISIONS.values(), ids=DECISIONS)
async def test_a_person_is_asked_about_changed_arguments_and_these_run(
    guards: Any, decision: dict[str, Any], paid: int | None, tmp_path: Path
) -> None:
    def made(*turns: Any) -> tuple[Brain, ToolSpy]:  # as in another process
        hooks, asks = guards()
        spy = ToolSpy(asks)
        memory = MessagesMemory([spy], journal=tmp_path / "brain.db")
        return Brain("react", memory, llm=ScriptedLLM([*turns]), hooks=hooks, trace=True), spy

    calls = [
        Action(name="pay", args={"to": "Ann", "amount": n}, id=f"c{i}")
        for i, n in enumerate((80, 5))
    ]
    brain, spy = made(calls)
    async with brain:
        async with brain.stream("Pay") as run:
            (shown,) = [e.actions async for e in run if isinstance(e, ApprovalRequested)]
        for asked in (shown, run.result.approvals):
            assert [(a.id, a.args["amount"]) for a in asked] == [("c0", 160)]
        assert (await brain.replay()).equal
    brain, spy = made("Done.")
    async with brain:
        result = await brain.resume(**decision)
        first, second = [m.content for m in result.messages if m.role == "tool"]
        assert ("other arguments" in first) == (paid == 160)
        assert second.endswith("paid 10 to Ann"), "nobody was asked"
        assert [c.args["amount"] for c in spy.calls] == [n for n in (paid, 10) if n is not None]
        report = await brain.replay()
        assert report.equal, str(report)


async def test_a_rule_has_arguments_of_its_own() -> None:
    def meddles(args: dict[str, Any]) -> None:
        args["lines"].append("mine")
        args["to"] = "Mallory"

    @tool
    def send(to: str, lines: list[str]) -> str:
        """Send."""
        return f"{lines} to {to}"

    rules = {"send": meddles}
    call = Action(name="send", args={"to": "Ann", "lines": ["hello"]})
    guard = ToolGuard(deny=rules, ask=rules, change=rules)
    brain = Brain("react", tools=[send], llm=ScriptedLLM([call, "Done."]), hooks=[guard])
    assert (await brain.run("Send")).messages[2].content == "['hello'] to Ann"


async def test_names_in_arguments_are_searched_too() -> None:
    @tool
    def put(values: dict[str, dict[str, int]]) -> str:
        """Put."""
        return "done"

    call = Action(name="put", args={"values": {"a": {"sudo rm": 1}}})
    guard = ToolGuard(deny={"*": r"\bsudo\b"})
    brain = Brain("react", tools=[put], llm=ScriptedLLM([call, "Done."]), hooks=[guard])
    assert "may match" in (await brain.run("Put")).messages[2].content


@pytest.mark.parametrize("given", [5, ["to"], {"to": object()}], ids=["int", "list", "object"])
async def test_a_change_that_is_not_of_arguments_denies_the_call(given: Any) -> None:
    brain, spy = brain_of(
        ToolGuard(change={"pay": lambda args: given}, ask={"pay": later}),
        {"to": "A", "amount": 500},
        {"to": "A", "amount": 1},
    )
    await brain.run("Pay")
    result = await brain.resume(approve=True)
    denied = [m.content for m in result.messages if m.role == "tool"]
    assert all("A rule for such calls failed with " in content for content in denied)
    assert not spy.calls


async def test_arguments_may_all_be_taken_away() -> None:
    @tool
    def look(where: str = "here") -> str:
        """Look."""
        return where

    call = Action(name="look", args={"where": "there"})
    hooks = [ToolGuard(change={"look": lambda args: {}})]
    brain = Brain("react", tools=[look], llm=ScriptedLLM([call, "Done."]), hooks=hooks)
    assert (await brain.run("Look")).messages[2].content.endswith("]\nhere")


async def test_a_rule_that_fails_denies_the_call() -> None:
    brain, spy = brain_of(ToolGuard(deny={"pay": lambda args: args["x"]}), {"to": "A", "amount": 1})
    result = await brain.run("Pay")
    assert "A rule for such calls failed with KeyError('x')" in result.messages[-2].content
    assert not spy.calls


WRONG: dict[str, Any] = {
    "pattern": lambda: ToolGuard(deny={"x": "("}),
    "rule": lambda: ToolGuard(ask={"x": 3}),  # type: ignore[dict-item]
    "a list": lambda: ToolGuard(deny=["x"]),  # type: ignore[arg-type]
    "pattern that changes": lambda: ToolGuard(change={"x": "a"}),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_what_is_no_rule_is_refused(make: Any) -> None:
    with pytest.raises(BrainDefinitionError, match=r"^(deny|ask|change)=[\[{]'x'"):
        make()
