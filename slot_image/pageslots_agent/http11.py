"""A small HTTP/1.1 server: asyncio streams and h11, keep-alive, every size and wait bounded.

An agent answers one operator, a kubelet and a scraper, so it needs no framework: aiohttp alone would cost
each idle slot 10 MiB.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

import h11

MAX_HEAD_BYTES = 16 * 1024
MAX_CONNECTIONS = 64
HEAD_SECONDS = 10.0  # from a request's first byte to the end of its headers
BODY_SECONDS = 30.0
WRITE_SECONDS = 30.0
IDLE_SECONDS = 90.0  # between two requests of a connection
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read completely. Header names are lower case; of repeated parameters the last counts."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """One answer."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]


class _BadRequestError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpServer:
    """Serves `handler` on one address; owns its connections and ends them in `close`."""

    def __init__(self, handler: Handler, *, max_body_bytes: int) -> None:
        self._handler = handler
        self._max_body_bytes = max_body_bytes
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[None]] = set()  # those with a request in hand
        self._closing = False

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and tell the address; raises OSError when it is taken."""
        self._server = await asyncio.start_server(self._accept, host, port, limit=_READ_BYTES)
        address = self._server.sockets[0].getsockname()
        return str(address[0]), int(address[1])

    async def close(self, *, grace_seconds: float) -> None:
        """Take no new connection; answers under way have `grace_seconds`, then their connections end."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task in self._connections - self._answering:
            task.cancel()
        if self._answering:
            await asyncio.wait(self._answering, timeout=grace_seconds)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if len(self._connections) <= MAX_CONNECTIONS:
                await self._serve(_Connection(reader, writer, self._max_body_bytes))
        except (OSError, TimeoutError, h11.ProtocolError):
            pass  # the peer went away, dawdled, or broke the protocol on the way out: nobody left to tell
        except asyncio.CancelledError:
            if not self._closing:
                raise
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, connection: "_Connection") -> None:
        while not self._closing:
            try:
                request = await connection.read_request()
            except _BadRequestError as refused:
                await connection.answer(Response(refused.status, str(refused).encode(), "text/plain"))
                return
            if request is None:
                return
            task = asyncio.current_task()
            assert task is not None
            self._answering.add(task)
            try:
                await connection.answer(await self._handler(request), last=self._closing)
            finally:
                self._answering.discard(task)
            if not connection.next_cycle():
                return


class _Connection:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_body_bytes: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._max_body_bytes = max_body_bytes
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)

    async def read_request(self) -> Request | None:
        """The next request, or None at the end of the connection; raises _BadRequestError."""
        try:
            head = await self._read_head()
            if head is None:
                return None
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._read_body(headers)
        except h11.RemoteProtocolError as error:
            raise _BadRequestError(error.error_status_hint, str(error)) from None
        target = urlsplit(head.target.decode("latin-1"))
        query = {name: values[-1] for name, values in parse_qs(target.query).items()}
        return Request(head.method.decode(), unquote(target.path), query, headers, body)

    async def _read_head(self) -> h11.Request | None:
        async with asyncio.timeout(IDLE_SECONDS) as deadline:
            begun = False
            while True:
                event = self._h11.next_event()
                if isinstance(event, h11.Request):
                    return event
                if event is not h11.NEED_DATA:
                    return None
                await self._receive()
                if not begun:
                    begun = True
                    deadline.reschedule(asyncio.get_running_loop().time() + HEAD_SECONDS)

    async def _read_body(self, headers: Mapping[str, str]) -> bytes:
        declared = headers.get("content-length", "0")
        if int(declared) > self._max_body_bytes:
            raise _BadRequestError(413, f"body of {declared} bytes; at most {self._max_body_bytes}")
        if self._h11.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await self._send(self._h11.send(go_on))
        parts: list[bytes] = []
        size = 0
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.EndOfMessage):
                return b"".join(parts)
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
                size += len(event.data)
                if size > self._max_body_bytes:
                    raise _BadRequestError(413, f"body of more than {self._max_body_bytes} bytes")
            elif event is h11.NEED_DATA:
                await self._receive()
            else:
                raise _BadRequestError(400, "the body ended early")

    async def _receive(self) -> None:
        self._h11.receive_data(await self._reader.read(_READ_BYTES))

    async def answer(self, response: Response, *, last: bool = False) -> None:
        if self._h11.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        headers = [
            ("content-length", str(len(response.body))),
            ("content-type", response.content_type),
            *response.headers.items(),
            *([("connection", "close")] if last else []),
        ]
        parts = [self._h11.send(h11.Response(status_code=response.status, headers=headers))]
        with contextlib.suppress(h11.LocalProtocolError):  # HEAD and 204 have no body
            parts.append(self._h11.send(h11.Data(data=response.body)) if response.body else b"")
        parts.append(self._h11.send(h11.EndOfMessage()))
        await self._send(b"".join(part for part in parts if part))

    async def _send(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            async with asyncio.timeout(WRITE_SECONDS):
                await self._writer.drain()

    def next_cycle(self) -> bool:
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            return True
        return False
