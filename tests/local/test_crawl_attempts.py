"""Whole attempts against a site in memory."""

import asyncio
import json

from tests.fakes.crawls import TITLE, a_spec, an_attempt, counted_records, crawl
from tests.fakes.site_tab import FakeTab, HandClock, linking

from pageslots.wire import AttemptState, Follow, Outcome

SHOP = "https://shop.example/"


def test_an_attempt_extracts_records_and_names_the_parts_that_count(tmp_path):
    clock = HandClock()
    tab = FakeTab({f"{SHOP}{i}": linking(title=f"item {i}") for i in range(3)}, clock)
    spec = a_spec(*(f"{SHOP}{i}" for i in range(3)), extract=(TITLE,), output_uri=str(tmp_path))

    report = crawl(spec, tab, clock)

    assert (report.state, report.outcome, report.message) == (AttemptState.ENDED, Outcome.OK, "")
    assert [r["data"]["heading"] for r in counted_records(tmp_path)] == ["item 0", "item 1", "item 2"]
    assert len(list(tmp_path.iterdir())) == 2  # _done.json and one part: no checkpoint is left


def test_links_are_followed_once_each_within_the_scope():
    clock = HandClock()
    tab = FakeTab(
        {
            SHOP: linking("/a", "/a#x", "/b", "https://else.example/", "mailto:me@shop.example"),
            f"{SHOP}a": linking("/", "/b", "/c"),
            f"{SHOP}b": linking(),
            f"{SHOP}c": linking(),
        },
        clock,
    )

    report = crawl(a_spec(SHOP, follow=Follow("host"), max_pages=100), tab, clock)

    assert report.outcome is Outcome.OK
    assert tab.visited == [SHOP, f"{SHOP}robots.txt", f"{SHOP}a", f"{SHOP}b", f"{SHOP}c"]
    assert report.pages.done == report.records == 4


def test_records_without_an_output_are_kept_for_the_preview():
    clock = HandClock()
    tab = FakeTab({SHOP: linking(title="front")}, clock)
    spec = a_spec(SHOP, extract=(TITLE,))
    attempt = an_attempt(spec, tab, clock)
    asyncio.run(attempt.run())

    [record] = [json.loads(line) for line in attempt.records(0).splitlines()]
    assert record["data"] == {"heading": "front"}
    assert attempt.records(1) == b""
