"""Sign in to a server over HTTP. Needs the extra ``mcp``."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
from anyio.abc import ByteStream
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from agent_brain.common.aio import maybe_await
from agent_brain.common.files import replace_file
from agent_brain.common.secrets import register_secrets
from agent_brain.tools.errors import McpServerError
from agent_brain.tools.mcp.spec import HttpServer, OAuth

HERE = "127.0.0.1"
LONGEST_REQUEST = 65_536  # bytes of what a browser sends
PAGE = b"You are signed in and can close this window."


async def auth_of(spec: HttpServer) -> httpx2.Auth | None:
    """Return what signs the requests to a server; None if nothing does."""
    auth = spec.auth
    if not isinstance(auth, OAuth):
        return auth  # type: ignore[no-any-return]
    file = auth.storage is None or isinstance(auth.storage, str | os.PathLike)
    storage = _TokenFile(_path(auth, spec), spec) if file else auth.storage
    kept = _Storage(auth, storage)
    client = await kept.get_client_info()
    uri = auth.redirect_uri or await _local_uri(client)
    kept.redirect_uri = uri
    browser = _Person(spec.name, auth, uri)
    if client is not None and isinstance(storage, _TokenFile) and auth.client_id is None:
        browser.advice = storage.advice
    metadata = OAuthClientMetadata(client_name="agent-brain", redirect_uris=[AnyUrl(uri)])
    provider = OAuthClientProvider(spec.url, metadata, kept, browser.show, browser.code)
    if isinstance(storage, _TokenFile):
        storage.remember(provider)
    return provider


class _Storage:
    """Keeps tokens in another storage, and hides them in all that this library shows."""

    def __init__(self, auth: OAuth, inner: Any) -> None:
        self._auth = auth
        self._inner = inner
        self.redirect_uri = ""

    async def get_tokens(self) -> OAuthToken | None:
        return _hidden(await maybe_await(self._inner.get_tokens()))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await maybe_await(self._inner.set_tokens(_hidden(tokens)))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._auth.client_id is not None:
            method = "client_secret_post" if self._auth.client_secret else "none"
            return OAuthClientInformationFull(
                client_id=self._auth.client_id,
                client_secret=self._auth.client_secret,
                redirect_uris=[AnyUrl(self.redirect_uri)] if self.redirect_uri else None,
                token_endpoint_auth_method=method,
            )
        found: OAuthClientInformationFull | None = await maybe_await(self._inner.get_client_info())
        if found is not None:
            register_secrets(filter(None, [found.client_secret]))
        return found

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        register_secrets(filter(None, [client_info.client_secret]))
        if self._auth.client_id is None:
            await maybe_await(self._inner.set_client_info(client_info))


class _TokenFile:
    """Tokens in a file that only its owner can read.

    It also has what the SDK's own storage lacks to renew tokens after a restart: when they expire,
    and where that is done.
    """

    def __init__(self, path: Path, spec: HttpServer) -> None:
        self._path = path
        self._server = spec.name
        self._provider: OAuthClientProvider | None = None

    def remember(self, provider: OAuthClientProvider) -> None:
        """Give the provider what is known of its tokens, and store what it learns."""
        known, self._provider = self._read(), provider
        provider.context.token_expiry_time = known.get("expires_at")
        if (metadata := known.get("metadata")) is not None:
            provider.context.oauth_metadata = OAuthMetadata.model_validate(metadata)

    @property
    def advice(self) -> str:
        """What to do if a server has forgotten the client that is kept, and so shows an error."""
        return (
            f". If the server shows that it does not know this program, delete {str(self._path)!r}"
        )

    def get_tokens(self) -> OAuthToken | None:
        found = self._read().get("tokens")
        return None if found is None else OAuthToken.model_validate(found)

    def set_tokens(self, tokens: OAuthToken) -> None:
        metadata = None if self._provider is None else self._provider.context.oauth_metadata
        expires = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self._write(
            tokens=_plain(tokens), metadata=metadata and _plain(metadata), expires_at=expires
        )

    def get_client_info(self) -> OAuthClientInformationFull | None:
        found = self._read().get("client")
        return None if found is None else OAuthClientInformationFull.model_validate(found)

    def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write(client=_plain(client_info))

    def _read(self) -> dict[str, Any]:
        try:
            with self._path.open("rb") as file:
                if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                    raise self._error("others can read it: chmod 600, or sign in again without it")
                found = json.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._error(f"it cannot be read ({type(error).__name__}): delete it") from None
        return found if isinstance(found, dict) else {}

    def _write(self, **values: Any) -> None:
        text = json.dumps({**self._read(), **values})
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, text)
        except OSError as error:
            raise self._error(f"it cannot be written ({type(error).__name__})") from None

    def _error(self, why: str) -> McpServerError:
        text = f"the tokens of MCP server {self._server!r} are in {str(self._path)!r}, and {why}"
        return McpServerError(self._server, text)


class _Person:
    """Somebody who signs in: through the user's function, or a browser on this computer."""

    def __init__(self, server: str, auth: OAuth, redirect_uri: str) -> None:
        self._server = server
        self._auth = auth
        self._redirect_uri = redirect_uri
        self._url = ""
        self.advice = ""  # for somebody who could not sign in

    async def show(self, url: str) -> None:
        """Note where to sign in; :meth:`code` does it."""
        self._url = url

    async def code(self) -> AuthorizationCodeResult:
        """Let the person sign in; return what the server has sent back with the browser."""
        with anyio.move_on_after(self._auth.timeout):
            if self._auth.sign_in is None:
                back = await self._in_browser()
            else:
                back = await maybe_await(
                    await anyio.to_thread.run_sync(self._auth.sign_in, self._url)
                )
            given = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
            if "code" not in given:
                why = (
                    given.get("error_description") or given.get("error") or "no code was sent back"
                )
                raise OAuthFlowError(f"signing in did not succeed: {why}")
            register_secrets([given["code"]])
            return AuthorizationCodeResult(
                code=given["code"], state=given.get("state"), iss=given.get("iss")
            )
        raise OAuthFlowError(f"nobody signed in within {self._auth.timeout:g} s{self.advice}")

    async def _in_browser(self) -> str:
        if not sys.stderr.isatty():
            raise OAuthFlowError(
                "a person must sign in, and there is no terminal: start it at one once, or give "
                "OAuth(sign_in=…)"
            )
        port = urlsplit(self._redirect_uri).port or 0
        async with await anyio.create_tcp_listener(local_host=HERE, local_port=port) as listener:
            sys.stderr.write(f"Sign in to {self._server}: {self._url}\n")
            # some return when they are closed, after they were sent back here
            threading.Thread(target=webbrowser.open, args=[self._url], daemon=True).start()
            found: list[str] = []
            with anyio.CancelScope() as waiting:

                async def answer(browser: ByteStream) -> None:
                    async with browser:
                        request = await browser.receive(LONGEST_REQUEST)
                        target = request.partition(b" ")[2].partition(b" ")[0].decode("latin-1")
                        is_it = urlsplit(target).path == urlsplit(self._redirect_uri).path
                        head, body = ("200 OK", PAGE) if is_it else ("404 Not Found", b"")
                        await browser.send(_response(head, body))
                    if is_it:
                        found.append(target)
                        waiting.cancel()

                await listener.serve(answer)
        return found[0]


def _response(status: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def _hidden(tokens: OAuthToken | None) -> OAuthToken | None:
    if tokens is not None:
        register_secrets(filter(None, [tokens.access_token, tokens.refresh_token]))
    return tokens


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True)


def _path(auth: OAuth, spec: HttpServer) -> Path:
    if auth.storage is not None:
        return Path(auth.storage).expanduser()
    key = hashlib.sha256(spec.url.encode()).hexdigest()[:16]
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "agent-brain" / "mcp" / f"{urlsplit(spec.url).hostname}-{key}.json"


async def _local_uri(client: OAuthClientInformationFull | None) -> str:
    """Return where a browser on this computer is sent: as registered, else to a free port."""
    for uri in (client and client.redirect_uris) or ():
        if uri.host == HERE:
            return str(uri)
    async with await anyio.create_tcp_listener(local_host=HERE) as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
    return f"http://{HERE}:{port}/callback"
