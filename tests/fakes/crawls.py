"""Builders for attempts, and what they left in a folder."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.fakes.site_tab import FakeTab, HandClock

from pageslots.wire import AttemptReport, AttemptSpec, Extract
from pageslots_agent.crawl import CrawlAttempt
from pageslots_agent.storage import Storage

TITLE = Extract(name="heading", css="h1")


def a_spec(
    *start_urls: str, number: int = 1, uid: str = "uid-1", pod_uid: str = "pod", **more: Any
) -> AttemptSpec:
    """One attempt at these URLs; `more` as in AttemptSpec."""
    return AttemptSpec(
        id=f"{uid}-{number}",
        number=number,
        request="shop/crawl",
        request_uid=uid,
        pod_uid=pod_uid,
        epoch=1,
        country="SG",
        site="shop.example",
        start_urls=start_urls,
        **more,
    )


def crawl(
    spec: AttemptSpec, tab: FakeTab, clock: HandClock, *, storage: Storage | None = None
) -> AttemptReport:
    """Run one attempt to its end."""
    return asyncio.run(an_attempt(spec, tab, clock, storage=storage).run())


def an_attempt(
    spec: AttemptSpec, tab: FakeTab, clock: HandClock, *, storage: Storage | None = None
) -> CrawlAttempt:
    return CrawlAttempt(spec, tab, lambda: None, clock=clock, storage=storage)


def counted_records(folder: Path) -> list[dict[str, Any]]:
    """The records that `_done.json` counts."""
    done = json.loads((folder / "_done.json").read_text())
    records = []
    for part in done["parts"]:
        lines = (folder / part["name"]).read_text().splitlines()
        assert len(lines) == part["records"]
        records += [json.loads(line) for line in lines]
    assert done["records"] == len(records)
    return records
