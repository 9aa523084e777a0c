"""Whole crawls in a real slot: what the two halves of the agent do together."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.bench.slots import BenchSlot, chromium, ready_slot
from tests.fakes.crawls import a_spec, counted_records
from tests.site.linked import LinkedSite

from pageslots import wire
from pageslots.local.runtime import ProcessRuntime

pytestmark = pytest.mark.browser


async def run(slot: BenchSlot, spec: wire.AttemptSpec) -> wire.AttemptReport:
    """One attempt to its end, acknowledged."""
    await slot.agent.put_attempt(spec)
    async with asyncio.timeout(90):
        while True:
            status = await slot.agent.status(after=slot.rev, wait_seconds=25)
            slot.rev = status.rev
            if status.attempt is not None and status.attempt.state is wire.AttemptState.ENDED:
                await slot.agent.acknowledge(spec.id)
                return status.attempt


def in_slot(folder: Path, work: Callable[[BenchSlot, LinkedSite], Awaitable[None]], **site) -> None:
    async def main() -> None:
        async with (
            LinkedSite(**site) as linked,
            ProcessRuntime(folder) as runtime,
            ready_slot(runtime, 0, await chromium()) as slot,
        ):
            await work(slot, linked)

    asyncio.run(main())


def test_a_crawl_of_a_linked_site_finds_its_pages_once_each(tmp_path):
    """Cases W6 and W7: other spellings, other hosts and other schemes on every page."""

    async def work(slot: BenchSlot, site: LinkedSite) -> None:
        spec = a_spec(
            site.start_urls[0],
            pod_uid=slot.pod.uid,
            follow=wire.Follow("host", max_depth=2),
            max_pages=1_000,
            extract=(wire.Extract("heading", css="h1"),),
            output_uri=str(tmp_path / "out"),
        )
        report = await run(slot, spec)

        assert (report.outcome, report.message) == (wire.Outcome.OK, "")
        records = counted_records(tmp_path / "out")
        assert sorted(record["url"] for record in records) == sorted(site.urls(max_depth=2))
        assert all(record["data"]["heading"].endswith("of host 0") for record in records)
        assert report.bytes > 0

    traps = frozenset({"spellings", "outside", "files"})
    in_slot(tmp_path, work, pages=200, hosts=2, traps=traps)


def test_a_stopped_crawl_goes_on_in_its_next_attempt(tmp_path):
    """Case W15."""

    async def work(slot: BenchSlot, site: LinkedSite) -> None:
        def spec(number: int) -> wire.AttemptSpec:
            return a_spec(
                site.start_urls[0],
                number=number,
                pod_uid=slot.pod.uid,
                follow=wire.Follow("host"),
                max_pages=60,
                output_uri=str(tmp_path / "out"),
                obey_robots=False,
            )

        await slot.agent.put_attempt(spec(1))
        status = await slot.agent.status(after=slot.rev, wait_seconds=25)
        while status.attempt is None or status.attempt.pages.done < 3:
            status = await slot.agent.status(after=status.rev, wait_seconds=25)
        order = wire.StopOrder(wire.StopReason.SHUTDOWN, epoch=1, pod_uid=slot.pod.uid)
        await slot.agent.stop(spec(1).id, order)
        while status.attempt is None or status.attempt.state is not wire.AttemptState.ENDED:
            status = await slot.agent.status(after=status.rev, wait_seconds=25)
        assert status.attempt.outcome is wire.Outcome.STOPPED
        slot.rev = status.rev

        before = status.attempt.pages.done
        await slot.agent.acknowledge(spec(1).id)
        report = await run(slot, spec(2))
        assert (report.outcome, report.pages.done) == (wire.Outcome.OK, 60)
        assert report.new_ok_pages == 60 - before
        urls = [record["url"] for record in counted_records(tmp_path / "out")]
        assert len(urls) == len(set(urls)) == 60

    in_slot(tmp_path, work, pages=100)
