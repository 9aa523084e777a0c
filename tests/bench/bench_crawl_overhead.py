"""What the crawl adds to each page, with a tab that answers at once.

The goal for a slot, 0.9 of a bare loop at about 65 ms a page, leaves 7 ms.
"""

import asyncio
import tempfile
import time

from tests.bench.report import Row, at_most
from tests.fakes.crawls import a_spec
from tests.fakes.site_tab import FakePage, FakeTab, HandClock

from pageslots.wire import Extract, Follow
from pageslots_agent.crawl import start_attempt

PAGES = 1_000
SHOP = "https://shop.example/"
PARAGRAPH = "<p class='text'>Kettles, pots and pans of all sizes, made to last.</p>"
GOAL_MS = 7


def main() -> list[Row]:
    """Run it."""
    pages = {f"{SHOP}{i}": _page(i) for i in range(PAGES)}
    with tempfile.TemporaryDirectory() as folder:
        spec = a_spec(
            f"{SHOP}0",
            follow=Follow("host"),
            max_pages=PAGES,
            extract=(Extract("heading", css="h1"), Extract("price", css=".price")),
            output_uri=folder,
            obey_robots=False,
        )
        tab = FakeTab(pages, HandClock())
        began, cpu = time.perf_counter(), time.process_time()
        report = asyncio.run(start_attempt(spec, tab, lambda: None).run())
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert report.pages.done == PAGES
    size = len(pages[f"{SHOP}0"].html) / 1024
    note = f"{size:.0f} KiB, 100 links, 2 extracts, records written; {cpu / PAGES * 1e3:.1f} ms of CPU"
    return [at_most("time of a page beside loading it", wall / PAGES * 1e3, "ms", GOAL_MS, note=note)]


def _page(number: int) -> FakePage:
    links = "".join(f'<a href="/{(number * 7 + i) % PAGES}">item</a>' for i in range(100))
    body = f"<h1>item {number}</h1><b class=price>{number}</b>{links}{PARAGRAPH * 1_000}"
    return FakePage(f"<html><head><title>{number}</title></head><body>{body}</body></html>", milliseconds=0)
