"""The forms in which a server can be named: an address, a script, a configuration or its file."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agent_brain.tools.errors import McpConfigError
from agent_brain.tools.mcp.config import is_url, read_config
from agent_brain.tools.mcp.names import fitting, unused
from agent_brain.tools.mcp.spec import HttpServer, ServerSpec, StdioServer
from agent_brain.tools.secrets import configured_secrets, register_secrets

McpSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]

JAVASCRIPT = (".js", ".mjs", ".cjs")


def read_sources(
    sources: Iterable[McpSource], environ: Mapping[str, str] | None = None
) -> list[ServerSpec]:
    """The servers that ``sources`` name, each with a name of its own.

    Args:
        sources: URLs, paths of scripts or of JSON files, ``{"mcpServers": {…}}`` dicts.
        environ: Where ``${NAME}`` in a configuration comes from; None: this process's environment.

    Raises:
        McpConfigError: With everything that is wrong in any of them.
    """
    known = os.environ if environ is None else environ
    problems: list[str] = []
    specs: list[ServerSpec] = []
    for source in sources:
        if isinstance(source, Mapping):
            specs += read_config(source, known, problems)
        elif isinstance(source, str) and "://" in source:
            specs += _from_url(source, problems)
        else:
            specs += _from_path(Path(source).expanduser(), known, problems)
    if problems:
        raise McpConfigError(problems)
    return _with_own_names(specs)


def _from_url(url: str, problems: list[str]) -> list[ServerSpec]:
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


def _from_path(path: Path, environ: Mapping[str, str], problems: list[str]) -> list[ServerSpec]:
    suffix = path.suffix.lower()
    if suffix not in (".py", ".json", *JAVASCRIPT):
        problems.append(
            f"{str(path)!r} is neither an http(s):// address nor the path of a .py, .js or .json "
            'file; a server that is a command goes into {"mcpServers": {name: {"command": …}}}'
        )
    elif not path.is_file():
        problems.append(f"there is no file {str(path)!r}")
    elif suffix == ".json":
        return _from_file(path, environ, problems)
    else:
        command = sys.executable if suffix == ".py" else shutil.which("node")
        if command:
            return [StdioServer(name=path.stem, command=command, args=(str(path),))]
        problems.append(f"{str(path)!r} needs Node.js, and there is no 'node' on the PATH")
    return []


def _from_file(path: Path, environ: Mapping[str, str], problems: list[str]) -> list[ServerSpec]:
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        problems.append(f"{str(path)!r} is no JSON: {error.msg} in line {error.lineno}")
        return []
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{str(path)!r} cannot be read: {type(error).__name__}")
        return []
    if not isinstance(config, dict):
        problems.append(f'{str(path)!r} must hold an object, {{"mcpServers": {{…}}}}')
        return []
    inside: list[str] = []
    specs = read_config(config, environ, inside)
    problems += [f"{str(path)!r}: {problem}" for problem in inside]
    return specs


def _with_own_names(specs: Iterable[ServerSpec]) -> list[ServerSpec]:
    named: dict[str, ServerSpec] = {}
    for spec in specs:
        name = unused(fitting(spec.name), named)
        named[name] = replace(spec, name=name)
    return list(named.values())
