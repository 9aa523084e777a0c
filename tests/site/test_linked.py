import asyncio
from collections import deque
from urllib.parse import urldefrag, urljoin, urlsplit

import ada_url
import aiohttp
import pytest
from lxml import html
from tests.site.linked import LinkedSite


async def crawl(session: aiohttp.ClientSession, start: str, *, only: str) -> dict[str, int]:
    """URL → depth of every page below `only` that links lead to: a crawl to measure the site with."""
    depths, queue = {start: 0}, deque([start])
    while queue:
        url = queue.popleft()
        async with session.get(url) as answer:
            assert answer.status == 200, url
            page = html.fromstring(await answer.read())
        for link in page.cssselect("a"):
            target = _canonical(link.get("href"), url)
            if target.startswith(only) and target not in depths:
                depths[target] = depths[url] + 1
                queue.append(target)
    return depths


def _canonical(href: str, base: str) -> str:
    try:
        return urldefrag(ada_url.URL(href, base=base).href).url
    except ValueError:
        return ""


@pytest.mark.parametrize("traps", [frozenset(), frozenset({"spellings", "outside", "files"})])
def test_a_crawl_finds_the_expected_urls_at_the_expected_depths(traps):
    async def run() -> None:
        async with LinkedSite(pages=300, hosts=2, traps=traps) as site, aiohttp.ClientSession() as session:
            for host, start in enumerate(site.start_urls):
                found = await crawl(session, start, only=urljoin(start, "/"))
                assert set(found) == site.urls(host=host)
                assert found == {site.url(page, host=host): site.depth(page) for page in range(300)}
                near = {url for url, depth in found.items() if depth <= 2}
                assert near == site.urls(host=host, max_depth=2)
                assert 0 < len(near) < 300

    asyncio.run(run())


def test_endless_traps_lead_on_and_are_none_of_the_expected_urls():
    """case W6"""

    async def run() -> None:
        traps = frozenset({"calendar", "sessions"})
        async with LinkedSite(pages=3, traps=traps) as site, aiohttp.ClientSession() as session:
            targets = []
            for _ in range(2):
                async with session.get(site.url(2)) as answer:
                    page = html.fromstring(await answer.read())
                targets.append(
                    [link.get("href") for link in page.cssselect("a") if "/page/" not in link.get("href")]
                )
            (calendar, session_1), (calendar_2, session_2) = targets
            assert calendar == calendar_2 == "/calendar/2"
            assert session_1 != session_2
            for trap in (calendar, session_1):
                async with session.get(urljoin(site.url(0), trap)) as answer:
                    [link] = html.fromstring(await answer.read()).cssselect("a")
                    assert link.get("href") not in (calendar, session_1, session_2)
                assert not any(urlsplit(url).path.startswith(trap) for url in site.urls())

    asyncio.run(run())


def test_the_log_has_each_fetch_with_its_host():
    async def run() -> None:
        async with LinkedSite(pages=5, hosts=2) as site, aiohttp.ClientSession() as session:
            for url in site.start_urls:
                async with session.get(url) as answer:
                    await answer.read()
            assert [(hit.site, hit.path) for hit in site.log] == [("0", "/page/0"), ("1", "/page/0")]

    asyncio.run(run())


def test_2000_pages_are_four_links_deep_at_most():
    """A crawl of them must not depend on depth alone: most pages are within five links of the first."""
    site = LinkedSite(pages=2000)

    assert max(site.depth(page) for page in range(2000)) <= 5
