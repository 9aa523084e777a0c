"""How long a slot takes from the creation of its pod to PageReady, beside a bare process with the same browser."""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from tests.bench.bare import bare_worker
from tests.bench.interleaving import interleave
from tests.bench.report import RATIO, Row, at_most, spread
from tests.bench.slots import BenchSlot, chromium, create_slot

from pageslots.local.runtime import ProcessRuntime

ROUNDS = {1: 5, 8: 3}
"""Slots at once: pairs measured."""
GOAL = 1.2


def main() -> list[Row]:
    """Run it."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    executable = await chromium()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        async with ProcessRuntime(Path(folder)) as runtime:
            await _slots(runtime, executable, 1)  # both programs and the browser are in the page cache now
            await _bare(executable, 1)
            for at_once, rounds in ROUNDS.items():
                pairs = await interleave(
                    partial(_slots, runtime, executable, at_once),
                    partial(_bare, executable, at_once),
                    rounds=rounds,
                )
                name = f"slot start, {at_once} at once: pod create → PageReady ÷ bare"
                peer = f"bare {spread(pairs.theirs)} s"
                note = f"slot {spread(pairs.ours)} s, {rounds} pairs"
                rows.append(at_most(name, pairs.ratio, RATIO, GOAL, peer=peer, note=note))
    return rows


async def _slots(runtime: ProcessRuntime, executable: str, at_once: int) -> float:
    """Seconds until all of them are ready."""
    began = time.perf_counter()
    slots: list[BenchSlot] = []
    try:
        slots = await asyncio.gather(*(create_slot(runtime, n, executable) for n in range(at_once)))
        await asyncio.gather(*(slot.until_ready() for slot in slots))
        return time.perf_counter() - began
    finally:
        await asyncio.gather(*(slot.end() for slot in slots))


async def _bare(executable: str, at_once: int) -> float:
    began = time.perf_counter()
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(bare_worker(executable)) for _ in range(at_once)))
        return time.perf_counter() - began
