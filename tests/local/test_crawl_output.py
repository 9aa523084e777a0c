"""What attempts write: parts, captures, and what happens when the storage does not want to (cases W13, W17)."""

import asyncio
import json
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.fakes.crawls import TITLE, a_spec, an_attempt, counted_records, crawl
from tests.fakes.site_tab import FakePage, FakeTab, HandClock, linking
from tests.fakes.vtime import until

from pageslots.wire import Extract, Follow, Outcome
from pageslots_agent.ports import LoadFault
from pageslots_agent.storage import LocalFolder

SHOP = "https://shop.example/"


class RefusingFolder(LocalFolder):
    """Fails the first `refusals` writes."""

    def __init__(self, folder: Path, refusals: int, error: OSError) -> None:
        super().__init__(folder)
        self._refusals = refusals
        self._error = error
        self.tried = 0

    def put_atomic(self, name: str, chunks: Iterable[bytes]) -> None:
        self.tried += 1
        if self.tried <= self._refusals:
            raise self._error
        super().put_atomic(name, chunks)


FULL = OSError(28, "No space left on device")


def a_tab(count: int, *, milliseconds: int = 50) -> FakeTab:
    pages = {}
    for i in range(count):
        page = linking(title=f"item {i}")
        pages[f"{SHOP}{i}"] = FakePage(page.html, milliseconds=milliseconds)
    return FakeTab(pages, HandClock())


def spec_of(tab: FakeTab, folder: Path, **more):
    return a_spec(*tab._pages, output_uri=str(folder), **({"attempt_ms": 900_000} | more))


def test_parts_are_closed_after_a_hundred_records(tmp_path):
    tab = a_tab(250, milliseconds=1)
    crawl(spec_of(tab, tmp_path), tab, tab._clock)
    assert len(counted_records(tmp_path)) == 250
    parts = json.loads((tmp_path / "_done.json").read_text())["parts"]
    assert all(part["records"] >= 100 for part in parts[:-1])


def test_a_part_is_closed_after_ten_seconds_with_slow_pages(tmp_path):
    class PatientTab(FakeTab):
        async def visit(self, *args, **more):
            await until(lambda: attempt._writer is None or not attempt._writer._is_busy())
            return await super().visit(*args, **more)

    tab = PatientTab(a_tab(10, milliseconds=5_000)._pages, HandClock())
    attempt = an_attempt(spec_of(tab, tmp_path), tab, tab._clock)
    asyncio.run(attempt.run())
    parts = json.loads((tmp_path / "_done.json").read_text())["parts"]
    assert [part["records"] for part in parts] == [2, 2, 2, 2, 2]


def test_a_storage_that_refuses_for_a_while_loses_nothing(tmp_path):
    """Case W17."""
    tab = a_tab(30, milliseconds=2_000)
    storage = RefusingFolder(tmp_path, 5, FULL)
    report = crawl(spec_of(tab, tmp_path), tab, tab._clock, storage=storage)
    assert report.outcome is Outcome.OK
    assert [record["url"] for record in counted_records(tmp_path)] == list(tab._pages)


def test_an_attempt_whose_output_is_full_is_not_ok_and_says_so(tmp_path):
    """Cases W13 and W17."""
    tab = a_tab(30, milliseconds=2_000)
    storage = RefusingFolder(tmp_path, 10**9, FULL)
    report = crawl(spec_of(tab, tmp_path), tab, tab._clock, storage=storage)
    assert report.outcome is Outcome.TIMEOUT
    assert "No space left on device" in report.message
    assert str(tmp_path) in report.message
    assert not (tmp_path / "_done.json").exists()


def test_records_in_memory_are_bounded_while_the_storage_is_slow(tmp_path):
    """Case W17: the crawl waits for the storage, and goes on when it answers."""
    tab = a_tab(1_200, milliseconds=1)
    all_visited, is_first = threading.Event(), True
    waiting = []

    class SlowFolder(LocalFolder):
        def put_atomic(self, name: str, chunks: Iterable[bytes]) -> None:
            nonlocal is_first
            if is_first:
                is_first = False
                all_visited.wait(3)
            super().put_atomic(name, chunks)

    attempt = an_attempt(spec_of(tab, tmp_path), tab, tab._clock, storage=SlowFolder(tmp_path))

    def remember(url: str) -> None:
        waiting.append(attempt._writer._folder.waiting if attempt._writer else 0)
        if len(waiting) == 1_200:
            all_visited.set()

    tab.on_visit = remember
    assert asyncio.run(attempt.run()).outcome is Outcome.OK
    assert max(waiting) <= 500
    assert len(counted_records(tmp_path)) == 1_200


def test_an_output_that_is_no_folder_is_a_bad_request(tmp_path):
    (tmp_path / "out").write_text("a file")
    tab = a_tab(1)
    report = crawl(spec_of(tab, tmp_path / "out"), tab, tab._clock)
    assert (report.outcome, tab.visited) == (Outcome.BAD_REQUEST, [])
    assert "there is a file of that name; make it a writable folder" in report.message


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    """The one before it is taken; what it does not count is crawled again."""
    tab = a_tab(12, milliseconds=4_000)
    crawl(spec_of(tab, tmp_path, attempt_ms=36_000), tab, tab._clock)
    newest = max(tmp_path.glob("_frontier-*"), key=lambda path: path.name)
    newest.write_bytes(newest.read_bytes()[:-9])

    tab = a_tab(12)
    report = crawl(spec_of(tab, tmp_path, number=2), tab, tab._clock)

    assert report.outcome is Outcome.OK
    assert sorted(record["url"] for record in counted_records(tmp_path)) == sorted(tab._pages)


def test_captures_are_files_below_the_output(tmp_path):
    page = FakePage(linking(title="front").html, text="front text")
    tab = FakeTab({SHOP: page}, HandClock())
    crawl(a_spec(SHOP, capture=("text", "html", "screenshot"), output_uri=str(tmp_path)), tab, tab._clock)
    [record] = counted_records(tmp_path)
    captures = record["captures"]
    assert captures["text"] == {"inline": "front text", "bytes": 10}
    assert (tmp_path / captures["html"]["file"]).read_text() == page.html
    assert (tmp_path / captures["screenshot"]["file"]).read_bytes().startswith(b"\x89PNG")


def test_long_texts_and_many_links_go_to_files(tmp_path):
    page = FakePage(linking(*(f"/{i}" for i in range(1_500))).html, text="ü" * 100_000)
    tab = FakeTab({SHOP: page}, HandClock())
    crawl(a_spec(SHOP, capture=("text", "links"), output_uri=str(tmp_path)), tab, tab._clock)
    [record] = counted_records(tmp_path)
    assert (tmp_path / record["captures"]["text"]["file"]).read_text() == "ü" * 100_000
    assert len(record["links"]) == 1_000
    assert len((tmp_path / record["captures"]["links"]["file"]).read_text().splitlines()) == 1_500


def test_the_first_five_failures_are_captured(tmp_path):
    pages = {f"{SHOP}{i}": FakePage("<p>oops</p>", status=500) for i in range(8)}
    tab = FakeTab({SHOP: linking(), **pages}, HandClock())
    spec = a_spec(SHOP, *pages, capture_on_failure=("screenshot", "html"), output_uri=str(tmp_path))
    crawl(spec, tab, tab._clock)
    captured = [record for record in counted_records(tmp_path) if "captures" in record]
    assert len(captured) == 5
    assert (tmp_path / captured[0]["captures"]["html"]["file"]).read_text() == "<p>oops</p>"


def test_a_page_that_can_not_be_pictured_says_so():
    tab = FakeTab({SHOP: linking()}, HandClock())
    attempt = an_attempt(a_spec(SHOP, capture=("screenshot",)), tab, tab._clock)
    asyncio.run(attempt.run())
    [record] = map(json.loads, attempt.records(0).splitlines())
    assert record["captures"] == {"screenshot": {"error": "a screenshot needs an output"}}


def test_a_download_is_recorded_as_such():
    """Case W5."""
    tab = FakeTab({SHOP: FakePage(is_download=True, content_type="application/pdf")}, HandClock())
    attempt = an_attempt(a_spec(SHOP, extract=(TITLE,), capture=("html",)), tab, tab._clock)
    report = asyncio.run(attempt.run())
    [record] = map(json.loads, attempt.records(0).splitlines())
    assert (report.outcome, record["download"], record["contentType"]) == (
        Outcome.OK,
        True,
        "application/pdf",
    )
    assert "captures" not in record


def test_a_preview_is_bounded_and_says_that_it_is():
    pages = {f"{SHOP}{i}": FakePage(f"<h1>{'x' * 3_000}</h1>") for i in range(100)}
    tab = FakeTab(pages, HandClock())
    attempt = an_attempt(a_spec(*pages, extract=(TITLE,)), tab, tab._clock)
    report = asyncio.run(attempt.run())
    assert (report.truncated, report.records) == (True, 100)
    assert 100 * 1024 < len(attempt.records(0)) <= 128 * 1024


def test_a_selector_that_takes_for_ever_ends_the_attempt(monkeypatch):
    """The event loop is free meanwhile, and the message names the extract."""
    monkeypatch.setattr("pageslots_agent.visiting.READING_MS", 200)
    html = "<body>" + "<div><p>x</p></div>" * 3_000
    slow = Extract("deep", xpath="//*[count(//*)>1][count(//*)>2][count(//*)>3][count(//*)>4]")
    tab = FakeTab({SHOP: FakePage(html)}, HandClock())
    report = crawl(a_spec(SHOP, extract=(slow,)), tab, tab._clock)
    assert report.outcome is Outcome.BAD_REQUEST
    assert report.message.startswith('extract "deep": xpath')


def test_records_say_what_the_documentation_says(tmp_path):
    """Every field of docs/records.md that a plain page has, and no other."""
    tab = FakeTab({SHOP: linking(title="front")}, HandClock())
    crawl(a_spec(SHOP, extract=(TITLE,), output_uri=str(tmp_path)), tab, tab._clock)
    [record] = counted_records(tmp_path)
    assert record == {
        "v": 1,
        "url": SHOP,
        "finalUrl": SHOP,
        "status": 200,
        "outcome": "Ok",
        "depth": 0,
        "fetchedTime": "2026-09-21T14:13:20.000Z",
        "milliseconds": 50,
        "bytes": len(linking(title="front").html),
        "attempt": "uid-1-1",
        "tries": 1,
        "title": "front",
        "contentType": "text/html",
        "data": {"heading": "front"},
    }


def test_a_failed_attempt_without_an_output_shows_the_page_that_ended_it():
    tab = FakeTab({SHOP: FakePage(status=None, fault=LoadFault.PROXY, message="407")}, HandClock())
    attempt = an_attempt(a_spec(SHOP, follow=Follow("host"), max_pages=9), tab, tab._clock)
    asyncio.run(attempt.run())
    [record] = map(json.loads, attempt.records(0).splitlines())
    assert (record["outcome"], record["message"]) == ("ProxyError", "407")


@pytest.mark.parametrize("count", [1, 150])
def test_nothing_but_the_result_is_left_behind(tmp_path, count):
    tab = a_tab(count, milliseconds=500)
    crawl(spec_of(tab, tmp_path), tab, tab._clock)
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"_done.json", "part"}
