"""nginx and Caddy on loopback, with the files of the docs."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import free_port

SERVING = Path(__file__).parents[2] / "docs" / "serving.md"
NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {sites}
}}
"""
CADDY = "{{\n    admin off\n    auto_https off\n}}\n{sites}"


def from_docs(language: str) -> str:
    """Return the file of the docs in that language."""
    [text] = re.findall(rf"```{language}\n(.*?)```", SERVING.read_text("utf-8"), re.DOTALL)
    return str(text)


@contextmanager
def proxy(kind: str, sites: str, port: int, folder: Path) -> Iterator[str]:
    """Run a proxy in front of a server, and yield its URL.

    Args:
        kind: ``"nginx"`` or ``"caddyfile"``.
        sites: Its file, for port 443 and a server on port 8000.
        port: The port of the server.
        folder: Where it may write.
    """
    program = shutil.which(kind.removesuffix("file"))
    if program is None:
        pytest.skip("needs nginx and caddy: apt-get install nginx-light caddy")
    own = free_port()
    sites = re.sub(
        r" *ssl_certificate.*\n", "", sites.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    )
    sites = sites.replace("listen 443 ssl;", f"listen 127.0.0.1:{own};")
    sites = sites.replace("chat.example.org {", f"http://:{own} {{\n    bind 127.0.0.1")
    path = folder / kind
    path.write_text({"nginx": NGINX, "caddyfile": CADDY}[kind].format(folder=folder, sites=sites))
    commands = {
        "nginx": [program, "-e", "stderr", "-p", str(folder), "-c", str(path)],
        "caddyfile": [program, "run", "--config", str(path), "--adapter", "caddyfile"],
    }
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            commands[kind], stdout=log, stderr=log, env={"HOME": str(folder)}
        ) as process,
    ):
        try:
            _until_open(own, process, folder / "log")
            yield f"http://127.0.0.1:{own}"
        finally:
            process.terminate()


def _until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            continue
        return
