"""HTTP GET, against a real server, and under a hostile list."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import httpx
import pytest

from agent_brain.tools import BaseTool, ToolDefinitionError, ToolError
from agent_brain.tools.builtin import http_get_tool
from agent_brain.tools.builtin.web import is_public, read_url, resolve

pytestmark = pytest.mark.anyio


class Handler(BaseHTTPRequestHandler):
    """Answers as the path says, and notes who asked for what."""

    seen: list[tuple[str, str]]
    cookies: list[str | None]
    over: threading.Event

    def do_GET(self) -> None:
        self.seen.append((self.headers["Host"], self.path))
        self.cookies.append(self.headers["Cookie"])
        kind, _, rest = self.path[1:].partition("/")
        if kind == "to":
            self._answer(302, b"", Location=rest)
        elif kind == "status":
            self._answer(int(rest), b"sorry")
        elif kind == "type":
            self._answer(200, "é".encode("latin-1"), **{"Content-Type": rest})
        elif kind == "big":
            self._answer(200, b"x" * 5000)
        elif kind == "packed":
            self._answer(200, gzip.compress(b"x" * 100_000), **{"Content-Encoding": "gzip"})
        elif kind == "hang":
            self.over.wait(60)
        else:
            body = f"you asked for {self.path}".encode()
            self._answer(200, body, **{"Set-Cookie": "who=me; Path=/"})

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/plain", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    Handler.seen, Handler.cookies, Handler.over = [], [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    Handler.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def here(server: ThreadingHTTPServer) -> str:
    Handler.seen.clear()
    return f"127.0.0.1:{server.server_port}"


def tool_for(here: str, **options: Any) -> BaseTool:
    return http_get_tool(["*"], private=[here], max_bytes=1000, **options)


async def get(tool: BaseTool, url: str) -> str:
    text = await tool.invoke({"url": url})
    assert isinstance(text, str)
    return text


async def test_a_text_is_fetched_and_redirects_to_the_same_host_are_followed(here):
    tool = tool_for(here)
    assert await get(tool, f"http://{here}/a?b=c#d") == "you asked for /a?b=c"
    assert await get(tool, f"http://{here}/to//a") == "you asked for /a"
    assert Handler.seen[0] == (here, "/a?b=c")


async def test_calls_share_a_client_and_nothing_else(here, monkeypatch):
    made: list[httpx.AsyncClient] = []

    class Counted(httpx.AsyncClient):
        def __init__(self, **options: Any) -> None:
            made.append(self)
            super().__init__(**options)

    monkeypatch.setattr(httpx, "AsyncClient", Counted)
    Handler.cookies.clear()
    tool = tool_for(here)
    for _ in range(3):
        await get(tool, f"http://{here}/to//a")
    assert len(made) == 1
    assert Handler.cookies == [None] * 6


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_tool_is_used_on_one_loop_after_the_other(here, backend):
    tool = tool_for(here)
    for _ in range(2):
        assert anyio.run(get, tool, f"http://{here}/a", backend=backend) == "you asked for /a"
        assert anyio.run(get, tool, f"http://{here}/a", backend="asyncio") == "you asked for /a"


LEADS_ASTRAY = [
    "http://127.0.0.1:1/",
    "http://localhost:80/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://127.1/",
    "http://0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[::127.0.0.1]/",
    "http://[fe80::1%25lo]/",
    "http://[fe80::1%lo]/",
    "http://[fd00::1]/",
    "http://[ff02::1]/",
    "http://[fec0::1]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[fd20:ce::254]/computeMetadata/v1/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:0:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[2606:4700::5efe:10.0.0.1]/",
    "http://[4000::1]/",
    "http://[3fff::1]/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://100.100.100.200/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://①②⑦.⓪.⓪.①/",
    "http://user@127.0.0.1/",
    "http://example.com@127.0.0.1/",
    "http://example.com:80@127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
    "http://example.com%00.evil/",
    "http://exam ple.com/",
    "http://example.com\t/",
    "//127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "ftp://example.com/",
    "http://",
    "http:///x",
    "http://[/",
    "http://example.com:99999/",
    "http://example.com:25/",
    "javascript:alert(1)",
    "",
]


@pytest.mark.parametrize("url", LEADS_ASTRAY)
async def test_addresses_that_lead_to_private_addresses_are_refused(here, url):
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, text="secret")

    with pytest.raises(ToolError) as caught:
        await get(tool_for(here, transport=httpx.MockTransport(answer)), url)
    assert str(caught.value)
    assert sent == []


@pytest.mark.parametrize("url", [url for url in LEADS_ASTRAY if url.startswith("http:")])
async def test_redirects_that_lead_to_private_addresses_are_refused(here, url):
    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"Location": url.encode()})

    asked = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"] if host == "start.example" else await resolve(host, port)

    tool = http_get_tool(["*"], resolver=resolver, transport=httpx.MockTransport(answer))
    with pytest.raises(ToolError):
        await get(tool, "http://start.example/")
    assert "start.example" in asked


async def test_a_real_redirect_to_loopback_is_refused(here, server):
    other = http_get_tool(["*"], private=[here])
    with pytest.raises(ToolError, match=r"leads to 127.0.0.1, which is not on the public internet"):
        await get(other, f"http://{here}/to/http://localhost/secret")
    with pytest.raises(ToolError, match=r"may not be fetched. Allowed hosts"):
        await get(other, f"http://{here}/to/http://127.0.0.1:{server.server_port + 1}/secret")
    assert all("secret" not in path or path.startswith("/to/") for _, path in Handler.seen)


async def test_hosts_that_are_not_allowed_are_refused(here):
    tool = http_get_tool(["example.com", "*.example.org", "example.net:8080"], resolver=nobody)
    for url in (
        "http://example.com.evil.com/",
        "http://evilexample.com/",
        "http://example.org/",
        "http://example.org.evil/",
        "http://example.net/",
        "http://example.com:8080/",
    ):
        with pytest.raises(ToolError, match=r"may not be fetched. Allowed hosts: example\.com"):
            await get(tool, url)
    for url in ("http://EXAMPLE.com./", "https://a.b.example.org/", "http://example.net:8080/"):
        with pytest.raises(ToolError, match="was not found"):
            await get(tool, url)


async def nobody(host: str, port: int) -> list[str]:
    raise OSError("no such host")


async def test_the_connection_goes_to_the_very_address_that_was_checked(here):
    """A name that is public when it is checked and private a moment later."""
    answers = [["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]]
    sent = []

    async def rebinding(host: str, port: int) -> list[str]:
        return answers.pop(0)

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.url.host, request.headers["host"], request.extensions["sni_hostname"]))
        return httpx.Response(200, text="hello")

    transport = httpx.MockTransport(answer)
    tool = http_get_tool(["*"], resolver=rebinding, transport=transport)
    assert await get(tool, "https://rebind.example/") == "hello"
    assert sent == [("93.184.216.34", "rebind.example", "rebind.example")]
    with pytest.raises(ToolError, match=r"leads to 127.0.0.1"):
        await get(tool, "https://rebind.example/")


async def test_a_name_with_a_public_and_a_private_address_is_not_trusted():
    async def both(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    with pytest.raises(ToolError, match=r"leads to 10\.0\.0\.1"):
        await get(http_get_tool(["*"], resolver=both), "http://example.com/")


@pytest.mark.parametrize(
    "host",
    [
        "metadata.google.internal",
        "METADATA",
        "instance-data.ec2.internal.",
        "printer.local",
        "x.localhost",
    ],
)
async def test_names_inside_a_network_are_private_wherever_they_lead(host):
    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="hello")

    transport = httpx.MockTransport(answer)
    tool = http_get_tool(["*"], resolver=public, transport=transport)
    with pytest.raises(ToolError, match="is not a name on the public internet"):
        await get(tool, f"http://{host}/")
    chosen = http_get_tool([], private=["printer.local"], resolver=public, transport=transport)
    assert await get(chosen, "http://printer.local/") == "hello"


async def test_a_name_without_address_is_an_error():
    async def none(host: str, port: int) -> list[str]:
        return []

    with pytest.raises(ToolError, match="has no address"):
        await get(http_get_tool(["*"], resolver=none), "http://example.com/")


@pytest.mark.parametrize(
    "path, why",
    [
        ("big", "more than 1,000 bytes"),
        ("packed", "compressed content"),
        ("type/image/png", "not text but 'image/png'"),
        ("status/404", "answered 404 Not Found: sorry"),
        ("to/to", "redirects more than 5 times"),
        ("to/ftp://example.com/", "Only http and https"),
    ],
)
async def test_answers_that_are_refused(here, path, why):
    url = f"http://{here}/to/" if path == "to/to" else f"http://{here}/{path}"
    with pytest.raises(ToolError, match=why):
        await get(tool_for(here), url)


@pytest.mark.parametrize(
    "kind, text", [("text/plain; charset=latin-1", "é"), ("text/plain; charset=punycode", "\ufffd")]
)
async def test_text_is_decoded_as_it_says(here, kind, text):
    assert await get(tool_for(here), f"http://{here}/type/{kind.replace(' ', '')}") == text


async def test_a_server_that_hangs_is_given_up(here):
    from agent_brain.tools import Action, call_tool

    tool = tool_for(here, timeout=0.05)
    outcome = await call_tool(
        Action(name="http_get", args={"url": f"http://{here}/hang"}), {tool.name: tool}
    )
    assert "took longer than 0.05 s" in outcome.content


async def test_a_server_that_is_not_there_is_an_error():
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
    with pytest.raises(ToolError, match="could not be fetched"):
        await get(http_get_tool([], private=[f"127.0.0.1:{port}"]), f"http://127.0.0.1:{port}/")


async def test_https_is_not_left_for_http():
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(301, headers={"Location": "http://example.com/"})

    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    tool = http_get_tool(["*"], resolver=public, transport=httpx.MockTransport(answer))
    with pytest.raises(ToolError, match="from https to http"):
        await get(tool, "https://example.com/")


def test_public_addresses_are_public():
    for address in (
        "93.184.216.34",
        "2606:4700::1111",
        "64:ff9b::101:101",
        "::ffff:1.1.1.1",
    ):
        assert is_public(address), address
    for address in (
        "192.88.99.1",
        "2002:101:101::",
        "2001:1::1",
        "2001:20::1",
        "2002:7f00:1::",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2001:0:7f00:1::80ff:fffe",
        "nonsense",
        "2606:4700::1111%eth0",
        "fec0::1",
        "fd00:ec2::254",
        "169.254.169.254",
        "2606:4700::200:5efe:127.0.0.1",
    ):
        assert not is_public(address), address


async def test_a_user_name_is_refused_whatever_the_host():
    with pytest.raises(ToolError, match="with a user name or a password"):
        await get(http_get_tool(["*"], resolver=nobody), "http://a:b@example.com/")


def test_a_url_is_put_together_as_it_was_read():
    assert read_url("HTTPS://Bücher.Example/a?b").url == "https://xn--bcher-kva.example:443/a?b"


async def test_one_host_needs_no_list_and_its_letters_are_not_hosts():
    async def nowhere(host: str, port: int) -> list[str]:
        raise AssertionError(f"{host} was looked up")

    fetch = http_get_tool("*.example.com", resolver=nowhere)
    with pytest.raises(ToolError, match=r"Allowed hosts: \*\.example\.com$"):
        await fetch.invoke({"url": "http://other.test/"})


@pytest.mark.parametrize("host", ["", "http://example.com", "exa mple.com", "*example.com", "a/b"])
def test_hosts_to_allow_must_be_hosts(host):
    with pytest.raises(ToolDefinitionError, match="is not a host"):
        http_get_tool([host])
