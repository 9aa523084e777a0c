"""One-page requests per second through the whole of local mode with one slot, beside a bare Playwright loop.

Store (a file), planner, deeds, agent and records as `pageslots run` has them; only the display is left out.
The first requests of a run, which meet a cold slot, don't count: from the sixth end to the last.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from tests.bench.bare import bare_worker
from tests.bench.interleaving import interleave
from tests.bench.report import RATIO, Row, at_least, spread
from tests.bench.slots import chromium
from tests.bench.small_site import SmallSite

from pageslots.api import load_manifests
from pageslots.control.ports import Level
from pageslots.local.session import RunControl, RunOptions, run_local

REQUESTS = 60
COLD = 5
ROUNDS = 3
GOAL = 0.7


def main() -> list[Row]:
    """Run it."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    executable = await chromium()
    numbers = count()
    with tempfile.TemporaryDirectory() as folder:
        async with SmallSite() as site:
            pairs = await interleave(
                lambda: _run(site, numbers, Path(folder)),
                lambda: _bare(executable, site, numbers),
                rounds=ROUNDS,
            )
    return [
        at_least(
            "one-page requests per second of local mode, one slot ÷ bare loop",
            pairs.ratio,
            RATIO,
            GOAL,
            peer=f"bare {spread(pairs.theirs)} pages/s",
            note=f"local mode {spread(pairs.ours)} requests/s, {ROUNDS} runs",
        )
    ]


class _Stopwatch:
    """A view that shows nothing and remembers when requests ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def notice(self, text: str) -> None:
        """Nobody reads it."""

    def event(self, level: Level, name: str, fields: Mapping[str, object]) -> None:
        """An end is remembered."""
        if name == "request.finished":
            self.ends.append(time.perf_counter())

    def attach(self, control: RunControl) -> None:
        """The run ends by itself."""

    async def follow(self) -> None:
        """Nothing to show."""
        await asyncio.Event().wait()


async def _run(site: SmallSite, numbers: "count[int]", folder: Path) -> float:
    """Requests per second of one run."""
    name = f"run-{next(numbers)}"
    manifest = folder / f"{name}.yaml"
    requests = [_request(n, site.url(next(numbers))) for n in range(REQUESTS)]
    manifest.write_text("\n---\n".join(json.dumps(document) for document in (_POOL, *requests)))
    watch = _Stopwatch()
    result = await run_local(load_manifests([manifest]), RunOptions(folder / name, output_given=True), watch)
    if result.succeeded != REQUESTS:
        raise RuntimeError(f"not all requests succeeded: {result}")
    return (REQUESTS - COLD - 1) / (watch.ends[-1] - watch.ends[COLD])


async def _bare(executable: str, site: SmallSite, numbers: "count[int]") -> float:
    """Pages per second of a worker that is as warm."""
    async with bare_worker(executable) as bare:
        await bare.load([site.url(next(numbers)) for _ in range(COLD)])
        return REQUESTS / await bare.load([site.url(next(numbers)) for _ in range(REQUESTS)])


_POOL: dict[str, Any] = {
    "apiVersion": "pageslots.dev/v1alpha1",
    "kind": "PageSlotPool",
    "metadata": {"name": "default"},
    "spec": {
        "maxPageSlots": 1,
        "maxConcurrent": 1,
        "countries": [{"code": "SG", "direct": True}],
        "dispatch": {"maxPerSite": 1, "siteCooldownSeconds": 0},
        "blocking": {"resourceTypes": []},  # blocking must not count as speed
        "network": {"allowedCidrs": ["127.0.0.0/8"]},
    },
}


def _request(number: int, url: str) -> dict[str, Any]:
    return {
        "apiVersion": "pageslots.dev/v1alpha1",
        "kind": "CrawlRequest",
        "metadata": {"name": f"page-{number}"},
        "spec": {
            "country": "SG",
            "startUrls": [url],
            "extract": [{"name": "title", "css": "h1"}, {"name": "price", "css": ".price"}],
        },
    }
