"""An HTTP server on loopback addresses that remembers what was asked of it.

The shop and the sites of the tests are all of this shape: one program, several addresses or ports,
one handler that is told which of them was asked, and a log that proves what was fetched.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

LOG_LIMIT = 200_000
"""Hits that a log keeps; the oldest go first. A hit is about 0.5 KiB, so a full log is about 100 MiB."""

SHUTDOWN_SECONDS = 0.2
"""How long `close` waits for answers that are under way: hostile pages never finish theirs."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One request as it arrived.

    `at` is in seconds of the event loop's clock, `site` the name of the listener, `path` includes the
    query string, `host` is the Host header; headers that were not sent are empty.
    """

    at: float
    site: str
    method: str
    host: str
    path: str
    user_agent: str
    accept_language: str


class HitLog:
    """The hits of one server, oldest first; the last `LOG_LIMIT` are kept."""

    def __init__(self) -> None:
        self._hits: deque[Hit] = deque(maxlen=LOG_LIMIT)

    def __iter__(self) -> Iterator[Hit]:
        return iter(tuple(self._hits))

    def __len__(self) -> int:
        return len(self._hits)

    def add(self, hit: Hit) -> None:
        """Remember one hit."""
        self._hits.append(hit)

    def of(self, path: str, *, site: str | None = None) -> list[Hit]:
        """Hits whose path is `path`, with or without a query string, on one listener or on all."""
        return [
            hit for hit in self if hit.path.partition("?")[0] == path and (site is None or hit.site == site)
        ]

    def paths(self, *, site: str | None = None) -> list[str]:
        """The paths asked for, in order, with query strings."""
        return [hit.path for hit in self if site is None or hit.site == site]

    def clear(self) -> None:
        """Forget everything so far."""
        self._hits.clear()


@dataclass(frozen=True, slots=True)
class Listener:
    """Where one site listens: a loopback `address`, a `port` (0: any free one), and the `host` that its
    URLs name (default: the address; a name must resolve to the address, the server doesn't care).
    """

    address: str = "127.0.0.1"
    port: int = 0
    host: str | None = None


Answer = Callable[[str, web.Request], Awaitable[web.StreamResponse]]
"""Given the name of the listener and the request, the response. `web.HTTPException` may be raised."""


def html(body: str, *, status: int = 200) -> web.Response:
    """An HTML document that depends on the visitor's language."""
    return web.Response(
        text=body, status=status, content_type="text/html", headers={"Vary": "Accept-Language"}
    )


class LoopbackServer:
    """Serve `answer` on every listener: `async with LoopbackServer(…) as server: server.url("SG")`.

    `log` has every request as it arrived, before it is answered. A handler whose client has gone away is
    cancelled. Raises `OSError` on entry when an address or a port can't be used.
    """

    def __init__(self, listeners: Mapping[str, Listener], answer: Answer) -> None:
        self.log = HitLog()
        self._listeners = dict(listeners)
        self._answer = answer
        self._ports: dict[str, int] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        try:
            for name, listener in self._listeners.items():
                await self._listen(self._runner, name, listener)
        except BaseException:
            await self._runner.cleanup()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def port(self, name: str) -> int:
        """The port that the listener `name` got."""
        return self._ports[name]

    def url(self, name: str, path: str = "/") -> str:
        """The absolute URL of `path` (with its leading slash) on the listener `name`."""
        listener = self._listeners[name]
        return f"http://{listener.host or listener.address}:{self._ports[name]}{path}"

    async def _listen(self, runner: web.AppRunner, name: str, listener: Listener) -> None:
        site = web.TCPSite(runner, listener.address, listener.port)
        try:
            await site.start()
        except OSError as error:
            why = "is taken" if error.errno == errno.EADDRINUSE else f"can't be used: {error.strerror}"
            raise OSError(error.errno, f"{listener.address}:{listener.port} (site {name}) {why}") from error
        port = int(runner.addresses[-1][1])
        self._ports[name] = port
        self._names[listener.address, port] = name

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        address, port = request.get_extra_info("sockname", ("", 0))[:2]
        name = self._names.get((address, port))
        if name is None:  # the connection closed between its last byte and here
            raise web.HTTPServiceUnavailable
        self.log.add(
            Hit(
                at=asyncio.get_running_loop().time(),
                site=name,
                method=request.method,
                host=request.host,
                path=request.raw_path,
                user_agent=request.headers.get("User-Agent", ""),
                accept_language=request.headers.get("Accept-Language", ""),
            )
        )
        return await self._answer(name, request)
