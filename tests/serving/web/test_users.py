"""What is known about the caller over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from agent_brain import Brain
from agent_brain.memories import RamJournal
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.memories.user.support import by_rules
from tests.support.web_server import served

TOKENS = {"secret-of-ann": "ann", "secret-of-bob": "bob"}


@contextmanager
def serve(journal: RamJournal, llm: Any = None, **options: Any) -> Iterator[httpx.Client]:
    sessions = Sessions(
        Brain(llm=llm or ScriptedLLM()),
        journal=journal,
        **({"user": {"extract": by_rules}} | options),
    )
    with (
        served(make_app(sessions, token=TOKENS)) as url,
        httpx.Client(base_url=url, headers=bearer("ann"), timeout=60) as client,
    ):
        yield client


def bearer(user: str) -> dict[str, str]:
    return {"authorization": f"Bearer secret-of-{user}", "accept": "application/json"}


def remembering(*facts: dict[str, Any]) -> ScriptedLLM:
    return ScriptedLLM([[Action(name="remember", args=args) for args in facts], "Noted."])


def test_facts_are_listed_corrected_and_forgotten_with_what_they_rest_on():
    journal = RamJournal()
    llm = remembering({"text": "Lives in Paris", "slot": "home"}, {"text": "Likes tea"})
    with serve(journal, llm) as client:
        said = "I live in Paris and I like tea."
        assert client.post("/sessions/first/runs", json={"task": said}).status_code == 200

        facts = client.get("/user").json()["facts"]
        assert [(each["text"], each["origin"], each["status"]) for each in facts] == [
            ("Likes tea", "user", "current"),
            ("Lives in Paris", "user", "current"),
        ]
        source = facts[1]["sources"][0]
        assert (source["session"], source["quote"]) == ("first", said)
        tea, paris = (each["id"] for each in facts)
        first = client.get("/user", params={"limit": 1}).json()
        assert [each["id"] for each in first["facts"]] == [tea]
        rest = client.get("/user", params={"after": first["next"]}).json()
        assert [each["id"] for each in rest["facts"]] == [paris]

        new = client.patch(f"/user/facts/{paris}", json={"text": " Lives in Porto "}).json()
        assert (new["text"], new["slot"], new["origin"]) == ("Lives in Porto", "home", "user")
        chain = client.get(f"/user/facts/{paris}").json()["facts"]
        assert [(each["id"], each["status"]) for each in chain] == [
            (paris, "replaced"),
            (new["id"], "current"),
        ]
        exported = client.get("/user/export")
        assert "attachment" in exported.headers["content-disposition"]
        assert len(exported.json()["facts"]) == 3

        assert client.delete(f"/user/facts/{new['id']}").json() == {"forgotten": 1}
        assert client.post("/user/forget", json={"text": "paris"}).json() == {"forgotten": 2}
        assert client.get("/user").json()["facts"] == []
        assert "Paris" not in client.get("/sessions/first").text
        assert "Paris" not in client.get("/sessions").text


def test_each_user_reaches_what_is_known_about_them_alone():
    journal = RamJournal()
    with serve(journal, remembering({"text": "Likes tea"})) as client:
        client.post("/sessions/first/runs", json={"task": "I like tea"})
        (fact,) = client.get("/user").json()["facts"]
        path = f"/user/facts/{fact['id']}"
        bob = bearer("bob")
        assert client.get("/user", headers=bob).json() == {"facts": [], "next": None, "blocks": []}
        for answer in (
            client.get(path, headers=bob),
            client.patch(path, json={"text": "x"}, headers=bob),
            client.delete(path, headers=bob),
        ):
            assert (answer.status_code, answer.json()["error"]["type"]) == (404, "fact_not_found")
        everything = {"everything": True}
        assert client.post("/user/forget", json=everything, headers=bob).json() == {"forgotten": 0}
        assert client.get("/user", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert len(client.get("/user").json()["facts"]) == 1
        for unclear in ("yes", 1):
            refused = client.post("/user/forget", json={"everything": unclear})
            assert refused.status_code == 422
        assert client.post("/user/forget", json=everything).json() == {"forgotten": 1}
        assert client.get("/sessions").json()["sessions"] == []


def test_what_makes_no_sense_is_refused():
    with serve(RamJournal(), remembering({"text": "Likes tea"})) as client:
        client.post("/sessions/first/runs", json={"task": "I like tea"})
        path = f"/user/facts/{client.get('/user').json()['facts'][0]['id']}"
        for answer in (
            client.post("/user/forget", json={}),
            client.post("/user/forget", json={"text": "tea", "slot": "home"}),
            client.post("/user/forget", json={"text": "x"}),
            client.patch(path, json={"text": " "}),
            client.patch(path, json={"text": "x" * 501}),
            client.get("/user", params={"after": "fact_0"}),
            client.get("/user", params={"limit": 0}),
        ):
            assert answer.status_code == 422, answer.text
        paths = client.get("/openapi.json").json()["paths"]
        assert {"get", "patch", "delete"} == paths["/user/facts/{fact}"].keys()


def test_a_server_that_keeps_nothing_says_so():
    with serve(RamJournal(), user=None) as client:
        answer = client.get("/user")
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "no_user_memory")
        assert client.get("/info").json()["knows_users"] is False
    sessions = Sessions(Brain(llm=ScriptedLLM()), journal=RamJournal(), user={})
    with served(make_app(sessions)) as url:
        assert httpx.get(f"{url}/user").json()["error"]["type"] == "no_user"
