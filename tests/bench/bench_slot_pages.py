"""Pages and one-page requests per second of one warm slot, beside a bare Playwright loop on the same pages.

The loop is `goto` and `content` in one page; the slot loads the same URLs, reads their HTML, looks for
challenge pages, extracts a value and writes records. Nothing is blocked in either, except where a row says so:
blocking must not count as speed.
"""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

from tests.bench.bare import BareWorker, bare_worker
from tests.bench.interleaving import Pairs, interleave
from tests.bench.report import RATIO, Row, at_least, plain, spread
from tests.bench.slots import BenchSlot, chromium, ready_slot
from tests.bench.small_site import SmallSite

from pageslots.local.runtime import ProcessRuntime
from pageslots.wire import Extract

PAGES = 40
REQUESTS = 30
ROUNDS = 5
PAGES_GOAL = 0.9
REQUESTS_GOAL = 0.7
EXTRACT = (Extract("title", css="h1"), Extract("price", css=".price"))


def main() -> list[Row]:
    """Run it."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    executable = await chromium()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runtime = await stack.enter_async_context(ProcessRuntime(folder))
        site = await stack.enter_async_context(SmallSite())
        slot = await stack.enter_async_context(ready_slot(runtime, 0, executable, blocked=()))
        blocking = await stack.enter_async_context(ready_slot(runtime, 1, executable))
        bare = await stack.enter_async_context(bare_worker(executable))
        urls = _Urls(site)
        for warm in (slot, blocking):
            await warm.attempt(urls.take(5), extract=EXTRACT)
        await bare.load(urls.take(5))
        pages = await interleave(
            lambda: _pages(slot, urls, folder), lambda: _bare(bare, urls, PAGES), rounds=ROUNDS
        )
        blocked = await interleave(
            lambda: _pages(blocking, urls, folder / "blocking"), lambda: _bare(bare, urls, PAGES), rounds=3
        )
        written = await interleave(
            lambda: _requests(slot, urls, folder), lambda: _bare(bare, urls, REQUESTS), rounds=ROUNDS
        )
        preview = await interleave(
            lambda: _requests(slot, urls, None), lambda: _bare(bare, urls, REQUESTS), rounds=ROUNDS
        )
    return [
        _row("pages per second of a slot ÷ bare loop", pages, PAGES_GOAL, "pages/s"),
        plain(
            "the same with image, font and media blocked",
            blocked.ratio,
            RATIO,
            peer=f"bare {spread(blocked.theirs)} pages/s",
            note=f"slot {spread(blocked.ours)} pages/s",
        ),
        _row(
            "one-page requests per second (records to a file) ÷ bare loop",
            written,
            REQUESTS_GOAL,
            "requests/s",
        ),
        _row("one-page requests per second (no output) ÷ bare loop", preview, REQUESTS_GOAL, "requests/s"),
    ]


def _row(name: str, pairs: Pairs, goal: float, unit: str) -> Row:
    note = f"slot {spread(pairs.ours)} {unit}, {len(pairs.ours)} pairs"
    return at_least(name, pairs.ratio, RATIO, goal, peer=f"bare {spread(pairs.theirs)} pages/s", note=note)


class _Urls:
    """URLs that nobody has had before: no attempt and no cache has seen the page itself."""

    def __init__(self, site: SmallSite) -> None:
        self._site = site
        self._numbers = count()

    def take(self, number: int) -> list[str]:
        return [self._site.url(next(self._numbers)) for _ in range(number)]


async def _pages(slot: BenchSlot, urls: _Urls, folder: Path) -> float:
    """Pages per second of one attempt with many start URLs."""
    began = time.perf_counter()
    await slot.attempt(urls.take(PAGES), extract=EXTRACT, output=folder)
    return PAGES / (time.perf_counter() - began)


async def _requests(slot: BenchSlot, urls: _Urls, folder: Path | None) -> float:
    """Attempts of one page per second, back to back."""
    began = time.perf_counter()
    for url in urls.take(REQUESTS):
        await slot.attempt([url], extract=EXTRACT, output=folder)
    return REQUESTS / (time.perf_counter() - began)


async def _bare(bare: BareWorker, urls: _Urls, number: int) -> float:
    return number / await bare.load(urls.take(number))
