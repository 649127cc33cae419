"""A TCP proxy that cuts connections at chosen moments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class CuttingProxy:
    """Passes bytes on to a server, until it is told to cut.

    Attributes:
        port: Where it listens.
        cut: ``"request"``: cut before the next request is passed on; ``"reply"``: pass it on, and cut
            when its reply has arrived; None: pass everything on. It is None again after ``times`` cuts.
        times: How often to cut.
        cuts: How often it has cut.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self.port = 0
        self.cut: str | None = None
        self.times = 1
        self.cuts = 0
        self.serving: set[asyncio.Task[None]] = set()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server)
        there = asyncio.create_task(self._pass(reader, far_writer, "request"))
        back = asyncio.create_task(self._pass(far_reader, writer, "reply"))
        await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        for end in (writer, far_writer):
            end.close()
            with suppress(OSError):
                await end.wait_closed()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, what: str
    ) -> None:
        while data := await reader.read(65536):
            if self.cut == what:
                self.cuts += 1
                self.times -= 1
                if self.times <= 0:
                    self.cut, self.times = None, 1
                return
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def cutting_proxy(server: int) -> AsyncIterator[CuttingProxy]:
    """A proxy before the server at a port of this machine."""
    proxy = CuttingProxy(server)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        await asyncio.gather(*proxy.serving)  # they end when the clients have
