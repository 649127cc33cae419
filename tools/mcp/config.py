"""``{"mcpServers": {…}}``, as other programs write it, read into specs with every problem noted.

Nothing of a value is repeated in a problem: values may be secret.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any, get_args

from agent_brain.tools.mcp.expand import Expander
from agent_brain.tools.mcp.spec import (
    CALL_SECONDS,
    DESCRIPTION_TOKENS,
    RESULT_TOKENS,
    START_SECONDS,
    Approval,
    HttpServer,
    ServerSpec,
    StdioServer,
)
from agent_brain.tools.secrets import configured_secrets, register_secrets

STDIO_KEYS = {"command", "args", "env", "cwd"}
HTTP_KEYS = {"url", "headers"}
LIMITS = {
    "maxResultTokens": RESULT_TOKENS,
    "maxDescriptionTokens": DESCRIPTION_TOKENS,
}
ALSO = {"max_result_tokens": "maxResultTokens", "max_description_tokens": "maxDescriptionTokens"}
KEYS = (
    STDIO_KEYS
    | HTTP_KEYS
    | {"type", "disabled", "timeout", "startTimeout", "approval"}
    | LIMITS.keys()
)
KINDS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}


def read_config(
    config: Mapping[str, Any], environ: Mapping[str, str], problems: list[str]
) -> list[ServerSpec]:
    """The servers of one configuration; what is wrong is added to ``problems``."""
    servers = config.get("mcpServers")
    if not isinstance(servers, Mapping):
        found = ", ".join(sorted(map(repr, config))) or "nothing"
        problems.append(
            f'an MCP configuration is {{"mcpServers": {{name: …}}}}; this one has {found}'
        )
        return []
    specs = []
    for name, entry in servers.items():
        if not isinstance(entry, Mapping):
            problems.append(f"server {name!r}: it must be an object with command or url")
        elif entry.get("disabled") is not True:
            reader = _Entry(str(name), entry, environ)
            spec = reader.read()
            problems += [f"server {name!r}: {problem}" for problem in reader.problems]
            if spec is not None and not reader.problems:
                specs.append(spec)
    return specs


class _Entry:
    """One server's entry, read with all that is wrong in it."""

    def __init__(self, name: str, entry: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self.name = name
        self.entry = {ALSO.get(key, key): value for key, value in entry.items()}
        self.expander = Expander(environ)
        self.problems: list[str] = []

    def read(self) -> ServerSpec | None:
        """The spec, or None; if there are problems it is worth nothing."""
        self._look_for_typos()
        kind = self._kind()
        spec: ServerSpec | None = None
        if kind == "command":
            spec = self._stdio()
        elif kind == "url":
            spec = self._http()
        if self.expander.missing:
            names = ", ".join(self.expander.missing)
            self.problems.append(
                f"environment variables that are not set: {names}. Set them, or give a default, "
                "as in ${NAME:-default}"
            )
        return spec

    def _look_for_typos(self) -> None:
        """Other programs have keys of their own, which do no harm: only near misses are wrong."""
        for key in self.entry:
            near = difflib.get_close_matches(str(key), KEYS, n=1, cutoff=0.75)
            if key not in KEYS and near:
                self.problems.append(f"there is no {key!r}: did you mean {near[0]!r}?")

    def _kind(self) -> str | None:
        """``"command"`` or ``"url"``: what it is reached by."""
        given = [key for key in ("command", "url") if key in self.entry]
        declared = self.entry.get("type")
        if declared == "sse":
            self.problems.append(
                "the transport 'sse' is obsolete and not supported: use the server's streamable "
                "HTTP endpoint, with type 'http'"
            )
        elif declared is not None and declared not in KINDS:
            self.problems.append(f"type must be one of {', '.join(map(repr, KINDS))}")
        elif len(given) != 1:
            self.problems.append("give it either command (a program) or url (a running server)")
        elif declared is not None and KINDS[declared] != given[0]:
            self.problems.append(f"type {declared!r} goes with {KINDS[declared]}, not {given[0]}")
        else:
            return given[0]
        return None

    def _stdio(self) -> StdioServer:
        for key in sorted(HTTP_KEYS & self.entry.keys()):
            self.problems.append(f"{key} goes with url, not with command")
        env = self._texts("env")
        args = self.entry.get("args", [])
        if not isinstance(args, list | tuple) or not all(isinstance(arg, str) for arg in args):
            self.problems.append("args must be a list of strings")
            args = []
        command = self._text("command")
        cwd = self._text("cwd") if "cwd" in self.entry else None
        args = tuple(map(self.expander.expand, args))
        register_secrets(configured_secrets(env))
        common = self._common(env)
        return StdioServer(command=command, args=args, env=env, cwd=cwd, **common)

    def _http(self) -> HttpServer:
        for key in sorted(STDIO_KEYS & self.entry.keys()):
            self.problems.append(f"{key} goes with command, not with url")
        headers = self._texts("headers")
        url = self._text("url")
        if url and not is_url(url):
            self.problems.append("url must begin with http:// or https:// and name a host")
        register_secrets(configured_secrets({**headers, "url": url}))
        return HttpServer(url=url, headers=headers, **self._common(headers))

    def _common(self, hidden: Mapping[str, str]) -> dict[str, Any]:
        approval = self.entry.get("approval", "never")
        if approval not in get_args(Approval):
            choices = ", ".join(map(repr, get_args(Approval)))
            self.problems.append(f"approval must be one of {choices}")
        timeout = self.entry.get("timeout", CALL_SECONDS)
        return {
            "name": self.name,
            "timeout": timeout if timeout is None else self._seconds("timeout", CALL_SECONDS),
            "start_timeout": self._seconds("startTimeout", START_SECONDS),
            "approval": approval,
            "max_result_tokens": self._tokens("maxResultTokens"),
            "max_description_tokens": self._tokens("maxDescriptionTokens"),
            "secrets": frozenset(self.expander.secrets | set(hidden.values())),
        }

    def _seconds(self, key: str, default: float) -> float:
        value = self.entry.get(key, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value < math.inf:
            self.problems.append(f"{key} must be a number of seconds above 0")
            return default
        return float(value)

    def _tokens(self, key: str) -> int | None:
        value = self.entry.get(key, LIMITS[key])
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
        self.problems.append(f"{key} must be a number of tokens above 0, or null for no limit")
        return None

    def _text(self, key: str) -> str:
        value = self.entry.get(key)
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            self.problems.append(f"{key} must be a string that is not empty")
            return ""
        return self.expander.expand(value)

    def _texts(self, key: str) -> dict[str, str]:
        values = self.entry.get(key, {})
        if not isinstance(values, Mapping) or not all(
            isinstance(text, str) for pair in values.items() for text in pair
        ):
            self.problems.append(f"{key} must be an object of strings")
            return {}
        return {name: self.expander.expand(value) for name, value in values.items()}


def is_url(text: str) -> bool:
    """Whether it is an address that can be spoken to over HTTP."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        return parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
