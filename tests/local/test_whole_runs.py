"""Whole runs: many sites, many URLs, and every way in which a run can be cut short."""

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.local.whole import (
    Watching,
    command,
    descendants,
    most_at_once,
    pool,
    records,
    request,
    strays,
    wait_until,
    write,
)
from tests.site.linked import LinkedSite
from tests.site.many import ManySites

from pageslots.api import load_manifests
from pageslots.local.session import RunControl, RunOptions, run_local

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


def test_a_hundred_sites_at_once_never_have_more_browsers_than_allowed(tmp_path):
    """100 requests of 100 sites, maxConcurrent 8: all finish (cases P, D4)."""

    async def go():
        async with ManySites(100) as sites:
            manifest = write(
                tmp_path,
                pool(maxConcurrent=8, countries=("SG", "DE", "JP", "US")),
                *(
                    request(f"site-{n}", country=("SG", "DE", "JP", "US")[n % 4], startUrls=[site.start_url])
                    for n, site in enumerate(sites)
                ),
            )
            options = RunOptions(tmp_path / "out", output_given=True, recording=tmp_path / "events.jsonl")
            return await run_local(load_manifests([manifest]), options, Watching())

    result = asyncio.run(go())

    assert [row for row in result.requests if row.state != "Succeeded"] == []
    assert result.exit_code == 0
    assert most_at_once(tmp_path / "events.jsonl") == 8


class Run:
    """`pageslots run` as a process of its own, in a folder, on 500 pages of a site that this test serves."""

    def __init__(self, folder: Path, manifest: Path) -> None:
        self.output = folder / "out"
        self._log = folder / "terminal.txt"
        self._arguments = command("run", manifest, "--output", self.output, "--plain")
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._arguments, stdout=log, stderr=log, start_new_session=True)

    def end(self) -> None:
        """Whatever the test has seen: nothing of it stays."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)

    def pages(self) -> int:
        return sum(len(p.read_text().splitlines()) for p in self.output.rglob("part-*.jsonl"))

    def terminal(self) -> str:
        return self._log.read_text()


PAGES = 500


def serve_and(folder: Path, act, *, pages: int = PAGES, parallelism: int = 10) -> LinkedSite:
    """Serve the site while `act(run)` drives the command line from a thread."""

    async def go():
        async with LinkedSite(pages=pages) as site:
            urls = sorted(site.urls(host=0))
            manifest = write(
                folder,
                pool(maxConcurrent=6, dispatch={"maxPerSite": 10, "siteCooldownSeconds": 0}),
                request(
                    "many", startUrls=urls, parallelism=parallelism, extract=[{"name": "t", "css": "title"}]
                ),
            )
            run = Run(folder, manifest)
            try:
                await asyncio.to_thread(act, run)
            finally:
                run.end()
            return urls

    return asyncio.run(go())


def test_500_urls_with_parallelism_10_are_all_there_once_also_after_a_kill(tmp_path):
    """The run is SIGKILLed in the middle and started again (cases W15, U2): nothing is lost or doubled."""

    def act(run: Run) -> None:
        run.start()
        wait_until(lambda: run.pages() >= 100, seconds=90, what="100 records")
        family = descendants(run.process.pid)
        run.process.send_signal(signal.SIGKILL)
        run.process.wait(10)
        wait_until(lambda: not strays(family), seconds=20, what=f"an end of {strays(family)}")
        run.start()
        assert run.process.wait(150) == 0, run.terminal()

    urls = serve_and(tmp_path, act)

    found = Counter(record["url"] for record in records(tmp_path / "out", "many"))
    assert sum(found.values()) == PAGES
    assert set(found) == set(urls)


def test_ctrl_c_checkpoints_and_a_second_run_goes_on(tmp_path):
    """First press graceful, exit 130, requests Queued; the next run resumes, the one after has nothing to do."""

    def act(run: Run) -> None:
        run.start()
        wait_until(lambda: run.pages() >= 20, seconds=90, what="20 records")
        family = descendants(run.process.pid)
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(30) == 130, run.terminal()
        assert strays(family) == []
        run.start()
        assert run.process.wait(120) == 0, run.terminal()
        run.start()
        assert run.process.wait(30) == 0, run.terminal()

    urls = serve_and(tmp_path, act, pages=120, parallelism=4)

    found = Counter(record["url"] for record in records(tmp_path / "out", "many"))
    assert set(found) == set(urls)
    assert set(found.values()) == {1}


def test_a_second_ctrl_c_ends_at_once_and_leaves_no_process(tmp_path):
    def act(run: Run) -> None:
        run.start()
        wait_until(lambda: run.pages() >= 5, seconds=90, what="5 records")
        family = descendants(run.process.pid)
        run.process.send_signal(signal.SIGINT)
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(10) == 130, run.terminal()
        wait_until(lambda: not strays(family), seconds=5, what="an end of all processes")

    serve_and(tmp_path, act, pages=400, parallelism=4)


def test_two_runs_on_one_output_are_refused(tmp_path):
    def act(run: Run) -> None:
        run.start()
        wait_until(lambda: "1 Running" in run.terminal(), seconds=60, what="a running request")
        second = subprocess.run(run.process.args, capture_output=True, text=True, timeout=30, check=False)
        assert second.returncode == 2
        assert f"process {run.process.pid}" in second.stderr

    serve_and(tmp_path, act, pages=900, parallelism=2)


def test_a_finished_request_is_skipped_and_a_changed_one_is_refused(tmp_path):
    """Case D17 on one machine; `--fresh` starts over."""

    async def go():
        async with LinkedSite(pages=3) as site:
            options = RunOptions(tmp_path / "out", output_given=True)
            manifest = write(tmp_path, pool(), request("once", startUrls=[site.url(0)]))
            first = await run_local(load_manifests([manifest]), options, Watching())
            hits = len(site.log.paths())
            again = await run_local(load_manifests([manifest]), options, Watching())
            assert len(site.log.paths()) == hits
            assert [(row.state, row.skipped) for row in again.requests] == [("Succeeded", True)]
            changed = write(tmp_path, pool(), request("once", startUrls=[site.url(1)]))
            with pytest.raises(Exception, match="--fresh"):
                await run_local(load_manifests([changed]), options, Watching())
            fresh = RunOptions(tmp_path / "out", output_given=True, fresh=True)
            anew = await run_local(load_manifests([changed]), fresh, Watching())
            return first, again, anew, site.url(1)

    first, again, anew, anew_url = asyncio.run(go())

    assert (first.exit_code, again.exit_code, anew.exit_code) == (0, 0, 0)
    assert [record["url"] for record in records(tmp_path / "out", "once")] == [anew_url]


def test_an_agent_that_is_killed_costs_one_attempt(tmp_path):
    """SIGKILL of a slot's agent in the middle: SlotLost, the next attempt goes on from the checkpoint (case D1)."""

    async def go():
        async with LinkedSite(pages=150) as site:
            one_slot = pool(preparation={"minRequestsPerSlot": 1})
            manifest = write(tmp_path, one_slot, request("goes-on", startUrls=sorted(site.urls(host=0))))
            events = tmp_path / "events.jsonl"

            async def kill(control: RunControl) -> None:
                while control.snapshot().pages < 5:  # noqa: ASYNC110 -- a snapshot has no event
                    await asyncio.sleep(0.05)
                [start] = [json.loads(line) for line in events.read_text().splitlines()][-1:]
                os.kill(start["pid"], signal.SIGKILL)

            options = RunOptions(tmp_path / "out", output_given=True, recording=events)
            return await run_local(load_manifests([manifest]), options, Watching(act=kill)), site.urls(host=0)

    result, urls = asyncio.run(go())

    assert result.exit_code == 0
    assert result.requests[0].attempts == 2
    found = Counter(record["url"] for record in records(tmp_path / "out", "goes-on"))
    assert set(found) == set(urls)
    assert set(found.values()) == {1}
