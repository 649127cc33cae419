"""A cookie with which a browser reads events: an EventSource cannot send a token."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable

from starlette.requests import HTTPConnection

from agent_brain.serving.caller import SECRET_HEADERS, Caller

NAME = "agent_brain"
SECONDS = 3600


class Cookies:
    """Makes cookies and checks them, without storing them.

    Args:
        tokens: The tokens of the server: its processes take each other's cookies, and those made
            before a restart. Without tokens, only this process takes its cookies.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        known = "\n".join(sorted(tokens)).encode() or secrets.token_bytes(32)
        self._key = hashlib.sha256(b"cookies\n" + known).digest()

    def make(self, caller: Caller) -> str:
        """Return the value of a cookie for ``caller``, valid for an hour."""
        said = json.dumps([caller.user, caller.tenant, int(time.time()) + SECONDS])
        value = urlsafe_b64encode(said.encode())
        return f"{value.decode()}.{self._sign(value)}"

    def caller(self, connection: HTTPConnection) -> Caller | None:
        """Return who asks for events, by the cookie of the request; None if it has no valid one."""
        if connection.scope.get("method") != "GET" or not connection.url.path.endswith("/events"):
            return None
        value, _, signature = connection.cookies.get(NAME, "").partition(".")
        if not hmac.compare_digest(self._sign(value.encode()).encode(), signature.encode()):
            return None
        user, tenant, until = json.loads(urlsafe_b64decode(value))
        if time.time() >= until:
            return None
        headers = {k: v for k, v in connection.headers.items() if k not in SECRET_HEADERS}
        return Caller(user, tenant, headers)

    def _sign(self, value: bytes) -> str:
        return hmac.new(self._key, value, hashlib.sha256).hexdigest()
