"""Memory of an idle slot, mean of eight side by side, beside eight plain Playwright workers.

PSS of the whole process tree (agent, Playwright's driver, all of Chromium): a page of memory that several
processes share counts in proportion. Other Chromium processes on the machine lower it, since they share the
program's code: the note says how many there were. Slots and workers are measured one after the other, not
beside each other, for the same reason.
"""

import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
from tests.bench.bare import BareWorker, bare_worker
from tests.bench.report import Row, at_most, plain
from tests.bench.slots import BenchSlot, chromium, create_slot

from pageslots.demo.catalogue import PRODUCTS
from pageslots.demo.shop import ShopSite
from pageslots.local.runtime import ProcessRuntime
from pageslots.wire import Extract

SLOTS = 8
PAGES = 12
SETTLE_SECONDS = 5.0
"""Between the last page and the measurement: both have had time to collect garbage, neither has much to do."""
PARKED_SECONDS = 12.0
"""A slot that idles for 10 s leaves the site for about:blank."""
FRESH_GOAL, USED_GOAL = 145.0, 190.0
EXTRACT = (Extract("title", css="h1"),)


def main() -> list[Row]:
    """Run it."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    executable = await chromium()
    async with ShopSite(countries=("SG",)) as shop:
        urls = [shop.url("SG", f"/product/{sku}") for sku in list(PRODUCTS)[:PAGES]]
        assert len(urls) == PAGES
        strangers = _chromium_processes()
        with tempfile.TemporaryDirectory() as folder:
            async with ProcessRuntime(Path(folder)) as runtime:
                slots = [await create_slot(runtime, number, executable) for number in range(SLOTS)]
                fresh, used, parked, parts = await _slots(slots, urls)
        plain_fresh, plain_used = await _workers(executable, urls)
    note = f"{strangers} other Chromium processes"
    return [
        at_most(
            "idle slot before its first attempt", fresh, "MiB", FRESH_GOAL, peer=_peer(plain_fresh), note=note
        ),
        at_most(f"idle slot after {PAGES} pages", used, "MiB", USED_GOAL, peer=_peer(plain_used), note=parts),
        plain("the same, parked on about:blank", parked, "MiB"),
    ]


def _peer(mib: float) -> str:
    return f"plain worker {mib:.0f} MiB"


async def _slots(slots: Sequence[BenchSlot], urls: Sequence[str]) -> tuple[float, float, float, str]:
    await asyncio.gather(*(slot.until_ready() for slot in slots))
    await asyncio.sleep(SETTLE_SECONDS)
    pids = [slot.pid for slot in slots]
    fresh = _mean_pss(pids)
    for slot in slots:
        await slot.attempt(urls, extract=EXTRACT)
    await slots[-1].agent.status(after=-1, wait_seconds=0)
    await asyncio.sleep(SETTLE_SECONDS)
    used, parts = _mean_pss(pids), _parts(pids)
    await asyncio.sleep(PARKED_SECONDS)
    return fresh, used, _mean_pss(pids), parts


async def _workers(executable: str, urls: Sequence[str]) -> tuple[float, float]:
    async with AsyncExitStack() as stack:
        workers: list[BareWorker] = [
            await stack.enter_async_context(bare_worker(executable)) for _ in range(SLOTS)
        ]
        await asyncio.sleep(SETTLE_SECONDS)
        pids = [worker.pid for worker in workers]
        fresh = _mean_pss(pids)
        for worker in workers:
            await worker.load(urls)
        await asyncio.sleep(SETTLE_SECONDS)
        return fresh, _mean_pss(pids)


def _mean_pss(roots: Sequence[int]) -> float:
    """MiB of a process tree, mean of all."""
    return statistics.mean(sum(map(pss_mib, tree(root))) for root in roots)


def _parts(roots: Sequence[int]) -> str:
    """Where it goes: agent, driver and browser, mean of all."""
    sums = {"agent": 0.0, "driver": 0.0, "browser": 0.0, "renderer": 0.0, "other Chromium": 0.0}
    for root in roots:
        for process in tree(root):
            sums[_part(process, root)] += pss_mib(process) / len(roots)
    return ", ".join(f"{name} {mib:.0f}" for name, mib in sums.items())


def _part(process: psutil.Process, root: int) -> str:
    line = " ".join(process.cmdline())
    if process.pid == root:
        return "agent"
    if "--type=renderer" in line:
        return "renderer"
    if "--type=" in line:
        return "other Chromium"
    return "driver" if "/driver/" in line else "browser"


def tree(root: int) -> list[psutil.Process]:
    """The process and all its descendants."""
    process = psutil.Process(root)
    return [process, *process.children(recursive=True)]


def pss_mib(process: psutil.Process) -> float:
    """Proportional set size; 0 for a process that has just ended."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _chromium_processes() -> int:
    return sum("chrom" in (process.info["name"] or "") for process in psutil.process_iter(["name"]))
