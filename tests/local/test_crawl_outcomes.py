"""How whole attempts end, against a site in memory."""

import asyncio
import json
from collections.abc import Mapping

import pytest
from tests.fakes.crawls import TITLE, a_spec, an_attempt, counted_records, crawl
from tests.fakes.site_tab import Answer, FakePage, FakeTab, HandClock, linking

from pageslots.wire import Extract, Follow, Outcome, StopReason, UrlsFrom
from pageslots_agent.ports import LoadFault

SHOP = "https://shop.example/"
CHALLENGE = FakePage("<title>Just a moment...</title><script>window._cf_chl_opt={}</script>")
DNS = FakePage(status=None, fault=LoadFault.DNS, message="no such host")


def a_tab(pages: Mapping[str, Answer]) -> FakeTab:
    return FakeTab(pages, HandClock())


def run(pages: Mapping[str, Answer], *starts: str, **spec: object):
    tab = a_tab(pages)
    attempt = an_attempt(a_spec(*(starts or (SHOP,)), **spec), tab, tab._clock)
    report = asyncio.run(attempt.run())
    return report, [json.loads(line) for line in attempt.records(0).splitlines()], tab


@pytest.mark.parametrize(
    ("page", "outcome", "rule"),
    [
        (FakePage(status=403), Outcome.BLOCKED, "http-403"),
        (FakePage(status=404), Outcome.NOT_FOUND, "http-404"),
        (FakePage(status=500), Outcome.SITE_ERROR, "http-500"),
        (FakePage(status=400), Outcome.SITE_ERROR, "http-400"),
        (CHALLENGE, Outcome.BLOCKED, "cloudflare-challenge"),
        (FakePage("<html><head></head><body></body></html>"), Outcome.BLOCKED, "empty"),
        (DNS, Outcome.SITE_ERROR, "fault-Dns"),
        (FakePage(status=None, fault=LoadFault.REDIRECT_LOOP), Outcome.SITE_ERROR, "fault-RedirectLoop"),
        (
            FakePage(status=None, fault=LoadFault.FORBIDDEN_ADDRESS),
            Outcome.BAD_REQUEST,
            "fault-ForbiddenAddress",
        ),
        (FakePage(status=None, fault=LoadFault.PROXY), Outcome.PROXY_ERROR, "fault-Proxy"),
        (FakePage(status=None, fault=LoadFault.BROWSER_GONE), Outcome.BROWSER_CRASH, "fault-BrowserGone"),
        (FakePage("<p>x</p>", unreadable=LoadFault.UNRESPONSIVE), Outcome.SITE_ERROR, "fault-Unresponsive"),
        (FakePage("<p>x</p>", unreadable=LoadFault.CRASH), Outcome.BROWSER_CRASH, "fault-Crash"),
    ],
)
def test_a_request_whose_only_page_fails_never_succeeds(page, outcome, rule):
    """Case W3."""
    report, records, _ = run({SHOP: page})
    assert report.outcome is outcome
    assert report.start_pages_ok == 0
    assert f"(rule {rule})" in report.message
    assert [(record["url"], record["outcome"], record["rule"]) for record in records] == [
        (SHOP, outcome, rule)
    ]


def test_one_dead_page_among_many_is_named_and_the_rest_succeeds(tmp_path):
    """Case W3."""
    pages = {f"{SHOP}{i}": linking(title=f"item {i}") for i in range(500)} | {f"{SHOP}77": DNS}
    tab = a_tab(pages)

    report = crawl(a_spec(*pages, extract=(TITLE,), output_uri=str(tmp_path)), tab, tab._clock)

    assert report.outcome is Outcome.OK
    assert (report.pages.done, report.pages.failed, report.records) == (499, 1, 500)
    [failed] = [record for record in counted_records(tmp_path) if record["outcome"] != "Ok"]
    assert (failed["url"], failed["message"], failed["tries"]) == (f"{SHOP}77", "no such host", 3)


def test_a_site_error_is_tried_again_after_a_pause():
    answers = [FakePage(status=502), FakePage(status=502), linking()]
    report, _, tab = run({SHOP: lambda nth: answers[nth]})
    assert report.outcome is Outcome.OK
    assert [at for at, _ in tab.visits] == [0, 1_050, 3_100]


def test_a_blocked_page_ends_the_attempt_and_waits_at_the_end_of_the_queue(tmp_path):
    pages = {
        SHOP: linking(),
        f"{SHOP}a": FakePage(status=429, headers={"retry-after": "30"}),
        f"{SHOP}b": linking(),
    }
    tab = a_tab(pages)
    spec = a_spec(*pages, output_uri=str(tmp_path))

    first = crawl(spec, tab, tab._clock)
    assert (first.outcome, first.retry_after_ms, first.new_ok_pages) == (Outcome.BLOCKED, 30_000, 1)
    assert not first.all_tried_blocked
    [evidence] = tmp_path.glob("_failure-*.json")
    assert json.loads(evidence.read_text())["rule"] == "http-429"

    tab = a_tab({**pages, f"{SHOP}a": linking()})
    second = crawl(a_spec(*pages, output_uri=str(tmp_path), number=2), tab, tab._clock)
    assert second.outcome is Outcome.OK
    assert tab.visited == [f"{SHOP}b", f"{SHOP}a"]
    assert (second.pages.done, second.new_ok_pages, second.start_pages_ok) == (3, 2, 3)
    assert [record["tries"] for record in counted_records(tmp_path)] == [1, 1, 2]


def test_a_page_that_is_blocked_three_times_is_given_up_and_the_others_go_on(tmp_path):
    pages = {SHOP: linking(), f"{SHOP}a": FakePage(status=403), f"{SHOP}b": linking()}
    outcomes = []
    for number in (1, 2, 3):
        tab = a_tab(pages)
        report = crawl(a_spec(*pages, output_uri=str(tmp_path), number=number), tab, tab._clock)
        outcomes.append(report.outcome)

    assert outcomes == [Outcome.BLOCKED, Outcome.BLOCKED, Outcome.OK]
    assert (report.pages.done, report.pages.failed, report.pages.blocked) == (2, 1, 1)


def test_an_attempt_that_met_nothing_but_blocks_says_so():
    report, _, _ = run({SHOP: FakePage(status=403)})
    assert report.all_tried_blocked


def test_a_request_none_of_whose_start_pages_succeeded_starts_over(tmp_path):
    """The next attempt gets the same chance: failed start pages are no result."""
    first = crawl(
        a_spec(SHOP, output_uri=str(tmp_path), page_retries=0), tab := a_tab({SHOP: DNS}), tab._clock
    )
    assert first.outcome is Outcome.SITE_ERROR

    tab = a_tab({SHOP: linking()})
    second = crawl(a_spec(SHOP, output_uri=str(tmp_path), number=2), tab, tab._clock)
    assert (second.outcome, second.pages.failed) == (Outcome.OK, 0)
    assert [record["outcome"] for record in counted_records(tmp_path)] == ["Ok"]


def test_a_finished_request_never_runs_again(tmp_path):
    """Case D11, invariant I4: the result reached storage, whatever became of the news."""
    spec = a_spec(SHOP, output_uri=str(tmp_path))
    first = crawl(spec, tab := a_tab({SHOP: linking()}), tab._clock)

    tab = a_tab({SHOP: DNS})
    again = crawl(a_spec(SHOP, output_uri=str(tmp_path), number=2), tab, tab._clock)

    assert tab.visited == []
    assert (again.outcome, again.pages, again.records) == (Outcome.OK, first.pages, 1)


def test_a_folder_of_another_request_is_refused_and_left_alone(tmp_path):
    crawl(a_spec(SHOP, output_uri=str(tmp_path)), tab := a_tab({SHOP: linking()}), tab._clock)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    report = crawl(
        a_spec(SHOP, output_uri=str(tmp_path), uid="uid-2"), tab := a_tab({SHOP: linking()}), tab._clock
    )

    assert report.outcome is Outcome.BAD_REQUEST
    assert "_done.json was written for another request; use another path, or remove" in report.message
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"extract": (Extract("price", css="li[["),)}, "extract \"price\": css 'li[['"),
        ({"extract": (Extract("price", xpath="nope(//a)"),)}, "extract \"price\": xpath 'nope(//a)'"),
        ({"capture": ("video",)}, "capture: 'video' is not one of text, html, links, screenshot"),
        ({"follow": Follow("planet")}, "follow.scope: 'planet' is not one of"),
        ({"urls_from": UrlsFrom("/no/such.csv")}, "/no/such.csv: No such file or directory"),
        ({"output_uri": "s3://bucket/x"}, "the scheme 's3' is not supported"),
    ],
)
def test_an_unusable_request_says_what_is_wrong(spec, said):
    report, _, _ = run({SHOP: linking()}, **spec)
    assert report.outcome is Outcome.BAD_REQUEST
    assert said in report.message


def test_an_awaited_selector_that_can_not_be_compiled_ends_the_attempt():
    bad = FakePage(fault=LoadFault.BAD_SELECTOR, message="waitFor: '>>' is not a selector")
    report, records, tab = run({SHOP: bad}, SHOP, f"{SHOP}a")
    assert (report.outcome, report.message, records) == (Outcome.BAD_REQUEST, bad.message, [])
    assert tab.visited == [SHOP]


def test_bad_rows_are_recorded_with_their_input(tmp_path):
    urls = tmp_path / "urls.csv"
    urls.write_text(f"sku,url\n1,{SHOP}\n2,nonsense\n3,{SHOP}#again\n")
    report, records, tab = run({SHOP: linking()}, urls_from=UrlsFrom(str(urls)))
    assert report.outcome is Outcome.OK
    assert tab.visited == [SHOP]
    assert [(r["outcome"], r["input"]["sku"]) for r in records] == [("BadRequest", "2"), ("Ok", "1")]
    assert (report.pages.done, report.pages.failed, report.pages.discovered) == (1, 1, 2)


def test_a_part_without_rows_is_fine_and_a_file_without_rows_is_not(tmp_path):
    urls = tmp_path / "urls.csv"
    urls.write_text(f"url\n{SHOP}\n")
    assert run({SHOP: linking()}, urls_from=UrlsFrom(str(urls), 1, 2))[0].outcome is Outcome.OK
    urls.write_text("url\n")
    assert run({SHOP: linking()}, urls_from=UrlsFrom(str(urls)))[0].outcome is Outcome.BAD_REQUEST


def test_time_is_up_between_pages_and_the_next_attempt_goes_on(tmp_path):
    pages = {f"{SHOP}{i}": FakePage("<p>slow</p>", milliseconds=4_000) for i in range(10)}
    seen = []
    for number in (1, 2, 3):
        tab = a_tab(pages)
        spec = a_spec(*pages, output_uri=str(tmp_path), number=number, attempt_ms=18_000)
        report = crawl(spec, tab, tab._clock)
        seen.append((report.outcome, report.new_ok_pages))

    assert seen == [(Outcome.TIMEOUT, 4), (Outcome.TIMEOUT, 4), (Outcome.OK, 2)]
    assert sorted(record["url"] for record in counted_records(tmp_path)) == sorted(pages)
    assert all(record["tries"] == 1 for record in counted_records(tmp_path))


def test_a_deadline_without_an_output_ends_the_attempt():
    slow = FakePage("<p>x</p>", milliseconds=9_000)
    report, _, _ = run({SHOP: slow, f"{SHOP}2": slow}, SHOP, f"{SHOP}2", deadline_ms=10_000)
    assert (report.outcome, report.message) == (Outcome.TIMEOUT, "deadlineSeconds is over")


def test_a_page_that_takes_too_long_is_a_site_error():
    """Case W12."""
    report, _, _ = run({SHOP: FakePage("<p>x</p>", milliseconds=60_000)}, page_retries=0)
    assert report.outcome is Outcome.SITE_ERROR


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (StopReason.STOPPED, Outcome.STOPPED),
        (StopReason.SUSPENDED, Outcome.STOPPED),
        (StopReason.SHUTDOWN, Outcome.STOPPED),
        (StopReason.DEADLINE, Outcome.TIMEOUT),
    ],
)
def test_a_stopped_attempt_finishes_its_page_and_is_resumed(tmp_path, reason, outcome):
    """Case W15."""
    pages = {f"{SHOP}{i}": linking() for i in range(6)}
    tab = a_tab(pages)
    attempt = an_attempt(a_spec(*pages, output_uri=str(tmp_path)), tab, tab._clock)

    def stop_at_third(url: str) -> None:
        if url == f"{SHOP}2":
            attempt.request_stop(reason, page_grace_ms=6_000)

    tab.on_visit = stop_at_third
    report = asyncio.run(attempt.run())
    assert (report.outcome, report.stop_reason, report.pages.done) == (outcome, reason, 3)

    tab = a_tab(pages)
    crawl(a_spec(*pages, output_uri=str(tmp_path), number=2), tab, tab._clock)
    assert tab.visited == [f"{SHOP}{i}" for i in (3, 4, 5)]
    assert [record["url"] for record in counted_records(tmp_path)] == list(pages)


def test_a_page_that_outlasts_its_grace_goes_back(tmp_path):
    """Case W15."""

    class HangingTab(FakeTab):
        async def html(self, **_: object) -> str:
            attempt.request_stop(StopReason.SHUTDOWN, page_grace_ms=20)
            self._clock.move(21)
            await asyncio.Event().wait()
            raise AssertionError

    tab = HangingTab({SHOP: linking()}, HandClock())
    attempt = an_attempt(a_spec(SHOP, output_uri=str(tmp_path)), tab, tab._clock)
    report = asyncio.run(attempt.run())
    assert (report.outcome, report.records) == (Outcome.STOPPED, 0)

    fine = a_tab({SHOP: linking()})
    assert crawl(a_spec(SHOP, output_uri=str(tmp_path), number=2), fine, fine._clock).outcome is Outcome.OK
    assert [record["tries"] for record in counted_records(tmp_path)] == [1]


def test_an_attempt_that_is_stopped_before_it_runs_loads_nothing():
    tab = a_tab({SHOP: linking()})
    attempt = an_attempt(a_spec(SHOP), tab, tab._clock)
    attempt.request_stop(StopReason.STOPPED, page_grace_ms=0)
    assert asyncio.run(attempt.run()).outcome is Outcome.STOPPED
    assert tab.visited == []


def test_a_fault_of_ours_is_an_outcome_and_not_a_crash():
    class BrokenTab(FakeTab):
        async def html(self, **_: object) -> str:
            raise RuntimeError("a bug")

    tab = BrokenTab({SHOP: linking()}, HandClock())
    report = crawl(a_spec(SHOP), tab, tab._clock)
    assert (report.outcome, report.message) == (Outcome.SLOT_LOST, "the agent failed: RuntimeError: a bug")


def test_a_full_scratch_disk_is_named():
    """Case W13."""
    tab = a_tab({SHOP: linking()})
    attempt = an_attempt(a_spec(SHOP), tab, tab._clock)
    attempt._frontier._db.execute("PRAGMA max_page_count = 1")  # SQLite's way of having no more room
    attempt._frontier.admit = lambda _: attempt._frontier._db.execute("CREATE TABLE more (x)")
    report = asyncio.run(attempt.run())
    assert report.outcome is Outcome.SLOT_LOST
    assert "its scratch file in /" in report.message
    assert "disk is full" in report.message
