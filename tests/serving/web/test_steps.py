"""The kept steps of a session over HTTP: lists, details, what a model saw, copies, differences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_brain import Brain, Limits, Net
from agent_brain.demo import DemoLLM, demo_tools
from agent_brain.memories import Message
from agent_brain.nets import ParallelState, react
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app
from agent_brain.states import FunctionState
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, tool
from tests.support.web_server import served

ADD = Action(name="add", args={"a": 2, "b": 3})


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def find_order(number: int) -> str:
    """Find an order."""
    raise LookupError(f"there is no order {number}")


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"Paid {amount}"


def scripted(*turns: Any) -> Brain:
    return Brain("react", tools=[add, find_order, pay], llm=ScriptedLLM(turns))


@contextmanager
def serve(
    brain: Brain, folder: Path | None, *, history: Any = 100, **options: Any
) -> Iterator[httpx.Client]:
    journal = None if folder is None else folder / "chats.db"
    kept = {} if journal is None else {"history": history}
    sessions = Sessions(brain, journal=journal, memory_options=kept)
    options.setdefault("user", "ann")
    with served(make_app(sessions, **options)) as url:
        headers = {"accept": "application/json"}
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            yield client


def ask(client: httpx.Client, task: str, session: str = "s") -> httpx.Response:
    return client.post(f"/sessions/{session}/runs", json={"task": task})


def steps(client: httpx.Client, session: str = "s", **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"/sessions/{session}/steps", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["steps"]
    return found


def details(client: httpx.Client, step: int | str, session: str = "s") -> dict[str, Any]:
    answer = client.get(f"/sessions/{session}/steps/{step}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def test_the_steps_of_a_run_tell_what_happened(tmp_path):
    with serve(scripted(ADD, "It is 5."), tmp_path) as client:
        ask(client, "What is 2 + 3?")
        found = steps(client)

    assert [(part["kind"], part["summary"]) for part in found] == [
        ("begin", "What is 2 + 3?"),
        ("step", "Calls add"),
        ("step", "add: 5"),
        ("step", "It is 5."),
        ("step", ""),
        ("end", ""),
    ]
    ran = [part["ran"] and part["ran"]["state"] for part in found]
    assert ran == [None, "REASONING", "ACTION", "REASONING", "ANSWER", "ANSWER"]
    assert found[2]["calls"][0]["state"] == "done"
    assert [part["spent"]["requests"] for part in found] == [0, 1, 0, 1, 0, 0]


def test_a_failed_run_says_where_and_why_also_after_a_restart(tmp_path):
    with serve(scripted(RuntimeError("no model")), tmp_path) as client:
        ask(client, "Hello")
        assert listed(client) == (True, True)
    with serve(scripted("Hi."), tmp_path) as client:
        assert listed(client) == (True, True)
        session = client.get("/sessions/s").json()
        assert (session["status"], session["resumable"]) == ("idle", True)
        assert (session["failed"], session["failure"]) == (True, "RuntimeError: no model")
        last = steps(client)[-1]
        assert (last["stop_reason"], last["failure"]) == ("failed", "RuntimeError: no model")
        assert last["ran"]["state"] == "REASONING"

        client.post("/sessions/s/resume", json={})
        assert listed(client) == (False, False)
    with serve(scripted(), tmp_path) as client:
        assert listed(client) == (False, False)


def listed(client):
    """Return whether the list says that the last run has failed, and that it can be resumed."""
    info = client.get("/sessions").json()["sessions"][0]
    return info["failed"], info["resumable"]


def test_a_run_that_waits_says_for_what(tmp_path):
    with serve(scripted(Action(name="pay", args={"amount": 5})), tmp_path) as client:
        ask(client, "Pay 5")
        last = steps(client)[-1]

    assert (last["kind"], last["waits_for"]) == ("wait", {"calls": ["pay"], "questions": []})


def test_a_step_has_its_messages_its_calls_and_what_it_changed(tmp_path):
    with serve(scripted(Action(name="find_order", args={"number": 41}), "No."), tmp_path) as client:
        ask(client, "Where is 41?")
        reasoning, action = (details(client, part["number"]) for part in steps(client)[1:3])

    assert reasoning["messages"][0]["tool_calls"][0]["name"] == "find_order"
    changed = {each["name"]: (each["before"], each["after"]) for each in reasoning["control"]}
    assert changed["state"] == ("REASONING", "ACTION")
    assert [call["name"] for call in reasoning["next_calls"]] == ["find_order"]
    (call,) = action["calls"]
    assert (call["args"], call["state"]) == ({"number": 41}, "failed")
    assert "there is no order 41" in call["result"]
    assert [each["role"] for each in action["latest"]] == ["user", "assistant", "tool"]


def test_without_recorded_calls_the_context_as_of_the_step_is_shown(tmp_path):
    with serve(scripted(ADD, "It is 5.", "Yes."), tmp_path) as client:
        ask(client, "What is 2 + 3?")
        ask(client, "Sure?")
        numbers = [part["number"] for part in steps(client)]
        seen = [client.get(f"/sessions/s/steps/{n}/model-calls").json() for n in numbers]

    assert seen[0] == {"model_calls": [], "context": None}  # a run begins
    assert [m["content"] for m in seen[1]["context"]] == ["What is 2 + 3?"]
    assert [m["content"] for m in seen[3]["context"]] == ["What is 2 + 3?", "", "5"]
    assert seen[7]["context"][-1]["content"] == "Sure?"


def test_the_way_of_the_run_up_to_a_step_is_drawn(tmp_path):
    with serve(scripted(ADD, "It is 5."), tmp_path) as client:
        ask(client, "What is 2 + 3?")
        numbers = [part["number"] for part in steps(client)]
        drawn = [client.get(f"/sessions/s/steps/{number}/net.svg") for number in numbers]

    assert {each.headers["content-type"] for each in drawn} == {"image/svg+xml"}
    assert [each.text.count('class="e w"') for each in drawn] == [0, 1, 2, 3, 4, 4]


def test_the_steps_of_a_net_inside_a_state_are_drawn_there(tmp_path):
    with serve(Brain("plan_execute", tools=demo_tools(), llm=DemoLLM()), tmp_path) as client:
        ask(client, "What is 17 * 23?")
        found = steps(client)
        drawn = client.get(f"/sessions/s/steps/{found[-1]['number']}/net.svg").text

    ran = [(*part["ran"]["path"], part["ran"]["state"]) for part in found if part["ran"]]
    assert ran[:4] == [
        ("PLANNING",),
        ("EXECUTION", "REASONING"),
        ("EXECUTION", "ACTION"),
        ("EXECUTION", "REASONING"),
    ]
    for name in ("PLANNING", "EXECUTION-REASONING", "EXECUTION-ACTION", "EXECUTION-ANSWER"):
        box = drawn.partition(f'id="state-{name}"')[2].partition("</g>")[0]
        assert 'class="v' in box, name


def test_branches_stand_under_the_step_that_ran_them(tmp_path):
    class Step(Enum):
        ALL = "all"

    branches = {name: react(ScriptedLLM([f"From {name}."])) for name in ("left", "right")}
    net = Net({Step.ALL: ParallelState(branches)})
    with serve(Brain(net), tmp_path) as client:
        ask(client, "Both?")
        found = steps(client)[1]

    names = {branch["name"]: branch["result"] for branch in found["branches"]}
    assert names.keys() == {"ALL/left", "ALL/right"}
    assert "From left." in names["ALL/left"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_steps_come_in_pages_from_the_end_and_from_a_step(tmp_path, count):
    with serve(scripted(*(["Yes."] * count)), tmp_path) as client:
        for number in range(count):
            ask(client, f"Question {number}")
        every = [part["number"] for part in steps(client, limit=200)]
        last = client.get("/sessions/s/steps", params={"limit": 2}).json()
        before = steps(client, limit=2, before=last["steps"][0]["number"])
        after = client.get("/sessions/s/steps", params={"limit": 2, "after": every[0]}).json()

    assert len(every) == 4 * count
    assert [part["number"] for part in last["steps"]] == every[-2:]
    assert last["more"] is True
    assert [part["number"] for part in before] == every[-4:-2]
    assert [part["number"] for part in after["steps"]] == every[1:3]
    assert after["more"] is True


def test_a_thousand_steps_are_read_a_page_at_a_time(tmp_path):
    class Step(Enum):
        COUNT = "count"

    async def count(memory: Any) -> None:
        memory.control.scratch["done"] = memory.control.scratch.get("done", 0) + 1
        await memory.update([Message.assistant(str(memory.control.scratch["done"]))])

    def choose(memory: Any) -> Step | None:
        return Step.COUNT if memory.control.scratch["done"] < 1000 else None

    state = FunctionState(count, choose=choose)
    brain = Brain(Net({Step.COUNT: state}), limits=Limits(max_steps=2000), stuck=None)
    with serve(brain, tmp_path, history="all") as client:
        ask(client, "Count")
        found: list[int] = []
        query: dict[str, Any] = {"limit": 200}
        while True:
            answer = client.get("/sessions/s/steps", params=query).json()
            found = [part["number"] for part in answer["steps"]] + found
            if not answer["more"]:
                break
            query["before"] = found[0]
        middle = details(client, found[500])

    assert len(found) == 1002
    assert found == sorted(set(found))
    assert middle["messages"][0]["content"] == "500"


def test_a_copy_goes_on_from_a_step_with_another_goal(tmp_path):
    brain = scripted(RuntimeError("no model"), "Tromsø.")
    with serve(brain, tmp_path) as client:
        ask(client, "The capital of the south?")
        before = client.get("/sessions/s").json()
        begin = details(client, steps(client)[0]["number"])
        edits = {begin["messages"][0]["id"]: "The capital of the north?"}
        made = client.post("/sessions/s/fork", json={"step": begin["number"], "messages": edits})
        copy = made.json()
        ended = client.post(f"/sessions/{copy['id']}/resume", json={}).json()

        assert made.status_code == 201
        assert made.headers["location"] == f"/sessions/{copy['id']}"
        assert copy["origin"] == {"session": "s", "step": begin["number"], "chat": None}
        assert copy["title"] == "The capital of the north?"
        assert ended["answer"] == "Tromsø."
        assert client.get("/sessions/s").json() == before
        listed = {each["id"]: each["origin"] for each in client.get("/sessions").json()["sessions"]}
        assert listed == {"s": None, copy["id"]: copy["origin"]}
        assert brain.net.states  # the net is shared


def test_a_message_is_answered_again_in_a_branch_of_the_chat(tmp_path):
    with serve(scripted("One.", "Other."), tmp_path) as client:
        ask(client, "Hi")
        goal = client.get("/sessions/s").json()["messages"][0]["id"]
        made = client.post("/sessions/s/branches", json={"message": goal, "text": "Hello"})
        assert made.status_code == 201, made.text
        branch = made.json()["id"]
        assert made.headers["location"] == f"/sessions/{branch}"
        assert client.post(f"/sessions/{branch}/resume").json()["answer"] == "Other."
        shown = client.get(f"/sessions/{branch}").json()
        assert [m["content"] for m in shown["messages"]] == ["Hello", "Other."]
        ways = {shown["messages"][0]["id"]: {"sessions": ["s", branch], "at": 1}}
        assert shown["chat"] == {"sessions": ["s", branch], "choices": ways}
        assert goal not in ways
        answer = shown["messages"][1]["id"]
        for text in ("Better.", None):
            wrong = {"message": answer, "text": text}
            refused = client.post(f"/sessions/{branch}/branches", json=wrong)
            assert error_of(refused) == (400, "invalid_request")
            assert "is from the assistant" in refused.json()["error"]["message"]
        lost = client.post("/sessions/s/branches", json={"message": "x"})
        assert (lost.status_code, lost.json()["error"]["type"]) == (404, "step_not_found")


def test_a_copy_has_the_steps_before_and_its_origin_after_a_restart(tmp_path):
    with serve(scripted(ADD, "It is 5."), tmp_path) as client:
        ask(client, "What is 2 + 3?")
        number = steps(client)[2]["number"]
        copy = client.post("/sessions/s/fork", json={"step": number}).json()["id"]
        assert [part["number"] for part in steps(client, copy)][:3] == [
            part["number"] for part in steps(client)
        ][:3]
    with serve(scripted("It is five."), tmp_path) as client:
        origin = client.get(f"/sessions/{copy}").json()["origin"]
        assert origin == {"session": "s", "step": number, "chat": None}
        assert client.post(f"/sessions/{copy}/resume", json={}).json()["answer"] == "It is five."


def test_the_result_of_a_tool_is_changed_in_a_copy(tmp_path):
    llm = ScriptedLLM([Action(name="find_order", args={"number": 41}), "No.", "Monday."])
    with serve(Brain("react", tools=[find_order], llm=llm), tmp_path) as client:
        ask(client, "Where is 41?")
        action = details(client, steps(client)[2]["number"])
        edits = {action["messages"][0]["id"]: "Arrives on Monday"}
        copy = client.post(
            "/sessions/s/fork", json={"step": action["number"], "messages": edits}
        ).json()["id"]
        client.post(f"/sessions/{copy}/resume", json={})
        result = client.get(f"/sessions/{copy}").json()["messages"][2]

    assert (result["content"], result["is_error"]) == ("Arrives on Monday", False)
    assert llm.calls[-1].messages[-1].content == "Arrives on Monday"


def test_the_arguments_of_a_call_that_runs_next_are_changed_in_a_copy(tmp_path):
    with serve(scripted(ADD, "It is 5.", "It is 30."), tmp_path) as client:
        ask(client, "What is 2 + 3?")
        asked = details(client, steps(client)[1]["number"])
        edits = {asked["next_calls"][0]["id"]: {"a": 10, "b": 20}}
        copy = client.post(
            "/sessions/s/fork", json={"step": asked["number"], "calls": edits}
        ).json()["id"]
        client.post(f"/sessions/{copy}/resume", json={})
        said = client.get(f"/sessions/{copy}").json()["messages"]

    assert said[1]["tool_calls"][0]["args"] == {"a": 10, "b": 20}
    assert said[2]["content"] == "30"


def test_a_call_that_waits_is_decided_in_the_copy(tmp_path):
    with serve(scripted(Action(name="pay", args={"amount": 5}), "Done."), tmp_path) as client:
        ask(client, "Pay 5")
        copy = client.post("/sessions/s/fork", json={"step": steps(client)[-1]["number"]}).json()
        assert copy["status"] == "waiting"
        ended = client.post(f"/sessions/{copy['id']}/resume", json={"approve": True}).json()
        assert ended["answer"] == "Done."
        assert client.get("/sessions/s").json()["status"] == "waiting"


def test_a_call_that_waits_in_a_branch_is_decided_in_the_copy_too(tmp_path):
    class Step(Enum):
        ALL = "all"

    def branch() -> Net:
        return react(ScriptedLLM([Action(name="pay", args={"amount": 5}), "Paid.", "Paid."]))

    net = Net({Step.ALL: ParallelState({"left": branch(), "right": react(ScriptedLLM(["No."]))})})
    with serve(Brain(net, tools=[pay]), tmp_path) as client:
        ask(client, "Pay")
        last = steps(client)[-1]
        assert last["waits_for"]["calls"] == ["pay"]
        begin = details(client, steps(client)[0]["number"])
        edits = {begin["messages"][0]["id"]: "Pay, please"}
        for body in ({}, {"messages": edits}):
            body = {"step": last["number"], **body}
            copy = client.post("/sessions/s/fork", json=body).json()["id"]
            ended = client.post(f"/sessions/{copy}/resume", json={"approve": True}).json()
            assert (ended["stop_reason"], "Paid." in ended["answer"]) == ("done", True)
        assert client.get("/sessions/s").json()["status"] == "waiting"


def test_the_arguments_of_a_call_that_waits_are_changed_in_a_copy(tmp_path):
    with serve(scripted(Action(name="pay", args={"amount": 5}), "Done."), tmp_path) as client:
        ask(client, "Pay 5")
        wait = details(client, steps(client)[-1]["number"])
        edits = {wait["next_calls"][0]["id"]: {"amount": 7}}
        body = {"step": wait["number"], "calls": edits}
        copy = client.post("/sessions/s/fork", json=body).json()["id"]
        assert client.get(f"/sessions/{copy}").json()["pending"]["calls"][0]["args"] == {
            "amount": 7
        }
        client.post(f"/sessions/{copy}/resume", json={"approve": True})
        assert client.get(f"/sessions/{copy}").json()["messages"][2]["content"] == "Paid 7"


@pytest.mark.parametrize(
    "body,expected",
    [
        ({"step": 1}, (404, "step_not_found")),
        ({"step": 999}, (404, "step_not_found")),
        ({"step": 3, "messages": {"nobody": "x"}}, (400, "invalid_request")),
        ({"step": 3, "calls": {"nobody": {}}}, (400, "invalid_request")),
        ({"step": 0}, (422, "invalid_request")),
        ({"step": "three"}, (422, "invalid_request")),
        ({}, (422, "invalid_request")),
        ({"step": 3, "other": 1}, (422, "invalid_request")),
    ],
)
def test_a_copy_that_cannot_be_made_is_refused_and_leaves_nothing(tmp_path, body, expected):
    with serve(scripted("Hi."), tmp_path) as client:
        ask(client, "Hello")
        assert error_of(client.post("/sessions/s/fork", json=body)) == expected
        assert len(client.get("/sessions").json()["sessions"]) == 1


def test_a_goal_cannot_become_empty(tmp_path):
    with serve(scripted("Hi."), tmp_path) as client:
        ask(client, "Hello")
        begin = details(client, steps(client)[0]["number"])
        edits = {begin["messages"][0]["id"]: " "}
        answer = client.post("/sessions/s/fork", json={"step": begin["number"], "messages": edits})

    assert error_of(answer) == (400, "invalid_request")


def test_two_sessions_are_compared(tmp_path):
    with serve(scripted("Hi.", "Bye.", "See you."), tmp_path) as client:
        ask(client, "Hello")
        end = steps(client)[-1]["number"]
        copy = client.post("/sessions/s/fork", json={"step": end}).json()["id"]
        same = client.get(f"/sessions/{copy}/compare", params={"with": "s"}).json()
        ask(client, "Bye")
        ask(client, "Bye", copy)
        parted = client.get(f"/sessions/{copy}/compare", params={"with": "s"}).json()
        earlier = client.get("/sessions/s/compare", params={"with": "s", "step": end}).json()

    assert (same["common"], same["state"]) == (2, [])
    assert parted["common"] == 3
    assert [[m["content"] for m in side["messages"]] for side in parted["sides"]] == [
        ["See you."],
        ["Bye."],
    ]
    assert [len(side["messages"]) for side in earlier["sides"]] == [0, 2]


@pytest.mark.parametrize(
    "path",
    ["steps", "steps/3", "steps/3/model-calls", "steps/3/net.svg", "compare?with=s"],
)
def test_without_a_journal_it_is_said_that_no_steps_are_kept(path):
    with serve(scripted("Hi."), None) as client:
        ask(client, "Hello")
        answer = client.get(f"/sessions/s/{path}")
        assert client.get("/info").json()["keeps_steps"] is False
        assert client.get("/sessions/s").json()["keeps_steps"] is False

    assert error_of(answer) == (409, "no_steps")
    assert "journal" in answer.json()["error"]["message"]


def test_a_copy_of_a_session_without_a_journal_is_refused():
    with serve(scripted("Hi."), None) as client:
        ask(client, "Hello")
        assert error_of(client.post("/sessions/s/fork", json={"step": 3})) == (409, "no_steps")


def test_users_reach_the_steps_of_their_own_sessions_only(tmp_path):
    tokens = {"a-token": "ann", "b-token": "bob"}
    with serve(scripted("Hi."), tmp_path, user=None, token=tokens) as client:
        ann, bob = ({"authorization": f"Bearer {token}"} for token in tokens)
        client.post("/sessions/s/runs", json={"task": "Ann's secret"}, headers=ann)
        number = client.get("/sessions/s/steps", headers=ann).json()["steps"][0]["number"]

        assert client.get("/sessions/s/steps").status_code == 401
        assert client.get("/sessions/s/steps", headers=bob).json()["steps"] == []
        for path in (f"steps/{number}", f"steps/{number}/model-calls", f"steps/{number}/net.svg"):
            answer = client.get(f"/sessions/s/{path}", headers=bob)
            assert error_of(answer) == (404, "step_not_found")
        copy = client.post("/sessions/s/fork", json={"step": number}, headers=bob)
        assert error_of(copy) == (404, "step_not_found")
        other = client.get("/sessions/mine/compare", params={"with": "s"}, headers=bob).json()
        assert [side["messages"] for side in other["sides"]] == [[], []]


def test_a_caller_without_a_name_copies_a_session_whose_id_it_knows(tmp_path):
    with serve(scripted("Hi."), tmp_path, user=None) as client:
        session = client.post("/sessions", json={}).json()["id"]
        ask(client, "Hello", session)
        number = steps(client, session)[0]["number"]
        copy = client.post(f"/sessions/{session}/fork", json={"step": number}).json()["id"]

        assert client.get(f"/sessions/{copy}").json()["messages"][0]["content"] == "Hello"
        assert error_of(client.get("/sessions/nobody/steps")) == (404, "session_not_found")


@pytest.mark.parametrize(
    "query,status",
    [
        ({"limit": 0}, 422),
        ({"limit": 201}, 422),
        ({"limit": "x"}, 422),
        ({"before": "9" * 30}, 422),
        ({"before": 3, "after": 3}, 422),
        ({"before": 1}, 200),
        ({"after": 9000}, 200),
    ],
)
def test_what_is_asked_of_a_list_is_checked(tmp_path, query, status):
    with serve(scripted("Hi."), tmp_path) as client:
        ask(client, "Hello")
        answer = client.get("/sessions/s/steps", params=query)

    assert answer.status_code == status
    if status == 200:
        assert answer.json()["steps"] == []


@pytest.mark.parametrize("step", ["2", "0", "-1", "x", "now", "9" * 40, "３"])
def test_a_step_that_is_not_there_is_not_found(tmp_path, step):
    with serve(scripted("Hi."), tmp_path) as client:
        ask(client, "Hello")
        assert error_of(client.get(f"/sessions/s/steps/{step}")) == (404, "step_not_found")


def test_the_description_of_the_api_has_the_requests(tmp_path):
    with serve(scripted(), tmp_path) as client:
        paths = client.get("/openapi.json").json()["paths"]

    listed = paths["/sessions/{session}/steps"]["get"]
    assert {each["name"] for each in listed["parameters"]} == {
        *("session", "before", "after", "limit")
    }
    forked = paths["/sessions/{session}/fork"]["post"]
    assert "201" in forked["responses"]
    assert forked["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "ForkSession"
    )
    for path in ("steps/{step}", "steps/{step}/net.svg", "steps/{step}/model-calls", "compare"):
        assert "get" in paths[f"/sessions/{{session}}/{path}"]
