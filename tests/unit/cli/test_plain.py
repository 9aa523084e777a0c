"""The lines of a run without a terminal."""

import asyncio
import io

import pytest
from tests.fakes.runs import ScriptedRun, a_row, a_snapshot
from tests.fakes.vtime import run

from pageslots.cli import plain
from pageslots.cli.outlet import Outlet
from pageslots.cli.plain import PlainView


@pytest.fixture
def stream():
    return io.StringIO()


@pytest.fixture
def view(stream):
    outlet = Outlet(stream)
    yield PlainView(outlet, clock=lambda: "12:00:00")
    outlet.close()


def said(view, stream):
    view._outlet.close()
    return stream.getvalue()


def test_a_finished_request_is_one_line_with_its_pages(view, stream):
    view.tell_finished((a_row("sg-list", pages_done=4, records=4, seconds=3.1),))
    assert said(view, stream) == "12:00:00  sg-list  Succeeded  4 pages, 4 records in 3.1 s\n"


def test_a_failure_says_why(view, stream):
    row = a_row(
        "bad", "Failed", reason="Blocked", message="403", pages_done=0, pages_failed=1, records=1, attempts=2
    )
    view.tell_finished((row,))
    assert said(view, stream).endswith(
        "bad  Failed  0 pages, 1 failed, 1 record in 2.0 s, 2 attempts  Blocked: 403\n"
    )


def test_nothing_is_told_twice_and_earlier_runs_not_at_all(view, stream):
    rows = (a_row("one"), a_row("old", skipped=True), a_row("two", "Running"))
    view.tell_finished(rows)
    view.tell_finished(rows)
    assert said(view, stream).count("\n") == 1


def test_an_attempt_that_is_made_again_says_what_ended_it(view, stream):
    view.event("info", "attempt.again", {"request": "shop", "outcome": "Blocked", "message": "403"})
    view.event("info", "attempt.start", {"request": "shop"})
    assert said(view, stream) == "12:00:00  shop  again after Blocked: 403\n"


def test_warnings_of_any_name_are_told_with_their_fields(view, stream):
    view.event("warning", "permit.poisoned", {"pod": "default-browser-1", "pool": ""})
    assert said(view, stream) == "12:00:00  warning  permit.poisoned  pod=default-browser-1\n"


def test_progress_is_told_every_few_seconds_when_something_has_changed(view, stream, monkeypatch):
    async def watch():
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(plain.time, "monotonic", loop.time)
        running = ScriptedRun(a_row("big", "Running"))
        view.attach(running)
        task = loop.create_task(view.follow())
        await asyncio.sleep(30)
        running.rows = (a_row("big", "Running"), a_row("later", "Queued", reason="WaitingForSlot"))
        await asyncio.sleep(10)
        task.cancel()
        await asyncio.wait([task])

    run(watch())
    lines = said(view, stream).splitlines()
    assert lines == [
        "12:00:00  7 pages (1.5/s), permits 1/4: 1 Running",
        "12:00:00  7 pages (1.5/s), permits 1/4: 1 Running, 1 Queued (WaitingForSlot 1)",
    ]


def test_progress_names_pages_rate_permits_and_states():
    assert plain.progress(a_snapshot(a_row())) == "7 pages (1.5/s), permits 1/4: 1 Succeeded"
