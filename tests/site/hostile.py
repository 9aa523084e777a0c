"""A site that does to a crawler what sites have done to crawlers; `HOSTILE_PAGES` says what must come of it.

    async with HostileSite() as site:
        site.url("/redirect/neighbour")     # a page
        site.allowed_cidrs                  # what a pool must allow for the site to be reachable at all
        site.neighbour_hits                 # requests to the server that nobody may reach: must stay empty

Two servers: the site on 127.66.0.1, and a neighbour on 127.0.0.1 that stands for everything inside. A pool
that allows 127.66.0.0/16 and nothing else must never reach the neighbour. A browser on its own would follow
the redirects to 169.254.169.254 and 10.0.0.1: visit those pages only behind what refuses such addresses.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network
from types import TracebackType
from typing import Self

from aiohttp import WSMsgType, web
from tests.site import hostile_pages as documents
from tests.site.hostile_table import HOSTILE_PAGES, HostilePage, hostile_page

from pageslots.demo.catalogue import PRODUCTS
from pageslots.demo.pictures import product_picture
from pageslots.demo.serving import Hit, HitLog, Listener, LoopbackServer
from pageslots.demo.webfont import web_font

__all__ = ["HOSTILE_PAGES", "HostilePage", "HostileSite", "hostile_page"]

SITE, NEIGHBOUR = "site", "neighbour"
RETRY_SECONDS = 7
FILM_BYTES = 800_000

WORKER = """
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => event.respondWith(
  new Response("<h1>from the worker</h1>", {headers: {"Content-Type": "text/html"}})));
"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HostileSite:
    """The running site and its neighbour. `log` has every request to either."""

    def __init__(self, *, address: str = "127.66.0.1", neighbour_address: str = "127.0.0.1") -> None:
        self._address = address
        self._server = LoopbackServer(
            {SITE: Listener(address=address), NEIGHBOUR: Listener(address=neighbour_address)}, self._answer
        )
        self._documents: dict[str, str] = {}
        self._files: dict[str, tuple[bytes, str]] = {}
        self._sessions = itertools.count(1)
        self._handlers: dict[str, Handler] = {
            "status": _status, "redirect": self._redirect, "auth": _auth, "download": _download, "pdf": _pdf,
            "links": self._links, "linked": _linked, "calendar": _calendar, "session": self._session,
            "spelled": self._spelled, "one": _one, "charset": _charset, "limited": _limited, "late": _late,
            "huge": _huge, "heavy": self._heavy, "worker.js": _worker, "socket": _socket, "frames": _frames,
            "popups": _popup,
        }  # fmt: skip

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        self._documents = documents.fixed_documents(self._server.url(NEIGHBOUR).rstrip("/"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    @property
    def log(self) -> HitLog:
        """Every request."""
        return self._server.log

    @property
    def allowed_cidrs(self) -> tuple[str, ...]:
        """What a pool's `network.allowedCidrs` must be: the site is inside, the neighbour is not."""
        return (str(ip_network(f"{self._address}/16", strict=False)),)

    @property
    def neighbour_hits(self) -> list[Hit]:
        """Requests that reached the server which nobody may reach."""
        return [hit for hit in self.log if hit.site == NEIGHBOUR]

    @property
    def origin(self) -> str:
        """`http://host:port` of the site."""
        return self.url("")

    @property
    def port(self) -> int:
        """The site's port."""
        return self._server.port(SITE)

    def url(self, path: str = "/") -> str:
        """The absolute URL of a path of the site."""
        return self._server.url(SITE, path)

    async def _answer(self, name: str, request: web.Request) -> web.StreamResponse:
        if name == NEIGHBOUR:
            return web.Response(text="the secret of the neighbour")
        fixed = self._documents.get(request.path)
        if fixed is not None:
            return _html(fixed)
        handler = self._handlers.get(request.path.split("/")[1])
        return _html("nothing here", status=404) if handler is None else await handler(request)

    async def _redirect(self, request: web.Request) -> web.StreamResponse:
        targets = {
            "loop": "/redirect/loop",
            "metadata": "http://169.254.169.254/latest/meta-data/",
            "neighbour": self._server.url(NEIGHBOUR, "/redirected"),
            "private": "http://10.0.0.1/",
            "file": "file:///etc/passwd",
            "chrome": "chrome://version",
            "javascript": "javascript:document.write('ran')",
            "data": "data:text/html,<h1>from data</h1>",
        }
        target = targets.get(_last(request))
        if target is None:
            left = int(request.query.get("left", "0"))
            target = f"/redirect/chain?left={left - 1}" if left > 1 else "/redirect/end"
        return web.Response(status=302, headers={"Location": target})

    async def _links(self, request: web.Request) -> web.StreamResponse:
        if _last(request) == "odd":
            return _html(documents.odd_links_page(self.origin))
        return await _stream(request, documents.many_links(int(request.query.get("count", "100"))))

    async def _session(self, request: web.Request) -> web.StreamResponse:
        return _html(documents.session_page(_last(request), next(self._sessions)))

    async def _spelled(self, _request: web.Request) -> web.StreamResponse:
        return _html(documents.spelled_page(self._address, self.port))

    async def _heavy(self, request: web.Request) -> web.StreamResponse:
        name = _last(request)
        if name not in self._files:
            made = await asyncio.to_thread(_heavy_file, name)
            if made is None:
                return _html("nothing here", status=404)
            self._files[name] = made
        body, content_type = self._files[name]
        return web.Response(body=body, content_type=content_type, headers={"Cache-Control": "max-age=600"})


def _last(request: web.Request) -> str:
    return request.path.rpartition("/")[2]


def _html(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


async def _stream(
    request: web.Request, pieces: Iterable[bytes], content_type: str = "text/html"
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": content_type})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    return response


async def _status(request: web.Request) -> web.StreamResponse:
    return _html(documents.document(f"<h1>{_last(request)}</h1>"), status=int(_last(request)))


async def _auth(_request: web.Request) -> web.StreamResponse:
    return web.Response(
        status=401, headers={"WWW-Authenticate": 'Basic realm="hostile"'}, text="who are you?"
    )


async def _download(request: web.Request) -> web.StreamResponse:
    disposition = (
        {"Content-Disposition": 'attachment; filename="file.bin"'} if _last(request) == "attachment" else {}
    )
    body = documents.small_file()
    return web.Response(body=body, content_type="application/octet-stream", headers=disposition)


async def _pdf(_request: web.Request) -> web.StreamResponse:
    return web.Response(body=documents.pdf(), content_type="application/pdf")


async def _linked(request: web.Request) -> web.StreamResponse:
    return _html(documents.document(f"<h1>page {_last(request)}</h1>"))


async def _one(_request: web.Request) -> web.StreamResponse:
    return _html(documents.document("<h1>one page, many names</h1>"))


async def _calendar(request: web.Request) -> web.StreamResponse:
    year, month = request.path.split("/")[2:4]
    return _html(documents.calendar(int(year), int(month)))


async def _charset(request: web.Request) -> web.StreamResponse:
    body, content_type = documents.encoded_page(_last(request))
    return web.Response(body=body, headers={"Content-Type": content_type})


async def _limited(request: web.Request) -> web.StreamResponse:
    later = {
        "seconds": str(RETRY_SECONDS),
        "date": format_datetime(datetime.now(UTC) + timedelta(seconds=RETRY_SECONDS), usegmt=True),
        "absurd": str(365 * 24 * 3600),
        "nonsense": "soon",
    }
    return web.Response(status=429, headers={"Retry-After": later[_last(request)]}, text="too many requests")


async def _late(request: web.Request) -> web.StreamResponse:
    kind = _last(request)
    if kind == "no-answer":
        await asyncio.Event().wait()  # until the client goes: the server cancels the handler
    if kind == "truncated":
        response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Length": "100000"})
        await response.prepare(request)
        await response.write(b"<!doctype html><p>half a page")
        if request.transport is not None:
            request.transport.close()
        return response
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    await response.prepare(request)
    await response.write(b"<!doctype html><p>")
    while True:
        await asyncio.sleep(0.1)
        await response.write(b"x")


async def _huge(request: web.Request) -> web.StreamResponse:
    if _last(request) == "bomb":
        body = await asyncio.to_thread(documents.gzip_bomb)
        return web.Response(body=body, headers={"Content-Type": "text/html", "Content-Encoding": "gzip"})
    piece = b"<p>" + b"word " * 13_000
    return await _stream(request, itertools.chain([b"<!doctype html>"], itertools.repeat(piece)))


async def _worker(_request: web.Request) -> web.StreamResponse:
    return web.Response(text=WORKER, content_type="text/javascript")


async def _socket(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
    return socket


async def _frames(request: web.Request) -> web.StreamResponse:
    return _html(documents.frame(int(request.query.get("depth", "10"))))


async def _popup(request: web.Request) -> web.StreamResponse:
    return _html(documents.document(f"<p>window {_last(request)}<script>alert('here')</script>"))


def _heavy_file(name: str) -> tuple[bytes, str] | None:
    if name.startswith("picture-") and name.endswith(".png"):
        return product_picture(list(PRODUCTS)[int(name[8:-4])]), "image/png"
    files = {
        "font.ttf": (web_font(), "font/ttf"),
        "film.mp4": (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom".ljust(FILM_BYTES, b"\0"), "video/mp4"),
        "style.css": (
            b"@font-face{font-family:K;src:url(/heavy/font.ttf)} body{font-family:K,sans-serif}"
            + b"/* rule */" * 3000,
            "text/css",
        ),
        "script.js": (b"document.title='heavy';" + b"/* code */" * 9000, "text/javascript"),
    }
    return files.get(name)
