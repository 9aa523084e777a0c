"""The proxy inside the agent that Chromium always talks to.

It authenticates upstream (Playwright refuses SOCKS5 with credentials), counts the bytes that a proxy bills
(CDP misses handshakes), looks at addresses before it connects, changes the way out without a new browser, and
remembers per host why a connection failed. It listens on loopback, for the agent's own browser.

CONNECT becomes a tunnel. Of plain http:// requests only the heads are read and rewritten; answers pass as
they are, since a strict parser would refuse servers that Chromium puts up with. That works because Chromium
never sends requests for two origins over one connection; one that does is closed.
"""

import asyncio
import contextlib
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from pageslots_agent.logs import warn
from pageslots_agent.ports import LoadFault
from pageslots_agent.upstream import BUFFER_BYTES, Link, Meter, Upstream, UpstreamError

MAX_PAGE_BYTES = 128 * 1024 * 1024
"""Received for one page, all its parts together: an endless body must not fill the renderer (case W12)."""
HEAD_SECONDS = 60.0  # Chromium opens connections ahead of use
IDLE_SECONDS = 300.0
MAX_CONNECTIONS = 512
_KEPT_FAULTS = 128
_REFUSED = b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_SWEEP_SECONDS = 15.0
_PROXY_CONNECTION = re.compile(rb"(?im)^proxy-connection:")
_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d+)[ \t]*\r\n")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding:")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the last connection to a host failed."""

    host: str
    fault: LoadFault
    message: str


class FaultBook:
    """Faults of the page under way, by host; bounded, the oldest go first."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}

    def clear(self) -> None:
        """A new page begins."""
        self._faults.clear()

    def note(self, host: str, error: UpstreamError) -> None:
        """Remember why `host` was not reached."""
        self._faults.pop(host, None)
        self._faults[host] = Fault(host, error.fault, str(error))
        if len(self._faults) > _KEPT_FAULTS:
            del self._faults[next(iter(self._faults))]

    def of(self, host: str) -> Fault | None:
        """Why `host` was not reached, if it wasn't."""
        return self._faults.get(host)


@dataclass(slots=True)
class _Activity:
    last: float


class Relay:
    """`upstream` may change at any time; open connections stay on the way that they took."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.faults = FaultBook()
        self.meter = Meter()
        self._page_began = 0
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], _Activity] = {}
        self._sweeper: asyncio.Task[None] | None = None
        self._closing = False

    def begin_page(self) -> None:
        """A new page: its faults and its allowance of bytes begin."""
        self.faults.clear()
        self._page_began = self.meter.received

    @property
    def overflowed(self) -> bool:
        """Whether the page has had more than `MAX_PAGE_BYTES`; its connections are closed then."""
        return self.meter.received - self._page_began > MAX_PAGE_BYTES

    async def start(self) -> int:
        """Listen on loopback; returns the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=BUFFER_BYTES)
        self._sweeper = asyncio.create_task(self._sweep(), name="relay-sweeper")
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """End all connections."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        owned = [*self._connections, *([self._sweeper] if self._sweeper is not None else [])]
        for task in owned:
            task.cancel()
        await asyncio.gather(*owned, return_exceptions=True)

    def drop_connections(self) -> None:
        """End what is open: the browser behind it is gone, or must take a new way out."""
        for task in self._connections:
            task.cancel()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for task, activity in self._connections.items():
                if activity.last + IDLE_SECONDS < loop.time():
                    task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        activity = _Activity(asyncio.get_running_loop().time())
        self._connections[task] = activity
        try:
            if len(self._connections) <= MAX_CONNECTIONS:
                await self._serve(Link(reader, writer), activity)
            else:
                warn("relay.full", connections=MAX_CONNECTIONS)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one side went away, or never said what it wanted: Chromium sees a closed connection
        except asyncio.CancelledError:
            pass  # closed by `close`, `drop_connections` or for idleness; nothing comes after this line
        finally:
            self._connections.pop(task, None)
            writer.close()

    async def _serve(self, client: Link, activity: _Activity) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await client.reader.readuntil(b"\r\n\r\n")
        wish = _Wish.read(head)
        if wish is None:
            client.writer.write(_REFUSED % b"400 Bad Request")
            return
        upstream = self.upstream
        connect = upstream.tunnel if wish.is_tunnel else upstream.plain
        try:
            link = await connect(wish.host, wish.port, self.meter)
        except UpstreamError as error:
            self.faults.note(wish.host, error)
            if wish.is_tunnel:
                client.writer.write(_REFUSED % b"502 Bad Gateway")
            return  # a plain request gets no answer: any status would look like the site's
        try:
            plain = None if wish.is_tunnel else _Plain(upstream, head, wish.netloc)
            await self._join(client, link, activity, plain)
        finally:
            link.writer.close()

    async def _join(self, client: Link, link: Link, activity: _Activity, plain: "_Plain | None") -> None:
        """Pass bytes both ways until either side ends."""
        if plain is None:
            client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            outwards = self._pump_out(client.reader, link.writer, activity)
        else:
            outwards = self._requests_out(client.reader, link.writer, activity, plain)
        directions = [
            asyncio.ensure_future(outwards),
            asyncio.ensure_future(self._pump_in(link.reader, client.writer, activity)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _pump_out(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, activity: _Activity
    ) -> None:
        clock = asyncio.get_running_loop().time
        while data := await reader.read(BUFFER_BYTES):
            self.meter.sent += len(data)
            activity.last = clock()
            writer.write(data)
            await writer.drain()

    async def _pump_in(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, activity: _Activity
    ) -> None:
        clock = asyncio.get_running_loop().time
        while data := await reader.read(BUFFER_BYTES):
            self.meter.received += len(data)
            if self.overflowed:
                return
            activity.last = clock()
            writer.write(data)
            await writer.drain()

    async def _requests_out(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, activity: _Activity, plain: "_Plain"
    ) -> None:
        """Rewrite request heads, pass bodies; ends at EOF or at what Chromium never sends."""
        head = plain.first_head
        with contextlib.suppress(asyncio.IncompleteReadError):
            while (rewritten := plain.rewrite(head)) is not None:
                writer.write(rewritten)
                self.meter.sent += len(rewritten)
                await writer.drain()
                left = plain.body_bytes(head)
                while left > 0 and (data := await reader.read(min(left, BUFFER_BYTES))):
                    left -= len(data)
                    self.meter.sent += len(data)
                    activity.last = asyncio.get_running_loop().time()
                    writer.write(data)
                    await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
                activity.last = asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the first head of a connection asks for."""

    is_tunnel: bool
    host: str
    port: int
    netloc: str

    @classmethod
    def read(cls, head: bytes) -> "_Wish | None":
        """None: not what a browser says to a proxy."""
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3:
            return None
        is_tunnel = words[0] == "CONNECT"
        try:
            parts = urlsplit(f"//{words[1]}" if is_tunnel else words[1])
            host, port = parts.hostname, parts.port or 80
        except ValueError:
            return None
        if not host or (not is_tunnel and parts.scheme != "http"):
            return None
        return cls(is_tunnel, host, port, parts.netloc)


@dataclass(frozen=True, slots=True)
class _Plain:
    """The http:// requests of one connection."""

    upstream: Upstream
    first_head: bytes
    netloc: str

    def rewrite(self, head: bytes) -> bytes | None:
        """The head as the next server expects it; None for another origin or a body without a length."""
        line, _, rest = head.partition(b"\r\n")
        method, _, tail = line.partition(b" ")
        target, _, version = tail.rpartition(b" ")
        prefix = b"http://" + self.netloc.encode("latin-1")
        if not target.startswith(prefix) or _CHUNKED.search(rest):
            return None
        path = target[len(prefix) :]
        if path[:1] not in {b"/", b"?", b""}:
            return None  # a longer host name that begins alike
        if not self.upstream.absolute_form:
            target = path if path.startswith(b"/") else b"/" + path
        # in its place: without a proxy Chromium says `Connection` there, and some sites look at the order
        headers = _PROXY_CONNECTION.sub(b"Connection:", rest).removesuffix(b"\r\n")
        return b"%b %b %b\r\n%b%b\r\n" % (method, target, version, headers, self.upstream.plain_headers)

    def body_bytes(self, head: bytes) -> int:
        """How many bytes of body follow the head."""
        length = _LENGTH.search(head)
        return int(length.group(1)) if length else 0
