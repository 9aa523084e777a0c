"""Bytes per page with blocking, in proportion to the bytes without, on pages of typical weights.

`typical_site` says where the weights are from. Counted outside of the browser, headers and requests included.
The peer is a bare Playwright worker that blocks nothing; the HTTP cache works in both, and starts empty.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tests.bench.bare import bare_worker
from tests.bench.counting_pipe import CountingPipe
from tests.bench.report import Row, at_most, plain
from tests.bench.slots import DEFAULT_BLOCKING, chromium, ready_slot
from tests.bench.typical_site import TypicalSite

from pageslots.local.runtime import ProcessRuntime

GOAL = 15.0
PAGES = 12
CRAWL = ("/", *(f"/inner/{n}" for n in range(1, PAGES)))
STRICT_BLOCKING = (*DEFAULT_BLOCKING, "stylesheet", "script")


def main() -> list[Row]:
    """Run it."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    executable = await chromium()
    async with TypicalSite() as site:
        bare = await _by_bare(site.port, executable)
        default = await _by_slot(site.port, executable, DEFAULT_BLOCKING)
        nothing = await _by_slot(site.port, executable, ())
        strict = await _by_slot(site.port, executable, STRICT_BLOCKING)
    first, rest = bare[0], sum(bare[1:])
    blocking = ", ".join(DEFAULT_BLOCKING)
    return [
        at_most(
            f"bytes per page of a crawl of {PAGES} pages, blocking {blocking}",
            100 * sum(default) / sum(bare),
            "%",
            GOAL,
            peer=f"bare {_kib(sum(bare) / PAGES)} a page",
            note=f"slot {_kib(sum(default) / PAGES)} a page",
        ),
        at_most(
            f"bytes of a site's first page, blocking {blocking}",
            100 * default[0] / first,
            "%",
            GOAL,
            peer=f"bare {_kib(first)}",
            note=f"slot {_kib(default[0])}: nearly all of it scripts and styles, which are needed by default",
        ),
        plain(
            "bytes of a later page of the same site",
            100 * sum(default[1:]) / rest,
            "%",
            peer=f"bare {_kib(rest / (PAGES - 1))}",
            note=f"slot {_kib(sum(default[1:]) / (PAGES - 1))}",
        ),
        plain(
            "bytes of a site's first page, blocking scripts and styles too",
            100 * strict[0] / first,
            "%",
            note=f"slot {_kib(strict[0])}",
        ),
        plain(
            "bytes of a site's first page, blocking nothing",
            100 * nothing[0] / first,
            "%",
            note=f"slot {_kib(nothing[0])}: both count the same",
        ),
    ]


def _kib(count: float) -> str:
    return f"{count / 1024:,.0f} KiB"


async def _by_slot(port: int, executable: str, blocked: Sequence[str]) -> list[int]:
    """Bytes of each page of the crawl, one attempt each on one slot."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            CountingPipe(port) as pipe,
            ProcessRuntime(Path(folder)) as runtime,
            ready_slot(runtime, 0, executable, blocked=blocked) as slot,
        ):
            counts = [await pipe.quiet()]
            for path in CRAWL:
                await slot.attempt([pipe.url(path)])
                counts.append(await pipe.quiet())
    return [after - before for before, after in pairwise(counts)]


async def _by_bare(port: int, executable: str) -> list[int]:
    async with CountingPipe(port) as pipe, bare_worker(executable) as bare:
        counts = [await pipe.quiet()]
        for path in CRAWL:
            await bare.load([pipe.url(path)])
            counts.append(await pipe.quiet())
    return [after - before for before, after in pairwise(counts)]
