"""Read MCP servers from URLs, scripts and ``{"mcpServers": {…}}`` configurations. Private.

Problems are collected and never repeat a configured value, which may be secret.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, get_args
from urllib.parse import urlsplit

from agent_brain.tools.errors import McpConfigError
from agent_brain.tools.mcp.names import fitting, unused
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
from agent_brain.tools.suggest import closest
from agent_brain.tools.values import is_amount, is_count

McpSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]

JAVASCRIPT = (".js", ".mjs", ".cjs")
KEYS_OF = {"command": {"command", "args", "env", "cwd"}, "url": {"url", "headers"}}
LIMITS = {"maxResultTokens": RESULT_TOKENS, "maxDescriptionTokens": DESCRIPTION_TOKENS}
ALIASES = {"max_result_tokens": "maxResultTokens", "max_description_tokens": "maxDescriptionTokens"}
OPTIONS = {"type", "disabled", "timeout", "startTimeout", "approval", *LIMITS}
KEYS = KEYS_OF["command"] | KEYS_OF["url"] | OPTIONS
KINDS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}", re.ASCII)


def read_sources(
    sources: Iterable[McpSource], environ: Mapping[str, str] | None = None
) -> list[ServerSpec]:
    """Return the servers in ``sources``, with unique names.

    Args:
        sources: URLs, paths of scripts or of JSON files, ``{"mcpServers": {…}}`` dicts.
        environ: Values for ``${NAME}`` in a configuration; by default the process's environment.

    Raises:
        McpConfigError: All problems in all sources.
    """
    environ = os.environ if environ is None else environ
    problems: list[str] = []
    specs: list[ServerSpec] = []
    for source in sources:
        if isinstance(source, Mapping):
            specs += _read_config(source, environ, problems)
        elif isinstance(source, str) and "://" in source:
            specs += _read_url(source, problems)
        else:
            specs += _read_path(Path(source).expanduser(), environ, problems)
    if problems:
        raise McpConfigError(problems)
    named: dict[str, ServerSpec] = {}
    for spec in specs:
        name = unused(fitting(spec.name), named)
        named[name] = replace(spec, name=name)
    return list(named.values())


def _read_url(url: str, problems: list[str]) -> list[ServerSpec]:
    if not _is_url(url):
        scheme = url.partition("://")[0]
        problems.append(
            f"an address must begin with http:// or https:// and name a host, not with {scheme}://…"
        )
        return []
    parts = urlsplit(url)
    secrets = frozenset(filter(None, (parts.username, parts.password, parts.query)))
    register_secrets(configured_secrets({"url": url}))
    return [HttpServer(name=parts.hostname or "server", url=url, secrets=secrets)]


def _read_path(path: Path, environ: Mapping[str, str], problems: list[str]) -> list[ServerSpec]:
    suffix = path.suffix.lower()
    if suffix not in (".py", ".json", *JAVASCRIPT):
        problems.append(
            f"{str(path)!r} is neither an http(s):// address nor the path of a .py, .js or .json "
            'file; a server that is a command goes into {"mcpServers": {name: {"command": …}}}'
        )
    elif not path.is_file():
        problems.append(f"there is no file {str(path)!r}")
    elif suffix == ".json":
        return _read_file(path, environ, problems)
    else:
        command = sys.executable if suffix == ".py" else shutil.which("node")
        if command:
            return [StdioServer(name=path.stem, command=command, args=(str(path),))]
        problems.append(f"{str(path)!r} needs Node.js, and there is no 'node' on the PATH")
    return []


def _read_file(path: Path, environ: Mapping[str, str], problems: list[str]) -> list[ServerSpec]:
    inside: list[str] = []
    specs: list[ServerSpec] = []
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"))
        if isinstance(config, dict):
            specs = _read_config(config, environ, inside)
        else:
            inside.append('it must hold an object, {"mcpServers": {…}}')
    except json.JSONDecodeError as error:
        inside.append(f"it is not JSON: {error.msg} in line {error.lineno}")
    except (OSError, UnicodeDecodeError) as error:
        inside.append(f"it cannot be read: {type(error).__name__}")
    problems += [f"{str(path)!r}: {problem}" for problem in inside]
    return specs


def _read_config(
    config: Mapping[str, Any], environ: Mapping[str, str], problems: list[str]
) -> list[ServerSpec]:
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
            reader = _ServerEntry(str(name), entry, environ)
            spec = reader.read()
            problems += [f"server {name!r}: {problem}" for problem in reader.problems]
            if spec is not None and not reader.problems:
                specs.append(spec)
    return specs


class _ServerEntry:
    """Reads the entry of one server and collects all its problems."""

    def __init__(self, name: str, entry: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self.name = name
        self.entry = {ALIASES.get(key, key): value for key, value in entry.items()}
        self.problems: list[str] = []
        self._environ = environ
        self._missing: dict[str, None] = {}
        self._secrets: set[str] = set()

    def read(self) -> ServerSpec | None:
        """Return the spec; it is valid only if there are no problems."""
        for key in self.entry:  # other programs have keys of their own: report near misses only
            near = None if key in KEYS else closest(str(key), KEYS, cutoff=0.75)
            if near:
                self.problems.append(f"there is no {key!r}: did you mean {near!r}?")
        kind = self._kind()
        spec: ServerSpec | None = None
        if kind is not None:
            other = "url" if kind == "command" else "command"
            for key in sorted(KEYS_OF[other] & self.entry.keys()):
                self.problems.append(f"{key} goes with {other}, not with {kind}")
            spec = self._stdio() if kind == "command" else self._http()
        if self._missing:
            names = ", ".join(self._missing)
            self.problems.append(
                f"environment variables that are not set: {names}. Set them, or give a default, "
                "as in ${NAME:-default}"
            )
        return spec

    def _kind(self) -> str | None:
        given = [key for key in KEYS_OF if key in self.entry]
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
        env = self._texts("env")
        args = self.entry.get("args", [])
        if not isinstance(args, list | tuple) or not all(isinstance(arg, str) for arg in args):
            self.problems.append("args must be a list of strings")
            args = []
        command = self._text("command")
        cwd = self._text("cwd") if "cwd" in self.entry else None
        args = tuple(map(self._expand, args))
        register_secrets(configured_secrets(env))
        return StdioServer(command=command, args=args, env=env, cwd=cwd, **self._common(env))

    def _http(self) -> HttpServer:
        headers = self._texts("headers")
        url = self._text("url")
        if url and not _is_url(url):
            self.problems.append("url must begin with http:// or https:// and name a host")
        register_secrets(configured_secrets({**headers, "url": url}))
        return HttpServer(url=url, headers=headers, **self._common(headers))

    def _common(self, hidden: Mapping[str, str]) -> dict[str, Any]:
        approval = self.entry.get("approval", "never")
        if approval not in get_args(Approval):
            choices = ", ".join(map(repr, get_args(Approval)))
            self.problems.append(f"approval must be one of {choices}")
        endless = "timeout" in self.entry and self.entry["timeout"] is None
        return {
            "name": self.name,
            "timeout": None if endless else self._seconds("timeout", CALL_SECONDS),
            "start_timeout": self._seconds("startTimeout", START_SECONDS),
            "approval": approval,
            "max_result_tokens": self._tokens("maxResultTokens"),
            "max_description_tokens": self._tokens("maxDescriptionTokens"),
            "secrets": frozenset(self._secrets | set(hidden.values())),
        }

    def _seconds(self, key: str, default: float) -> float:
        value = self.entry.get(key, default)
        if is_amount(value) and value < math.inf:
            return float(value)
        self.problems.append(f"{key} must be a number of seconds greater than 0")
        return default

    def _tokens(self, key: str) -> int | None:
        value: int | None = self.entry.get(key, LIMITS[key])
        if value is not None and not is_count(value):
            self.problems.append(
                f"{key} must be a number of tokens greater than 0, or null for no limit"
            )
        return value

    def _text(self, key: str) -> str:
        value = self.entry.get(key)
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            self.problems.append(f"{key} must be a string that is not empty")
            return ""
        return self._expand(value)

    def _texts(self, key: str) -> dict[str, str]:
        values = self.entry.get(key, {})
        if not isinstance(values, Mapping) or not all(
            isinstance(text, str) for pair in values.items() for text in pair
        ):
            self.problems.append(f"{key} must be an object of strings")
            return {}
        return {name: self._expand(value) for name, value in values.items()}

    def _expand(self, text: str) -> str:
        """Replace ``${NAME}`` and ``${NAME:-default}``, and note the values as secrets."""
        return _VARIABLE.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        name, default = match.groups()
        value = self._environ.get(name)
        if value or (value is not None and default is None):
            self._secrets.add(value)
            return value
        if default is None:
            self._missing[name] = None
        return default or ""


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
