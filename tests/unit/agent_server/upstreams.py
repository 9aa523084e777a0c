"""Small proxies and a site to put behind the relay: real sockets on loopback, no browser."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Streams = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Streams):
    """Serve on a free port of 127.0.0.1; ends its connections at the end."""
    tasks: set[asyncio.Task] = set()

    async def accept(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(asyncio.current_task())
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports let go of their sockets in the next turn of the loop


@dataclass
class Site:
    """Answers every request with `body`; keeps the heads that it saw."""

    body: bytes = b"hello"
    heads: list[bytes] = field(default_factory=list)

    async def __call__(self, reader, writer):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            if length:
                await reader.readexactly(int(length[0].split(b":")[1]))
            page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b"
            writer.write(page % (len(self.body), self.body))
            await writer.drain()


async def pipe(one, other):
    """Bytes both ways between two (reader, writer) pairs, until either ends."""

    async def pump(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    tasks = [asyncio.ensure_future(pump(one[0], other[1])), asyncio.ensure_future(pump(other[0], one[1]))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        other[1].close()


@dataclass
class HttpProxy:
    """CONNECT and plain requests for one user; leads everything to `leads_to`, whatever host is asked for."""

    leads_to: int
    user: str = ""
    password: str = ""
    answer: bytes = b""  # instead of carrying out, to whoever is let in
    asked: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)

    async def __call__(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        line, *headers = head.decode().split("\r\n")
        method, target, _ = line.split(" ")
        self.asked.append(target)
        given = {k.lower(): v.strip() for k, _, v in (h.partition(":") for h in headers)}
        user, _, password = (
            base64.b64decode(given.get("proxy-authorization", "Basic ")[6:]).decode().partition(":")
        )
        self.users.append(user)
        if self.password and password != self.password:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        if self.answer:
            writer.write(self.answer)
            return
        onwards = await asyncio.open_connection("127.0.0.1", self.leads_to)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            onwards[1].write(head)
        await pipe((reader, writer), onwards)


@dataclass
class Socks5:
    """SOCKS5 for one user; `reply` 0 lets everything through to `leads_to`."""

    leads_to: int
    user: bytes = b""
    password: bytes = b""
    reply: int = 0
    asked: list[str] = field(default_factory=list)
    users: list[bytes] = field(default_factory=list)

    async def __call__(self, reader, writer):
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        wanted = 2 if self.password else 0
        if wanted not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(bytes([5, wanted]))
        if wanted == 2:
            _, length = await reader.readexactly(2)
            user = await reader.readexactly(length)
            [length] = await reader.readexactly(1)
            password = await reader.readexactly(length)
            self.users.append(user)
            writer.write(bytes([1, int(password != self.password)]))
            if password != self.password:
                return
        _, _, _, kind = await reader.readexactly(4)
        length = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        host = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host.decode() if kind == 3 else host.hex()}:{port}")
        writer.write(bytes([5, self.reply, 0, 1, 0, 0, 0, 0, 0, 0]))
        if self.reply == 0:
            await pipe((reader, writer), await asyncio.open_connection("127.0.0.1", self.leads_to))
