import asyncio
import re
import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import ada_url
import aiohttp
import pytest
from lxml import html
from tests.site.hostile import HOSTILE_PAGES, RETRY_SECONDS, HostilePage, HostileSite, hostile_page
from tests.site.hostile_pages import BOMB_MIB, HEAVY_PARTS, LIGHT_PARTS, SESSION_PAGES, gzip_bomb
from tests.site.odd_links import BASE, odd_links, spellings

Visit = Callable[[HostileSite, aiohttp.ClientSession], Awaitable[None]]


def visiting(visit: Visit) -> None:
    async def run() -> None:
        async with HostileSite() as site, aiohttp.ClientSession(auto_decompress=False) as session:
            async with asyncio.timeout(30):
                await visit(site, session)

    asyncio.run(run())


async def body(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.get(url) as answer:
        assert answer.status == 200, url
        return await answer.read()


def test_no_two_pages_have_one_name():
    assert len({page.name for page in HOSTILE_PAGES}) == len(HOSTILE_PAGES)
    assert hostile_page("redirect-chain-40").path == "/redirect/chain?left=40"


def test_the_table_covers_its_cases():
    assert {page.case for page in HOSTILE_PAGES} >= {
        "W1",
        "W2",
        "W3",
        "W4",
        "W5",
        "W6",
        "W7",
        "W11",
        "W12",
        "W16",
    }


@pytest.mark.parametrize("page", HOSTILE_PAGES, ids=lambda page: page.name)
def test_a_page_answers_as_the_table_says(page: HostilePage):
    async def visit(site, session):
        if page.status is None:
            with pytest.raises((TimeoutError, aiohttp.ClientPayloadError)):
                await _read_to_the_end(session, site.url(page.path))
            return
        async with session.get(site.url(page.path), allow_redirects=False) as answer:
            assert answer.status == page.status
            text = await answer.read()
        if page.status == 200 and page.case != "W7" and "Content-Encoding" not in answer.headers:
            assert page.text.encode() in text

    visiting(visit)


async def _read_to_the_end(session: aiohttp.ClientSession, url: str) -> None:
    """Fails after 0.5 s, as reading what never ends must."""
    async with asyncio.timeout(0.5), session.get(url) as answer:
        async for _ in answer.content.iter_any():
            pass


def test_redirects_into_the_inside_name_it_and_are_not_followed_by_the_site():
    """case W4"""

    async def visit(site, session):
        targets = {}
        for page in HOSTILE_PAGES:
            if page.path.startswith("/redirect/"):
                async with session.get(site.url(page.path), allow_redirects=False) as answer:
                    targets[page.name] = answer.headers["Location"]
        assert targets["redirect-metadata"].startswith("http://169.254.169.254/")
        assert targets["redirect-private"].startswith("http://10.0.0.1/")
        assert targets["redirect-file"].startswith("file:///")
        assert targets["redirect-chrome"].startswith("chrome://")
        assert targets["redirect-loop"] == "/redirect/loop"
        assert site.neighbour_hits == []

        neighbour = urlsplit(targets["redirect-neighbour"])
        assert neighbour.hostname == "127.0.0.1"
        assert neighbour.port != site.port
        await body(session, targets["redirect-neighbour"])
        assert [hit.path for hit in site.neighbour_hits] == ["/redirected"]
        assert site.allowed_cidrs == ("127.66.0.0/16",)

    visiting(visit)


def test_a_chain_ends_after_its_hops():
    """case W4"""

    async def visit(site, session):
        async with session.get(site.url("/redirect/chain?left=3")) as answer:
            assert len(answer.history) == 3
            assert answer.url.path == "/redirect/end"

    visiting(visit)


def test_a_page_has_100_000_distinct_links():
    """case W6"""

    async def visit(site, session):
        page = await body(session, site.url("/links/many?count=100000"))
        assert len(set(re.findall(rb'href="([^"]+)"', page))) == 100_000
        assert b"page 99999" in await body(session, site.url("/linked/99999"))

    visiting(visit)


def test_the_calendar_goes_on_in_both_directions():
    """case W6"""

    async def visit(site, session):
        page = html.fromstring(await body(session, site.url("/calendar/2026/1")))
        assert [link.get("href") for link in page.cssselect("a")] == ["/calendar/2025/12", "/calendar/2026/2"]

    visiting(visit)


def test_session_ids_are_new_in_every_answer():
    """case W6"""

    async def visit(site, session):
        first, second = [
            set(re.findall(rb"sid=(\w+)", await body(session, site.url("/session/page-3")))) for _ in range(2)
        ]
        assert len(first) == len(second) == 1
        assert first != second
        links = re.findall(rb"/session/(page-\d+)", await body(session, site.url("/session/page-0")))
        assert len(set(links)) == SESSION_PAGES

    visiting(visit)


def test_50_spellings_are_one_url_by_the_url_standard():
    """case W6; ada is the URL parser that browsers' test suites are run against"""
    every = spellings("127.66.0.1", 8080)

    assert len(set(every)) == 50
    canonical = {
        ada_url.URL(spelling, base="http://127.66.0.1:8080/").href.partition("#")[0] for spelling in every
    }
    assert canonical == {"http://127.66.0.1:8080/one/page"}


def test_odd_links_lead_where_the_url_standard_says():
    """case W7: the table was written by hand, this compares it with an implementation"""
    origin = "http://127.66.0.1:8080"
    for href, expected in odd_links(origin).items():
        try:
            leads_to = ada_url.URL(href, base=origin + BASE).href.partition("#")[0]
        except ValueError:
            leads_to = ""
        is_page = leads_to.startswith(("http://", "https://"))
        assert (leads_to if is_page else None) == expected, repr(href)


def test_the_odd_links_stand_in_the_page():
    """case W7"""

    async def visit(site, session):
        page = html.fromstring((await body(session, site.url("/links/odd"))).decode())
        hrefs = [link.get("href") for link in page.cssselect("a[href]")]
        assert hrefs == list(odd_links(site.origin))
        assert page.cssselect("base")[0].get("href") == BASE

    visiting(visit)


@pytest.mark.parametrize(
    ("charset", "python_name"),
    [("windows-1251", "windows-1251"), ("shift_jis", "shift_jis"), ("utf-16", "utf-16")],
)
def test_a_page_in_another_charset_is_in_that_charset(charset, python_name):
    """case W7"""

    async def visit(site, session):
        page = hostile_page(f"charset-{charset}")
        received = await body(session, site.url(page.path))
        assert page.text in received.decode(python_name)
        with pytest.raises(UnicodeDecodeError):
            received.decode("utf-8")

    visiting(visit)


def test_retry_after_is_given_in_seconds_and_as_a_date():
    """case W11"""

    async def visit(site, session):
        async with session.get(site.url("/limited/seconds")) as answer:
            assert answer.headers["Retry-After"] == str(RETRY_SECONDS)
        async with session.get(site.url("/limited/date")) as answer:
            wait = parsedate_to_datetime(answer.headers["Retry-After"]) - datetime.now(UTC)
        assert timedelta(seconds=RETRY_SECONDS - 3) < wait <= timedelta(seconds=RETRY_SECONDS)

    visiting(visit)


def test_the_bomb_is_small_on_the_wire_and_huge_in_memory():
    """case W12"""
    bomb = gzip_bomb()

    assert len(bomb) < 2**20
    unpacker, size = zlib.decompressobj(31), 0
    left = bomb
    while left and not unpacker.eof:
        size += len(unpacker.decompress(left, 2**22))
        left = unpacker.unconsumed_tail
    assert size > BOMB_MIB * 2**20


def test_the_heavy_page_weighs_what_pages_weigh():
    """case W16"""

    async def visit(site, session):
        page = (await body(session, site.url("/heavy"))).decode()
        light = sum([len(await body(session, site.url(path))) for path in LIGHT_PARTS]) + len(page)
        heavy = sum([len(await body(session, site.url(path))) for path in HEAVY_PARTS])
        assert all(path in page for path in (*HEAVY_PARTS, *LIGHT_PARTS) if "font" not in path)
        assert heavy > 1_500_000
        assert light < 0.15 * (light + heavy)

    visiting(visit)


def test_the_socket_answers():
    async def visit(site, session):
        async with session.ws_connect(site.url("/socket/open")) as socket:
            await socket.send_str("hello")
            assert await socket.receive_str() == "hello"

    visiting(visit)


def _stands_in(task: asyncio.Task[object], names: set[str]) -> bool:
    """Whether one of the coroutines that a task awaits has one of these names."""
    coroutine = task.get_coro()
    while coroutine is not None:
        if getattr(coroutine, "__name__", "") in names:
            return True
        coroutine = getattr(coroutine, "cr_await", None)
    return False


def test_a_client_that_leaves_ends_its_endless_answer():
    """The server must not keep answering into nothing: it serves hundreds of these in one test run."""

    async def visit(site, session):
        for path in ("/late/drip", "/late/no-answer", "/huge/stream"):
            with pytest.raises(TimeoutError):
                await _read_to_the_end(session, site.url(path))
            assert path in site.log.paths()
        await session.close()
        async with asyncio.timeout(5):
            while any(_stands_in(task, {"_late", "_huge"}) for task in asyncio.all_tasks()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # the end of a handler sets no event that a test could wait for

    visiting(visit)
