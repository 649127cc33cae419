"""Signing in to servers over HTTP with OAuth: with a real authorization server on this computer."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import pytest

from agent_brain import Action, Brain, react
from agent_brain.testing import ScriptedLLM
from agent_brain.tools.mcp import McpConfigError, McpServerError, McpTools, OAuth
from tests.tools.mcp.support import call, config, http_server

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

BACK = "http://127.0.0.1:9/back"


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    with http_server(name="guarded") as (url, _):
        yield url


def at(url: str, auth: Any) -> dict[str, Any]:
    return config(guarded={"url": url, "auth": auth})


def person(url: str) -> str:
    """What somebody does who signs in; return where the browser is sent."""
    answer = httpx.get(url, follow_redirects=False)
    assert answer.status_code == 302
    return answer.headers["location"]


def nobody(url: str) -> str:
    raise AssertionError("nobody is to be asked")


async def test_one_signs_in_once_and_tokens_are_kept_in_a_file_of_ones_own(
    guarded, tmp_path, caplog
):
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "deep" / "tokens.json"
    async with await McpTools.open(
        [at(guarded, OAuth(storage=file, sign_in=person, redirect_uri=BACK))]
    ) as mcp:
        assert not (await call(mcp, "who")).is_error
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700

    again = [at(guarded, OAuth(storage=file, sign_in=nobody, redirect_uri=BACK))]
    model = ScriptedLLM([[Action(name="who")], "Done."])
    async with await Brain.create(react(model), tools=again) as brain:
        result = await brain.run("Who am I?")
    kept = json.loads(file.read_text())
    token = kept["tokens"]["access_token"]
    assert result.messages[-2].content.startswith("[hidden] ")
    told = [
        record.getMessage() for record in caplog.records if record.name.startswith("agent_brain")
    ]
    assert not any(token in text or kept["tokens"]["refresh_token"] in text for text in told)

    kept["expires_at"] = 1  # it has expired meanwhile
    file.write_text(json.dumps(kept))
    async with await McpTools.open(again) as mcp:
        assert not (await call(mcp, "who")).is_error
    assert json.loads(file.read_text())["tokens"]["access_token"] != token


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[threading.Thread]:
    """Browsers in which somebody signs in."""
    started: list[threading.Thread] = []

    def browse(url: str) -> bool:
        def sign_in() -> None:
            back = person(url)
            assert httpx.get(back.replace("/callback", "/favicon.ico")).status_code == 404
            assert "You are signed in" in httpx.get(back).text

        started.append(threading.Thread(target=sign_in))
        started[-1].start()
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return started


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_at_a_terminal_a_person_signs_in_with_a_browser(
    guarded, browsers, tmp_path, monkeypatch
):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for _ in range(2):
        async with await McpTools.open([at(guarded, "oauth")]) as mcp:
            assert not (await call(mcp, "who")).is_error
    [browser] = browsers
    browser.join()
    assert terminal.getvalue().startswith("Sign in to guarded: http://127.0.0.1:")
    [file] = (tmp_path / "agent-brain" / "mcp").iterdir()
    assert file.name.startswith("127.0.0.1-")


async def test_a_browser_in_the_terminal_is_answered_while_it_is_open(
    guarded, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    shown: SimpleQueue[int] = SimpleQueue()

    def browse(url: str) -> bool:  # returns when it is closed, as one for texts does
        shown.put(httpx.get(url, follow_redirects=True).status_code)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    async with await McpTools.open([at(guarded, "oauth")]) as mcp:
        assert not (await call(mcp, "who")).is_error
    assert shown.get(timeout=60) == 200


async def test_storage_and_client_may_be_the_users_own(guarded, monkeypatch):
    class Storage:
        kept: dict[str, Any] = {}

        async def get_tokens(self):
            return self.kept.get("tokens")

        async def set_tokens(self, tokens):
            self.kept["tokens"] = tokens

        async def get_client_info(self):
            raise AssertionError("it is configured")

    monkeypatch.setenv("CLIENT_SECRET", "secret-of-the-client")
    auth = {
        "storage": Storage(),
        "sign_in": person,
        "redirect_uri": BACK,
        "clientId": "by-hand",
        "clientSecret": "${CLIENT_SECRET}",
    }
    async with await McpTools.open([at(guarded, auth)]) as mcp:
        assert not (await call(mcp, "who")).is_error
    assert Storage.kept["tokens"].access_token.startswith("access-token-number-")
    assert "secret-of-the-client" not in repr(
        OAuth(client_id="by-hand", client_secret="secret-of-the-client")
    )


async def refused(url: str, auth: Any) -> str:
    with pytest.raises(McpServerError) as caught:
        await McpTools.open([at(url, auth)])
    return str(caught.value)


async def test_why_one_could_not_sign_in_is_said(guarded, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    def options(sign_in: Any, name: str, **more: Any) -> OAuth:
        return OAuth(storage=tmp_path / name, sign_in=sign_in, redirect_uri=BACK, **more)

    async def never(url: str) -> str:
        import asyncio  # the thread of the connections has its loop

        await asyncio.Event().wait()
        return url

    assert "a person must sign in, and there is no terminal" in await refused(guarded, "oauth")
    denied = options(lambda url: f"{BACK}?error=access_denied", "a")
    assert "signing in did not succeed: access_denied" in await refused(guarded, denied)
    late = options(never, "b", timeout=0.1)
    assert "nobody signed in within 0.1 s (at" in await refused(guarded, late)
    again = await refused(guarded, late)
    assert "nobody signed in within 0.1 s. If the server shows that it does not know" in again
    assert f"delete {str(tmp_path / 'b')!r}" in again
    other = options(lambda url: f"{BACK}?code=x&state=of-another", "c")
    assert "could not be signed in to: State parameter mismatch" in await refused(guarded, other)

    (tmp_path / "d").write_text("{}")
    (tmp_path / "d").chmod(0o644)
    assert "others can read it: chmod 600" in await refused(guarded, options(person, "d"))
    (tmp_path / "e").write_text("{")
    (tmp_path / "e").chmod(0o600)
    assert "it cannot be read (JSONDecodeError): delete it" in await refused(
        guarded, options(person, "e")
    )


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        ("basic", "'oauth', the options of OAuth"),
        ({"redirectUri": BACK}, "sign_in and redirect_uri go together"),
        ({"clientSecret": "s3cret-value"}, "client_secret goes with client_id"),
        ({"storage": 7}, "storage must be a path"),
        ({"timeOut": 7}, "timeOut"),
    ],
)
async def test_wrong_options_are_said_at_once(auth, words):
    with pytest.raises(McpConfigError) as caught:
        await McpTools.open([at("http://127.0.0.1:1/mcp", auth)])
    assert words in str(caught.value)
    assert "s3cret-value" not in str(caught.value)
