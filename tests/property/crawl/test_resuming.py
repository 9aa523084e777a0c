"""No record is lost or doubled, whatever moment an attempt is killed at (cases W15 and D11, invariant I4)."""

import asyncio
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fakes.crawls import TITLE, a_spec, counted_records
from tests.fakes.mortal_storage import attempt_until_killed
from tests.fakes.site_tab import FakePage, FakeTab, HandClock, linking

from pageslots.wire import Follow, Outcome

SHOP = "https://shop.example/"
PAGES = 24
SECONDS_PER_PAGE = 3_000
"""So that a part is closed every four pages."""


def a_site() -> dict[str, FakePage]:
    """A binary tree of pages, of which every seventh is missing and page 9 fails for ever."""
    site = {}
    for i in range(PAGES):
        page = linking(f"/{2 * i + 1}", f"/{2 * i + 2}", "/0", title=f"item {i}")
        status = 404 if i % 7 == 6 else 500 if i == 9 else 200
        site[f"{SHOP}{i}"] = replace(page, status=status, milliseconds=SECONDS_PER_PAGE)
    return site


def reachable() -> set[str]:
    """Pages that a crawl without accidents records."""
    found, todo = set(), [0]
    while todo:
        i = todo.pop()
        url = f"{SHOP}{i}"
        if url in found:
            continue
        found.add(url)
        page = a_site().get(url)
        if page is not None and page.status == 200:
            todo += [2 * i + 1, 2 * i + 2]
    return found


async def attempts(folder: Path, deaths: list[int]) -> list[Outcome | None]:
    """One attempt per death, then one that lives; how each of them ended."""
    spec = a_spec(
        f"{SHOP}0",
        follow=Follow("host"),
        max_pages=1_000,
        extract=(TITLE,),
        output_uri=str(folder),
        page_retries=1,
        obey_robots=False,
    )
    outcomes: list[Outcome | None] = []
    for number, dies_at in enumerate([*deaths, None], start=1):
        clock = HandClock()
        tab = FakeTab(a_site(), clock)
        this = replace(spec, id=f"uid-1-{number}", number=number)
        report = await attempt_until_killed(this, tab, clock, folder, dies_at)
        outcomes.append(report.outcome if report else None)
    return outcomes


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 45), max_size=4))
@example([0, 0, 0])
@example([1, 1, 1])
def test_every_page_counts_once_however_often_attempts_are_killed(deaths):
    """For all moments of death in a row: the parts that count hold each reachable page exactly once."""
    with tempfile.TemporaryDirectory() as name:
        outcomes = asyncio.run(attempts(Path(name), deaths))

        assert outcomes[-1] is Outcome.OK
        urls = [record["url"] for record in counted_records(Path(name))]
        assert sorted(urls) == sorted(reachable())
        left = {path.name for path in Path(name).iterdir() if path.name.startswith("part-")}
        assert left == part_names(Path(name))


@pytest.mark.parametrize("moment", range(45))
def test_a_crawl_killed_at_each_of_its_writes_is_resumed(tmp_path, moment):
    """An attempt has up to 42 such moments; fewer when a write took so long that two batches became one."""
    outcomes = asyncio.run(attempts(tmp_path, [moment]))

    assert outcomes[-1] is Outcome.OK
    assert sorted(record["url"] for record in counted_records(tmp_path)) == sorted(reachable())


def test_the_moments_of_death_reach_beyond_the_end(tmp_path):
    """The ranges above cover a whole attempt: the last moments are later than its end."""
    assert asyncio.run(attempts(tmp_path, [69]))[0] is Outcome.OK


def part_names(folder: Path) -> set[str]:
    done = json.loads((folder / "_done.json").read_text())
    return {part["name"] for part in done["parts"]}
