"""Read MCP servers from URLs, scripts and ``{"mcpServers": {…}}`` configurations. Private.

Problems are collected and never repeat a configured value, which may be secret.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from agent_brain.tools.base import RESULT_TOKENS
from agent_brain.tools.errors import McpConfigError
from agent_brain.tools.mcp.names import fitting, unused
from agent_brain.tools.mcp.spec import (
    CALL_SECONDS,
    DESCRIPTION_TOKENS,
    START_SECONDS,
    Approval,
    HttpServer,
    ServerSpec,
    StdioServer,
)
from agent_brain.tools.secrets import configured_secrets, register_secrets
from agent_brain.tools.suggest import closest
from agent_brain.tools.values import error_lines

McpSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]

JAVASCRIPT = (".js", ".mjs", ".cjs")
KEYS_OF = {"command": {"command", "args", "env", "cwd"}, "url": {"url", "headers"}}
KINDS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}", re.ASCII)


def _http_url(url: str) -> str:
    if not _is_url(url):
        raise PydanticCustomError("url", "It must begin with http:// or https:// and name a host")
    return url


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
_Tokens = Annotated[int, Field(strict=True, gt=0)]


class _Entry(BaseModel):
    """The entry of one server. Keys that only other programs know are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)

    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    disabled: bool = False
    command: _Text = ""
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: _Text | None = None
    url: Annotated[str, AfterValidator(_http_url)] = ""
    headers: dict[str, str] = {}
    timeout: _Seconds | None = CALL_SECONDS
    start_timeout: _Seconds = START_SECONDS
    approval: Approval = "never"
    max_result_tokens: _Tokens | None = RESULT_TOKENS
    max_description_tokens: _Tokens | None = DESCRIPTION_TOKENS


OPTIONS = {"timeout", "start_timeout", "approval", "max_result_tokens", "max_description_tokens"}
KEYS = {*_Entry.model_fields, *map(to_camel, _Entry.model_fields)}


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
        read = _Entry.model_validate(known)
    except ValidationError as error:
        problems += error_lines(error)
        return None
    if read.type is not None and KINDS[read.type] != kind:
        problems.append(f"type {read.type!r} goes with {KINDS[read.type]}, not {kind}")
    hidden = read.env or read.headers
    register_secrets(configured_secrets({**hidden, "url": read.url}))
    options: dict[str, Any] = {"name": name, **read.model_dump(include=OPTIONS)}
    options["secrets"] = frozenset(filter(None, (*variables.values(), *hidden.values())))
    if kind == "url":
        return HttpServer(url=read.url, headers=read.headers, **options)
    return StdioServer(
        command=read.command, args=tuple(read.args), env=read.env, cwd=read.cwd, **options
    )


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


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
