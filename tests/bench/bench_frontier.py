"""What a million pages cost the frontier: admission, lease, checkpoint and restore.

Memory stays bounded, admission is linear, a checkpoint costs what has changed.
"""

import time
from collections.abc import Iterable, Iterator
from itertools import islice

import psutil
from tests.bench.report import Row, at_most, plain

from pageslots_agent.checkpoint import ROWS_AT_ONCE, Encoder, Header, Tally, read
from pageslots_agent.frontier import ADMIT_BATCH, Candidate, Frontier, Page
from pageslots_agent.urls import parse

PAGES = 1_000_000
HOSTS = 1_000
MEMORY_GOAL_MIB = 32


def main() -> list[Row]:
    """Run it."""
    process = psutil.Process()
    before = process.memory_info().rss
    frontier = Frontier(max_pages=None, max_links=0)
    admitted, slowest = _admit(frontier)
    memory = (process.memory_info().rss - before) / 2**20

    whole, saved = _packed(frontier.rows())
    frontier.mark()
    began = time.perf_counter()
    for _ in range(1_000):
        page = frontier.lease(0)
        assert isinstance(page, Page)
        frontier.end(page)
    leased = time.perf_counter() - began
    changes, changed = _packed(frontier.changes())
    frontier.close()

    restored = Frontier(max_pages=None, max_links=0)
    began = time.perf_counter()
    restored.restore(read(whole).rows())
    restored.settle()
    loaded = time.perf_counter() - began
    assert restored.queued == PAGES
    restored.close()
    return [
        at_most(f"memory of {PAGES:,} admitted pages", memory, "MiB", MEMORY_GOAL_MIB),
        plain(
            "admitting one", admitted / PAGES * 1e6, "µs", note=f"{admitted:.0f} s in all, {HOSTS:,} hosts"
        ),
        plain(f"slowest batch of {ADMIT_BATCH}", slowest * 1e3, "ms"),
        plain("lease and end", leased, "ms"),
        plain("whole checkpoint", saved, "s", note=f"{len(whole) / 2**20:.0f} MiB"),
        plain("checkpoint of 1,000 changes", changed * 1e3, "ms", note=f"{len(changes) / 2**10:.0f} KiB"),
        plain("restore", loaded, "s"),
    ]


def _admit(frontier: Frontier) -> tuple[float, float]:
    """Seconds in all, and of the slowest batch."""
    slowest, began = 0.0, time.perf_counter()
    for at in range(0, PAGES, ADMIT_BATCH):
        one = time.perf_counter()
        frontier.admit(_candidates(range(at, at + ADMIT_BATCH)))
        slowest = max(slowest, time.perf_counter() - one)
    return time.perf_counter() - began, slowest


def _candidates(numbers: Iterable[int]) -> Iterator[Candidate]:
    for i in numbers:
        yield Candidate(parse(f"https://host-{i % HOSTS}.example/products/{i}?page={i % 7}"))


def _packed(rows: Iterator[list[object]]) -> tuple[bytes, float]:
    began = time.perf_counter()
    encoder = Encoder(Header("uid", (), (), Tally()))
    while some := list(islice(rows, ROWS_AT_ONCE)):
        encoder.add(some)
    return b"".join(encoder.finish()), time.perf_counter() - began
