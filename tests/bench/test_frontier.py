"""What a million pages cost: admission, lease, checkpoint and restore."""

import resource
import time
from itertools import islice

import psutil
import pytest

from pageslots_agent.checkpoint import ROWS_AT_ONCE, Encoder, Header, Tally, read
from pageslots_agent.frontier import ADMIT_BATCH, Candidate, Frontier, Page
from pageslots_agent.urls import parse

PAGES = 1_000_000
HOSTS = 1_000


@pytest.mark.bench
@pytest.mark.timeout(600)
def test_a_million_pages():
    """Memory stays bounded, admission is linear, a checkpoint costs what has changed."""
    process = psutil.Process()
    before = process.memory_info().rss
    frontier = Frontier(max_pages=None, max_links=0)
    slowest = 0.0
    began = time.perf_counter()
    for at in range(0, PAGES, ADMIT_BATCH):
        one = time.perf_counter()
        frontier.admit(
            Candidate(parse(f"https://host-{i % HOSTS}.example/products/{i}?page={i % 7}"))
            for i in range(at, at + ADMIT_BATCH)
        )
        slowest = max(slowest, time.perf_counter() - one)
    admitted = time.perf_counter() - began
    rss = process.memory_info().rss - before

    began = time.perf_counter()
    encoder = Encoder(Header("uid", (), (), Tally()))
    rows = frontier.rows()
    while some := list(islice(rows, ROWS_AT_ONCE)):
        encoder.add(some)
    whole = encoder.finish()
    saved = time.perf_counter() - began
    frontier.mark()

    began = time.perf_counter()
    for _ in range(1_000):
        page = frontier.lease(0)
        assert isinstance(page, Page)
        frontier.end(page)
    leased = time.perf_counter() - began
    began = time.perf_counter()
    encoder = Encoder(Header("uid", (), (), Tally()))
    encoder.add(list(frontier.changes()))
    changes = encoder.finish()
    changed = time.perf_counter() - began
    frontier.close()

    restored = Frontier(max_pages=None, max_links=0)
    began = time.perf_counter()
    restored.restore(read(b"".join(whole)).rows())
    restored.settle()
    loaded = time.perf_counter() - began
    assert restored.queued == PAGES
    restored.close()
    print(
        f"\n{PAGES:,} pages of {HOSTS:,} hosts: admitted in {admitted:.1f} s ({admitted / PAGES * 1e6:.1f} µs each,"
        f" slowest batch of {ADMIT_BATCH} {slowest * 1e3:.0f} ms), {rss / 2**20:.0f} MiB of memory;"
        f" whole checkpoint {sum(map(len, whole)) / 2**20:.1f} MiB in {saved:.1f} s, restored in {loaded:.1f} s;"
        f" lease and end {leased:.3f} ms each; checkpoint of 1,000 changes {sum(map(len, changes)) / 2**10:.0f} KiB"
        f" in {changed * 1e3:.0f} ms; peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB"
    )
    assert rss < 64 * 2**20
