"""A `Tab` without a browser: a site of pages in memory, and a clock that tests move."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pageslots.wire import WaitFor
from pageslots_agent.ports import LoadFault, PageUnreadableError, Visit


class HandClock:
    """Time moves when somebody waits, and when a page takes its time."""

    def __init__(self, wall_ms: int = 1_790_000_000_000) -> None:
        self._now_ms = 0
        self._wall_ms = wall_ms

    def elapsed_ms(self) -> int:
        return self._now_ms

    def wall_ms(self) -> int:
        return self._wall_ms + self._now_ms

    def move(self, ms: int) -> None:
        self._now_ms += ms

    async def wait(self, event: asyncio.Event, ms: int) -> bool:
        until = self._now_ms + ms
        await asyncio.sleep(0)
        if not event.is_set():
            self._now_ms = max(self._now_ms, until)
        await asyncio.sleep(0)
        return event.is_set()


@dataclass(frozen=True)
class FakePage:
    """What the site answers at one URL."""

    html: str = ""
    status: int | None = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: LoadFault | None = None
    message: str = ""
    final_url: str | None = None
    text: str | None = None
    is_download: bool = False
    content_type: str = "text/html"
    unreadable: LoadFault | None = None
    milliseconds: int = 50


def linking(*urls: str, title: str = "page") -> FakePage:
    """A page of links."""
    links = "".join(f'<a href="{url}">to {url}</a>' for url in urls)
    return FakePage(f"<html><head><title>{title}</title></head><body><h1>{title}</h1>{links}</body></html>")


NOTHING = FakePage("<html><body>nothing here</body></html>", status=404)
Answer = FakePage | Callable[[int], FakePage]


class FakeTab:
    """Answers from `pages`; a callable gets the number of the visit to that URL, from 0."""

    def __init__(self, pages: Mapping[str, Answer], clock: HandClock, *, default: FakePage = NOTHING) -> None:
        self._pages = pages
        self._clock = clock
        self._default = default
        self._page = default
        self.visits: list[tuple[int, str]] = []
        self.on_visit: Callable[[str], None] = lambda url: None

    @property
    def visited(self) -> list[str]:
        return [url for _, url in self.visits]

    async def visit(self, url: str, *, timeout_ms: int, wait_for: WaitFor | None = None) -> Visit:
        await asyncio.sleep(0)
        nth = self.visited.count(url)
        self.visits.append((self._clock.elapsed_ms(), url))
        self.on_visit(url)
        answer = self._pages.get(url, self._default)
        page = answer(nth) if callable(answer) else answer
        if page.milliseconds > timeout_ms:
            page = replace(page, fault=LoadFault.TIMEOUT, status=None, milliseconds=timeout_ms)
        self._clock.move(page.milliseconds)
        self._page = page
        return Visit(
            url=url,
            final_url=page.final_url or url,
            status=page.status,
            headers=page.headers,
            fault=page.fault,
            message=page.message,
            is_download=page.is_download,
            content_type=page.content_type,
            bytes=len(page.html),
            milliseconds=page.milliseconds,
        )

    async def html(self, *, timeout_ms: int = 10_000, max_bytes: int = 32 * 1024 * 1024) -> str:
        await asyncio.sleep(0)
        if self._page.unreadable is not None:
            raise PageUnreadableError(self._page.unreadable, f"unreadable: {self._page.unreadable}")
        return self._page.html

    async def text(self, *, timeout_ms: int = 10_000) -> str:
        await asyncio.sleep(0)
        return self._page.html if self._page.text is None else self._page.text

    async def screenshot(self, *, timeout_ms: int = 15_000) -> bytes:
        await asyncio.sleep(0)
        return b"\x89PNG picture"
