"""robots.txt by RFC 9309 (case W8)."""

import asyncio

import pytest
from tests.fakes.site_tab import FakePage, FakeTab, HandClock

from pageslots_agent.ports import LoadFault, Visit
from pageslots_agent.robots import MAX_CHARACTERS, MAX_CRAWL_DELAY_MS, RobotsBook, SlotSpentError, rules_of
from pageslots_agent.urls import parse

ROBOTS = "https://shop.example/robots.txt"
PAGE = "https://shop.example/private/x"
NO_PRIVATE = "User-agent: *\nDisallow: /private/\n"


def rules(
    text: str = "", status: int | None = 200, fault: LoadFault | None = None, *, is_download: bool = False
):
    visit = Visit(url=ROBOTS, final_url=ROBOTS, status=status, fault=fault, is_download=is_download)
    return rules_of(visit, text)


def test_a_disallowed_page_is_not_allowed_and_others_are():
    assert not rules(NO_PRIVATE).allows(PAGE)
    assert rules(NO_PRIVATE).allows("https://shop.example/public")


def test_rules_for_us_go_before_rules_for_everybody():
    assert rules("User-agent: *\nDisallow: /\n\nUser-agent: PageSlots\nAllow: /\n").allows(PAGE)


def test_the_longest_match_decides():
    assert rules("User-agent: *\nDisallow: /private/\nAllow: /private/x").allows(PAGE)


@pytest.mark.parametrize(
    ("status", "fault", "allowed"),
    [
        (404, None, True),
        (403, None, True),
        (410, None, True),
        (429, None, False),
        (500, None, False),
        (503, None, False),
        (None, LoadFault.TIMEOUT, False),
        (None, LoadFault.DNS, False),
        (None, LoadFault.REFUSED, False),
        (None, LoadFault.TLS, False),
        (None, LoadFault.REDIRECT_LOOP, True),
        (None, LoadFault.FORBIDDEN_ADDRESS, True),
    ],
)
def test_without_a_file_the_answer_decides(status, fault, allowed):
    assert rules("", status, fault).allows(PAGE) is allowed


def test_a_file_that_is_offered_for_download_holds_no_rules():
    assert rules(NO_PRIVATE, is_download=True).allows(PAGE)


def test_a_page_in_the_place_of_the_file_holds_no_rules():
    assert rules("Welcome to our shop!\nHome | Products").allows(PAGE)


def test_a_huge_file_is_cut():
    assert not rules(NO_PRIVATE + "# padding\n" * MAX_CHARACTERS).allows(PAGE)
    assert rules("# padding\n" * (MAX_CHARACTERS // 10 + 1) + NO_PRIVATE).allows(PAGE)


@pytest.mark.parametrize(
    ("text", "pause_ms"),
    [
        ("User-agent: *\nCrawl-delay: 2.5", 2_500),
        ("User-agent: *\nCrawl-delay: 86400", MAX_CRAWL_DELAY_MS),
        ("User-agent: *\nCrawl-delay: -1", 0),
        ("User-agent: *\nCrawl-delay: slow", 0),
        ("User-agent: *\nDisallow:", 0),
    ],
)
def test_a_crawl_delay_is_obeyed_up_to_a_bound(text, pause_ms):
    assert rules(text).crawl_delay_ms == pause_ms


def fetch(book: RobotsBook, page: FakePage, url: str = PAGE) -> FakeTab:
    tab = FakeTab({ROBOTS: page}, HandClock())
    asyncio.run(book.fetch(parse(url), tab, timeout_ms=1_000))
    return tab


def test_rules_are_fetched_for_the_origin_and_kept():
    book = RobotsBook()
    tab = fetch(book, FakePage(text=NO_PRIVATE, content_type="text/plain"))
    assert tab.visited == [ROBOTS]
    known = book.known("https://shop.example")
    assert known is not None
    assert not known.allows(PAGE)
    assert book.known("http://shop.example") is None


@pytest.mark.parametrize(
    "page",
    [
        FakePage(status=None, fault=LoadFault.PROXY),
        FakePage(status=None, fault=LoadFault.CRASH),
        FakePage(status=407),
    ],
)
def test_a_spent_slot_says_nothing_about_the_site(page):
    book = RobotsBook()
    with pytest.raises(SlotSpentError):
        fetch(book, page)
    assert book.known("https://shop.example") is None
