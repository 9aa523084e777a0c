import asyncio
from urllib.parse import urljoin

import aiohttp
from lxml import html
from tests.site.many import ManySites, OneSite, describe


async def items_of(
    session: aiohttp.ClientSession, site: OneSite
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Crawl one site as its description says: (URL → (name, price), the URLs that answered 404)."""
    found, missing, seen, queue = {}, [], {site.start_url}, [site.start_url]
    while queue:
        url = queue.pop(0)
        async with session.get(url) as answer:
            url, status = str(answer.url), answer.status
            page = html.fromstring((await answer.read()).decode(site.charset))
        name, price = (page.cssselect(selector) for selector in site.selectors)
        if status == 404:
            missing.append(url)
        elif name:
            found[url] = (name[0].text_content(), price[0].text_content())
        else:
            links = {urljoin(url, link.get("href")) for link in page.cssselect("a")} - seen
            seen |= links
            queue += sorted(links)
    return found, missing


def test_each_of_100_sites_has_what_it_should():
    async def run() -> None:
        async with ManySites(100) as sites, aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            tasks = [(site, group.create_task(items_of(session, site))) for site in sites]
            for site, task in tasks:
                found, missing = await task
                expected = site.expected
                if site.scripted:
                    assert {url: name for url, (name, _) in found.items()} == {
                        url: name for url, (name, _) in expected.items()
                    }
                    assert {price for _, price in found.values()} == {""}
                else:
                    assert found == expected, site
                assert sorted(missing) == site.missing

    asyncio.run(run())


def test_a_scripts_price_comes_from_the_site():
    async def run() -> None:
        async with ManySites(2) as sites, aiohttp.ClientSession() as session:
            assert sites[1].scripted
            async with session.get(f"{sites[1].origin}/price/0") as answer:
                assert await answer.json() == sites[1].price(0)

    asyncio.run(run())


def test_100_sites_are_100_politeness_keys_and_many_kinds():
    async def run() -> list[OneSite]:
        async with ManySites(100) as sites:
            assert len(sites) == 100
            return list(sites)

    sites = asyncio.run(run())

    assert len({site.site for site in sites}) == 100
    kinds = {
        (s.language, s.paging, s.markup, s.scripted, s.redirects, s.slow, bool(s.missing)) for s in sites
    }
    assert len(kinds) >= 60
    assert describe(7, sites[7].origin) == sites[7]
