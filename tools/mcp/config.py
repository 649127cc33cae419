"""Read MCP servers from URLs, scripts and ``{"mcpServers": {…}}`` configurations.

Problems are collected and never repeat a configured value, which may be secret.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from agent_brain.common.secrets import configured_secrets, register_secrets
from agent_brain.common.suggest import closest
from agent_brain.common.values import error_lines
from agent_brain.tools.errors import McpConfigError
from agent_brain.tools.mcp.names import fitting, unused
from agent_brain.tools.mcp.spec import HttpServer, ServerSpec, StdioServer, is_url

McpSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]

JAVASCRIPT = (".js", ".mjs", ".cjs")
KINDS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}
SERVERS: dict[str, type[StdioServer | HttpServer]] = {"command": StdioServer, "url": HttpServer}
KEYS_OF = {
    key: kind.model_fields.keys() - ServerSpec.model_fields.keys() for key, kind in SERVERS.items()
}
FIELDS = {*StdioServer.model_fields, *HttpServer.model_fields} - {"name", "secrets"}
KEYS = {*FIELDS, *map(to_camel, FIELDS)}

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}", re.ASCII)


def read_sources(
    sources: Iterable[McpSource], environ: Mapping[str, str] | None = None
) -> list[ServerSpec]:
    """Return the servers in ``sources``, with unique names, or raise an error with all problems."""
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
        named[name] = spec.model_copy(update={"name": name})
    return list(named.values())


def _read_url(url: str, problems: list[str]) -> list[ServerSpec]:
    if not is_url(url):
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
            return [StdioServer(name=path.stem, command=command, args=[str(path)])]
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
            inside: list[str] = []
            spec = _read_entry(str(name), entry, environ, inside)
            problems += [f"server {name!r}: {problem}" for problem in inside]
            specs += [spec] if spec is not None and not inside else []
    return specs


def _read_entry(
    name: str, entry: Mapping[str, Any], environ: Mapping[str, str], problems: list[str]
) -> ServerSpec | None:
    """Return the server that an entry describes; it is valid only if there are no problems."""
    variables: dict[str, str | None] = {}
    known = _expand({key: entry[key] for key in entry if key in KEYS}, environ, variables)
    for key in entry:  # other programs have keys of their own: report near misses only
        near = None if key in KEYS else closest(str(key), KEYS, cutoff=0.75)
        if near:
            problems.append(f"there is no {key!r}: did you mean {near!r}?")
    given = [key for key in KEYS_OF if key in entry]
    if len(given) != 1:
        problems.append("give it either command (a program) or url (a running server)")
        return None
    kind, other = given[0], "url" if given[0] == "command" else "command"
    misplaced = sorted(KEYS_OF[other] & entry.keys())
    problems += [f"{key} goes with {other}, not with {kind}" for key in misplaced]
    if missing := [variable for variable, value in variables.items() if value is None]:
        problems.append(
            f"environment variables that are not set: {', '.join(missing)}. Set them, or give a "
            "default, as in ${NAME:-default}"
        )
    try:
        read = SERVERS[kind].model_validate({**known, "name": name})
    except ValidationError as error:
        problems += error_lines(error)
        return None
    if read.type is not None and KINDS[read.type] != kind:
        problems.append(f"type {read.type!r} goes with {KINDS[read.type]}, not {kind}")
    hidden = dict(read.env if isinstance(read, StdioServer) else read.headers)
    if (secret := getattr(getattr(read, "auth", None), "client_secret", None)) is not None:
        hidden["client_secret"] = secret
    register_secrets(configured_secrets({**hidden, "url": getattr(read, "url", "")}))
    secrets = frozenset(filter(None, (*variables.values(), *hidden.values())))
    return read.model_copy(update={"secrets": secrets})


def _expand(value: Any, environ: Mapping[str, str], used: dict[str, str | None]) -> Any:
    """Replace ``${NAME}`` and ``${NAME:-default}``, and note the values of variables."""

    def look_up(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = environ.get(name)
        if found or default is None:
            used[name] = found
        return found or default or ""

    if isinstance(value, str):
        return _VARIABLE.sub(look_up, value)
    if isinstance(value, Mapping):
        return {key: _expand(each, environ, used) for key, each in value.items()}
    return [_expand(each, environ, used) for each in value] if isinstance(value, list) else value
