"""Following links, against a site in memory (cases W6, W7, W8; invariant I12)."""

import asyncio
import json
from itertools import pairwise

from tests.fakes.crawls import a_spec, an_attempt, crawl
from tests.fakes.site_tab import FakePage, FakeTab, HandClock, linking

from pageslots.wire import Follow, Outcome
from pageslots_agent.frontier import ADMIT_BATCH
from pageslots_agent.ports import LoadFault

SHOP = "https://shop.example/"
ROBOTS = f"{SHOP}robots.txt"
HOST = Follow("host")


def a_robots(text: str, status: int = 200) -> FakePage:
    return FakePage(text=text, status=status, content_type="text/plain")


def follow(pages, *, start: str = SHOP, **spec):
    tab = FakeTab(pages, HandClock())
    report = crawl(a_spec(start, **({"follow": HOST, "max_pages": 100} | spec)), tab, tab._clock)
    return report, tab


def test_disallowed_links_are_not_loaded_and_the_start_page_is():
    pages = {
        SHOP: linking("/private/1", "/public"),
        ROBOTS: a_robots("User-agent: *\nDisallow: /private/\nDisallow: /$"),
        f"{SHOP}public": linking("/private/2"),
    }
    report, tab = follow(pages)
    assert tab.visited == [SHOP, ROBOTS, f"{SHOP}public"]
    assert report.outcome is Outcome.OK
    assert report.message == "1 links not followed: disallowed by robots.txt"
    assert report.pages.done == 2


def test_robots_can_be_ignored():
    _, tab = follow({SHOP: linking("/a"), f"{SHOP}a": linking()}, obey_robots=False)
    assert tab.visited == [SHOP, f"{SHOP}a"]


def test_nothing_is_followed_while_robots_can_not_be_reached():
    report, tab = follow({SHOP: linking("/a"), ROBOTS: FakePage(status=503)})
    assert tab.visited == [SHOP, ROBOTS]
    assert report.outcome is Outcome.OK


def test_a_crawl_delay_is_kept_between_all_requests_to_the_host():
    pages = {SHOP: linking("/a", "/b"), ROBOTS: a_robots("User-agent: *\nCrawl-delay: 5")}
    pages |= {f"{SHOP}{name}": linking() for name in "ab"}
    _, tab = follow(pages)
    times = {url: at for at, url in tab.visits}
    assert times[f"{SHOP}a"] >= times[ROBOTS] + 5_000
    assert times[f"{SHOP}b"] >= times[f"{SHOP}a"] + 5_000


def test_a_proxy_that_fails_at_robots_ends_the_attempt_as_such():
    report, _ = follow({SHOP: linking("/a"), ROBOTS: FakePage(status=None, fault=LoadFault.PROXY)})
    assert report.outcome is Outcome.PROXY_ERROR
    assert "robots.txt" in report.message


def test_each_origin_has_its_own_rules():
    other = "http://shop.example/"
    pages = {
        SHOP: linking(f"{other}x", "/x"),
        ROBOTS: a_robots("User-agent: *\nDisallow:"),
        f"{other}robots.txt": a_robots("User-agent: *\nDisallow: /"),
        f"{SHOP}x": linking(),
    }
    _, tab = follow(pages)
    assert sorted(tab.visited) == sorted([SHOP, ROBOTS, f"{other}robots.txt", f"{SHOP}x"])


def test_page_delay_is_kept_between_pages_of_a_host():
    pages = {f"{SHOP}{i}": linking() for i in range(4)}
    tab = FakeTab(pages, HandClock())
    crawl(a_spec(*pages, page_delay_ms=2_000), tab, tab._clock)
    assert [at for at, _ in tab.visits] == [0, 2_000, 4_000, 6_000]


def test_hosts_take_turns_while_one_waits():
    pages = {f"https://{host}.example/{i}": linking() for host in "ab" for i in range(3)}
    tab = FakeTab(pages, HandClock())
    crawl(a_spec(*pages), tab, tab._clock)
    assert [url[8] for url in tab.visited] == ["a", "b"] * 3


def test_depth_and_prefix_bound_a_crawl():
    pages = {f"{SHOP}list/{i}": linking(f"{i + 1}", "/other") for i in range(10)}
    report, tab = follow(
        pages, start=f"{SHOP}list/0", follow=Follow("prefix", max_depth=3), obey_robots=False
    )
    assert tab.visited == [f"{SHOP}list/{i}" for i in range(4)]
    assert report.pages.done == 4


def test_a_redirected_front_page_is_followed_where_it_ends():
    www = "https://www.shop.example/"
    front = linking("/a")
    pages = {SHOP: FakePage(front.html, final_url=www), f"{www}a": linking()}
    _, tab = follow(pages, obey_robots=False)
    assert tab.visited == [SHOP, f"{www}a"]


def test_a_page_that_was_redirected_away_is_not_followed_from_there():
    away = FakePage(linking("https://shop.example/b").html, final_url="https://else.example/")
    _, tab = follow({SHOP: linking("/a"), f"{SHOP}a": away, f"{SHOP}b": linking()}, obey_robots=False)
    assert tab.visited == [SHOP, f"{SHOP}a"]


def test_fifty_spellings_of_a_page_are_loaded_once():
    """Case W6."""
    spellings = [f"HTTPS://SHOP.EXAMPLE:443/x/../a#{i}" for i in range(25)]
    spellings += [f"/./%61?PHPSESSID={i}" for i in range(25)]
    _, tab = follow({SHOP: linking(*spellings)}, obey_robots=False)
    assert len(tab.visited) == 2


def test_a_calendar_without_end_stops_at_max_pages():
    """Case W6."""

    class Calendar(dict):
        def get(self, url, default=None):
            day = int(url.rpartition("/")[2] or 0)
            return linking(f"/{day + 1}", f"/{day + 2}")

    tab = FakeTab(Calendar(), HandClock())
    report = crawl(a_spec(SHOP, follow=HOST, max_pages=30, obey_robots=False), tab, tab._clock)
    assert (report.outcome, report.pages.done, len(tab.visited)) == (Outcome.OK, 30, 30)


def test_without_max_pages_links_are_not_followed():
    report, _ = follow({SHOP: linking("/a")}, max_pages=0)
    assert (report.outcome, report.pages.done) == (Outcome.OK, 1)


def test_a_page_of_a_hundred_thousand_links_does_not_block_the_agent():
    """Case W6, invariant I12: the event loop goes on answering while they are read and admitted."""
    html = "".join(f'<a href="/{i}">x</a>' for i in range(100_000))
    tab = FakeTab({SHOP: FakePage(html)}, HandClock(), default=linking())
    attempt = an_attempt(a_spec(SHOP, follow=HOST, max_pages=20, obey_robots=False), tab, tab._clock)

    admit, batches, turns = attempt._frontier.admit, [], 0

    def recorded(candidates):
        known = list(candidates)
        batches.append((len(known), turns))
        return admit(known)

    async def run_beside_another_task() -> None:
        nonlocal turns
        running = asyncio.create_task(attempt.run())
        while not running.done():
            await asyncio.sleep(0)
            turns += 1
        assert running.result().pages.done == 20

    attempt._frontier.admit = recorded
    asyncio.run(run_beside_another_task())
    assert max(size for size, _ in batches) <= ADMIT_BATCH
    assert len(batches) > 20
    assert all(before < after for (_, before), (_, after) in pairwise(batches))
    assert attempt.report.pages.discovered <= 10_001


def test_links_can_be_captured_without_being_followed():
    tab = FakeTab({SHOP: linking("/a", "https://else.example/")}, HandClock())
    attempt = an_attempt(a_spec(SHOP, capture=("links",)), tab, tab._clock)
    asyncio.run(attempt.run())
    [record] = map(json.loads, attempt.records(0).splitlines())
    assert record["links"] == [f"{SHOP}a", "https://else.example/"]
    assert tab.visited == [SHOP]
