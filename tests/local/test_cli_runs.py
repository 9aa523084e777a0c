"""The command line with real slots, real Chromium and the demo shop: exit codes, Ctrl-C, resuming, pipes."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from pageslots.cli.reading import open_results
from pageslots.demo.catalogue import PRODUCTS
from pageslots.demo.shop import ShopSite

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

COMMAND = [sys.executable, "-m", "pageslots.cli"]
POOL = """\
apiVersion: pageslots.dev/v1alpha1
kind: PageSlotPool
metadata: {name: default}
spec:
  maxPageSlots: 2
  maxConcurrent: 2
  countries: [{code: SG, direct: true}]
  network: {allowedCidrs: [127.0.0.0/8]}
---
"""
REQUEST = """\
apiVersion: pageslots.dev/v1alpha1
kind: CrawlRequest
metadata: {name: NAME}
spec:
  country: SG
  site: NAME.test
  startUrls: ["URL"]
  extract: [{name: sku, css: .sku}]
---
"""
CATALOGUE = REQUEST.replace('startUrls: ["URL"]', 'startUrls: ["URL"]\n  follow: {include: ["*/product*"]}')


class Shop:
    """The demo shop's SG site, served by a thread."""

    def __init__(self) -> None:
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="shop")

    async def _serve(self) -> None:
        self._loop, self._down = asyncio.get_running_loop(), asyncio.Event()
        async with ShopSite(countries=("SG",)) as self._site:
            self._up.set()
            await self._down.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._down.set)
        self._thread.join(30)

    def __str__(self) -> str:
        return self._site.url("SG", "").rstrip("/")

    @property
    def hits(self) -> int:
        """Requests that it got."""
        return len(self._site.log)


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as running:
        yield running


def request(name: str, url: str, text: str = REQUEST) -> str:
    return text.replace("NAME", name).replace("URL", url)


def run(*arguments: str | Path, folder: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_a_run_is_told_finished_skipped_and_shown(shop, tmp_path):
    """Exit 0 when all succeeded; the second run skips it and says so; `results` shows the records."""
    (tmp_path / "crawl.yaml").write_text(POOL + request("mug", f"{shop}/product/mug-ember"))
    first = run("run", "crawl.yaml", "--plain", folder=tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert "no proxy for SG: pages are fetched from your own address" in first.stdout
    assert "mug  Succeeded  1 page, 1 record" in first.stdout

    second = run("run", "crawl.yaml", folder=tmp_path)
    assert second.returncode == 0
    assert "1 request: 1 succeeded; 0 pages in " in second.stdout
    assert "1 had finished in an earlier run (--fresh starts over)" in second.stdout

    shown = run(*first.stdout.splitlines()[-1].split()[1:], "--format", "jsonl", folder=tmp_path)
    assert json.loads(shown.stdout)["data"] == {"sku": "mug-ember"}


def test_a_failed_request_makes_exit_code_1_and_is_told_with_its_reason(shop, tmp_path):
    gone = request("gone", f"{shop}/product/there-is-none")
    (tmp_path / "crawl.yaml").write_text(POOL + gone + request("mug", f"{shop}/product/mug-ember"))
    ended = run("run", "crawl.yaml", "--output", "out", folder=tmp_path)
    assert ended.returncode == 1
    assert "2 requests: 1 succeeded, 1 failed" in ended.stdout
    assert "\n  gone  NotFound: " in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr


def test_ctrl_c_saves_places_and_the_same_command_repeats_no_record(shop, tmp_path):
    """Exit 130, then 0; every product once; and what the first run held is free at once.

    Permits of pods that vanished are held for the grace period elsewhere: here it is a minute.
    """
    patient = POOL.replace("spec:\n", "spec:\n  podTemplate: {terminationGracePeriodSeconds: 60}\n", 1)
    (tmp_path / "crawl.yaml").write_text(patient + request("all", f"{shop}/products?page=1", CATALOGUE))
    with subprocess.Popen(
        [*COMMAND, "run", "crawl.yaml", "--output", "out"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: shop.hits > 25, seconds=90, alive=process)  # a page is about three requests
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command goes on where this one stopped:\n  pageslots run crawl.yaml --output out" in said
    before = open_results(tmp_path / "out" / "all")
    assert not before.is_finished
    assert 0 < before.records < len(PRODUCTS)

    ended = run("run", "crawl.yaml", "--output", "out", folder=tmp_path, timeout=50)
    assert ended.returncode == 0
    skus = [row["data"]["sku"] for row in open_results(tmp_path / "out" / "all").rows() if row["data"]["sku"]]
    assert sorted(skus) == sorted(PRODUCTS)


@pytest.mark.parametrize("more", [[], ["--fresh"]])
def test_a_second_run_of_the_same_output_at_the_same_time_is_refused(shop, tmp_path, more):
    """And takes nothing away from the first, `--fresh` or not."""
    (tmp_path / "crawl.yaml").write_text(POOL + request("slow", f"{shop}/trouble/slow?seconds=20"))
    with subprocess.Popen(
        [*COMMAND, "run", "crawl.yaml"], cwd=tmp_path, stdout=subprocess.DEVNULL
    ) as process:
        wait_for((tmp_path / "pageslots-output" / ".pageslots" / "run.log").exists, seconds=60, alive=process)
        refused = run("run", "crawl.yaml", *more, folder=tmp_path)
        assert (tmp_path / "pageslots-output" / ".pageslots" / "run.log").exists()
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert refused.returncode == 2
    assert f"in use by process {process.pid}" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_reader_that_goes_away_ends_the_run_with_its_place_saved(shop, tmp_path):
    """Case U5: `pageslots run … | head -1`."""
    (tmp_path / "crawl.yaml").write_text(POOL + request("all", f"{shop}/products?page=1", CATALOGUE))
    with subprocess.Popen(
        [*COMMAND, "run", "crawl.yaml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        noise = process.stderr.read()
        process.wait(90)
    assert noise == ""
    assert process.returncode in (0, 141)  # 0: finished before it had another line to write
    again = run("run", "crawl.yaml", folder=tmp_path)
    assert again.returncode == 0


def test_crawl_needs_no_manifest_and_shows_what_it_found(shop, tmp_path):
    ended = run(
        "crawl",
        f"{shop}/product/mug-ember",
        "--country",
        "SG",
        "--allow-private",
        "--extract",
        "sku=.sku",
        "--xpath",
        "name=//h1",
        folder=tmp_path,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "mug-ember" in ended.stdout
    assert "Ember mug" in ended.stdout


def wait_for(condition, *, seconds: float, alive: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Poll until `condition()` holds; fails when the process ends first."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert alive.poll() is None, "the run ended before"
        assert time.monotonic() < deadline, f"not true within {seconds} s"
        time.sleep(0.05)
