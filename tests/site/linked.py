"""A site of many linked pages whose whole set of URLs is known: what a crawl must find, no more and no less.

    async with LinkedSite(pages=2000, hosts=2) as site:
        site.start_urls                  # page 0 of each host
        site.urls(host=0, max_depth=3)   # what a crawl with scope `host` from there must visit

Pages are numbered per host. Page n links to its children 5n + 1 … 5n + 5 (so every page is reached, at a
known depth), back to page 0, to its parent, to three other pages of its host, and to two of the next host.
"""

from functools import cached_property
from html import escape
from types import TracebackType
from typing import Literal, Self

from aiohttp import web

from pageslots.demo.serving import HitLog, Listener, LoopbackServer

FANOUT = 5

Trap = Literal["calendar", "sessions", "spellings", "outside", "files"]


class LinkedSite:
    """`pages` pages on each of `hosts` addresses (127.67.0.1, .2, …), on one free port each.

    `traps` add links to every page: `calendar` (`/calendar/<n>`, endless), `sessions` (`/echo?sid=…`, never
    the same twice), `spellings` (other spellings of pages that exist: the set of URLs stays the same),
    `outside` (hosts that must not be asked), `files` (`mailto:`, `javascript:` and the like). `urls` has none
    of them.
    """

    def __init__(self, *, pages: int = 2000, hosts: int = 1, traps: frozenset[Trap] = frozenset()) -> None:
        self.pages = pages
        self.hosts = hosts
        self._traps = traps
        self._served = 0
        self._server = LoopbackServer(
            {str(host): Listener(address=f"127.67.0.{host + 1}") for host in range(hosts)}, self._answer
        )

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    @property
    def log(self) -> HitLog:
        """Every request; `site` is the host's number as text."""
        return self._server.log

    @property
    def start_urls(self) -> list[str]:
        """Page 0 of each host."""
        return [self.url(0, host=host) for host in range(self.hosts)]

    def url(self, page: int, *, host: int = 0) -> str:
        """The URL of one page."""
        return self._server.url(str(host), f"/page/{page}")

    def urls(self, *, host: int = 0, max_depth: int | None = None) -> set[str]:
        """What a crawl must visit that starts at page 0 of a host and stays on it, to `max_depth` links."""
        return {
            self.url(page, host=host)
            for page in range(self.pages)
            if max_depth is None or self.depth(page) <= max_depth
        }

    def depth(self, page: int) -> int:
        """How many links page n is away from page 0 of its host, by the shortest way."""
        return self._depths[page]

    def links(self, page: int) -> list[int]:
        """The pages of the same host that a page links to, in order."""
        children = [
            child for child in range(FANOUT * page + 1, FANOUT * page + FANOUT + 1) if child < self.pages
        ]
        across = [(page * 7 + 3) % self.pages, (page * 13 + 5) % self.pages, (page * 31 + 11) % self.pages]
        return [0, max(0, (page - 1) // FANOUT), *children, *across]

    @cached_property
    def _depths(self) -> list[int]:
        depths = [-1] * self.pages
        depths[0] = 0
        ring = [0]
        while ring:
            found = []
            for page in ring:
                for link in self.links(page):
                    if depths[link] < 0:
                        depths[link] = depths[page] + 1
                        found.append(link)
            ring = found
        return depths

    async def _answer(self, name: str, request: web.Request) -> web.StreamResponse:
        host = int(name)
        match request.path.strip("/").split("/"):
            case ["page", number] if number.isdigit() and int(number) < self.pages:
                return _html(self._page(int(number), host))
            case ["calendar", number]:
                return _html(
                    f"<h1>day {escape(number)}</h1><a href='/calendar/{int(number) + 1}'>tomorrow</a>"
                )
            case ["echo"]:
                return _html(f"<h1>hello</h1><a href='/echo?sid={self._next()}'>on</a>")
            case _:
                return _html("<h1>not here</h1>", status=404)

    def _page(self, page: int, host: int) -> str:
        hrefs = [f"/page/{link}" for link in self.links(page)]
        if self.hosts > 1:
            other = (host + 1) % self.hosts
            hrefs += [self.url(0, host=other), self.url(page, host=other)]
        hrefs += [href for trap in sorted(self._traps) for href in self._trap_links(trap, page, host)]
        links = "\n".join(f'<a href="{escape(href)}">{number}</a>' for number, href in enumerate(hrefs))
        return f"<!doctype html><title>page {page}</title><h1>page {page} of host {host}</h1>\n{links}"

    def _trap_links(self, trap: Trap, page: int, host: int) -> list[str]:
        match trap:
            case "calendar":
                return [f"/calendar/{page}"]
            case "sessions":
                return [f"/echo?sid={self._next()}"]
            case "spellings":
                origin = self._server.url(str(host), "").replace("http", "HTTP", 1)
                return [f"{origin}/page/x/../{page}#here", f"/./page/{page}#", f"\\page\\{page}"]
            case "outside":
                return [f"http://outside.invalid/{page}", "//elsewhere.invalid/"]
            case "files":
                return ["mailto:shop@example.org", "javascript:void(0)", "data:text/plain,x", "tel:1", "#top"]

    def _next(self) -> int:
        self._served += 1
        return self._served


def _html(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")
