"""The agent's HTTP server over real sockets: what passes, what is cut off, how it ends."""

import asyncio
import contextlib

import pytest
from tests.fakes.vtime import until

from pageslots_agent import http11
from pageslots_agent.http11 import HttpServer, Request, Response


class Serving:
    """A server, raw connections to it, and the requests that reached its handler."""

    def __init__(self, answer=None, *, max_body_bytes=1000):
        self.seen: list[Request] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._answer = answer
        self.server = HttpServer(self._handle, max_body_bytes=max_body_bytes)

    async def _handle(self, request):
        self.seen.append(request)
        if self._answer is not None:
            return await self._answer(request)
        return Response(200, request.body or b"{}")

    async def __aenter__(self):
        self.address = await self.server.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        await self.server.close(grace_seconds=1)
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def connect(self):
        reader, writer = await asyncio.open_connection(*self.address)
        self._writers.append(writer)
        return reader, writer

    async def say(self, text: bytes) -> bytes:
        """Everything that comes back until the server closes."""
        reader, writer = await self.connect()
        writer.write(text)
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(5):
                return await reader.read()
        return b""


def get(path, *, close=False):
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n{'Connection: close' if close else 'X: y'}\r\n\r\n".encode()


async def one_answer(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    return head.split(b"\r\n")[0], await reader.readexactly(int(length.split(b":")[1]))


def test_requests_of_one_connection_are_answered_in_turn():
    async def scenario():
        async with Serving() as serving:
            reader, writer = await serving.connect()
            writer.write(
                get("/a?x=1&x=2&y=%20z") + b"PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
            )
            assert await one_answer(reader) == (b"HTTP/1.1 200 ", b"{}")
            assert await one_answer(reader) == (b"HTTP/1.1 200 ", b"abc")
            first, second = serving.seen
            assert (first.method, first.path, first.query) == ("GET", "/a", {"x": "2", "y": " z"})
            assert (second.method, second.body) == ("PUT", b"abc")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", b"413"),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001, b"413"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * http11.MAX_HEAD_BYTES, b"431"),
        (b"GET /\r\n\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00 this is TLS\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
    ],
)
def test_what_is_too_big_or_broken_is_refused_and_closed(text, status):
    async def scenario():
        async with Serving() as serving:
            answer = await serving.say(text)
            assert answer.split()[1] == status
            assert serving.seen == []

    asyncio.run(scenario())


def test_a_body_of_the_largest_size_passes():
    async def scenario():
        async with Serving() as serving:
            text = (
                b"PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n"
                + b"x" * 1000
            )
            assert (await serving.say(text)).endswith(b"x" * 1000)

    asyncio.run(scenario())


def test_a_client_that_dawdles_is_cut_off(monkeypatch):
    monkeypatch.setattr(http11, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(http11, "BODY_SECONDS", 0.1)
    monkeypatch.setattr(http11, "IDLE_SECONDS", 0.2)

    async def scenario():
        async with Serving() as serving:
            assert await serving.say(b"") == b""
            assert await serving.say(b"GET / HT") == b""
            assert await serving.say(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na") == b""
            assert serving.seen == []

    asyncio.run(scenario())


def test_connections_beyond_the_bound_are_closed(monkeypatch):
    monkeypatch.setattr(http11, "MAX_CONNECTIONS", 2)

    async def scenario():
        async with Serving() as serving:
            held = [await serving.connect() for _ in range(2)]
            for _, writer in held:
                writer.write(get("/held"))
            for reader, _ in held:
                await one_answer(reader)
            assert await serving.say(get("/")) == b""

    asyncio.run(scenario())


def test_closing_lets_an_answer_under_way_pass_and_ends_idle_connections_at_once():
    async def scenario():
        go = asyncio.Event()

        async def slow(_):
            await go.wait()
            return Response(200, b"late")

        async with Serving(slow) as serving:
            idle_reader, _ = await serving.connect()
            reader, writer = await serving.connect()
            writer.write(get("/"))
            await until(lambda: bool(serving.seen))
            closing = asyncio.create_task(serving.server.close(grace_seconds=5))
            assert await idle_reader.read() == b""
            go.set()
            assert await one_answer(reader) == (b"HTTP/1.1 200 ", b"late")
            assert await reader.read() == b""
            await closing

    asyncio.run(scenario())


def test_closing_does_not_wait_longer_than_its_grace():
    async def scenario():
        async def never(_):
            await asyncio.Event().wait()

        async with Serving(never) as serving:
            reader, writer = await serving.connect()
            writer.write(get("/"))
            await until(lambda: bool(serving.seen))
            async with asyncio.timeout(5):
                await serving.server.close(grace_seconds=0.05)
            assert await reader.read() == b""

    asyncio.run(scenario())


def test_an_answer_without_content_has_no_body():
    async def scenario():
        async def nothing(_):
            return Response(204)

        async with Serving(nothing) as serving:
            answer = await serving.say(get("/", close=True))
            assert answer.startswith(b"HTTP/1.1 204 ")
            assert answer.endswith(b"\r\n\r\n")

    asyncio.run(scenario())
