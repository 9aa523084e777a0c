import asyncio
import re
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from lxml import etree, html

from pageslots.demo.catalogue import PAGES, PRODUCTS, STORES, expected_page, expected_product
from pageslots.demo.shop import ShopSite, main


def visiting(visit: Callable[[ShopSite, aiohttp.ClientSession], Awaitable[None]], **settings) -> None:
    async def run() -> None:
        async with ShopSite(**settings) as shop, aiohttp.ClientSession() as session, asyncio.timeout(30):
            await visit(shop, session)

    asyncio.run(run())


async def read(session: aiohttp.ClientSession, url: str, language: str = "") -> html.HtmlElement:
    async with session.get(url, headers={"Accept-Language": language} if language else {}) as answer:
        assert answer.status == 200, url
        return html.fromstring(await answer.text())


def text(page: html.HtmlElement, css: str) -> str:
    [element] = page.cssselect(css)
    return element.text_content()


def test_every_product_page_says_what_the_catalogue_says():
    async def visit(shop, session):
        for country in STORES:
            for sku in PRODUCTS:
                expected = expected_product(country, sku)
                page = await read(session, shop.url(country, expected.path))
                assert text(page, "h1.product-name") == expected.name
                assert text(page, ".list-price") == expected.list_price
                assert text(page, ".sku") == sku
                assert str(expected.stock) in text(page, ".stock") or expected.stock == 0

    visiting(visit)


def test_the_page_follows_the_visitors_language():
    async def visit(shop, session):
        page = await read(session, shop.url("JP", "/product/vase-dusk"), "de-DE,de;q=0.9,en;q=0.8")
        expected = expected_product("JP", "vase-dusk", "de")
        assert page.get("lang") == "de-DE"
        assert text(page, "h1.product-name") == expected.name == "Vase „Dämmerung“"
        assert text(page, ".list-price") == expected.list_price

    visiting(visit)


def test_todays_price_is_not_in_the_page_but_in_the_api():
    async def visit(shop, session):
        expected = expected_product("SG", "stool-ink")
        page = await read(session, shop.url("SG", expected.path))
        assert text(page, ".today-price") == "…"
        async with session.get(shop.url("SG", "/api/price?sku=stool-ink")) as answer:
            price = await answer.json()
        assert price == {
            "sku": "stool-ink",
            "amount": expected.today_amount,
            "currency": "SGD",
            "text": expected.today_price,
        }

    visiting(visit)


def test_the_list_leads_from_page_to_page_and_ends():
    async def visit(shop, session):
        url, seen = shop.url("DE", "/products"), []
        for number in range(1, PAGES + 1):
            page = await read(session, url)
            seen += [card.get("data-sku") for card in page.cssselect(".card")]
            assert seen[-12:] == expected_page(number)
            following = page.cssselect("a[rel=next]")
            assert len(following) == (0 if number == PAGES else 1)
            url = shop.url("DE", following[0].get("href")) if following else ""
        assert seen == list(PRODUCTS)

    visiting(visit)


def test_every_link_part_and_sitemap_entry_of_the_shop_is_there():
    async def visit(shop, session):
        async with session.get(shop.url("SG", "/sitemap.xml")) as answer:
            tree = etree.fromstring(await answer.read())
        urls = {loc.text for loc in tree.iter("{*}loc")}
        assert len(urls) == 1 + PAGES + 8 + 48
        parts = set()
        for url in sorted(urls):
            page = await read(session, url)
            page.make_links_absolute(url)
            links = {link for _, _, link, _ in page.iterlinks()}
            parts |= {link for link in links if "/static/" in link or "/pictures/" in link}
            assert not [link for link in links - parts - urls if not link.endswith("/products")]
            assert not [link for link in links if "/trouble/" in link]
        style = shop.url("SG", "/static/style.css")
        async with session.get(style) as answer:
            parts |= {shop.url("SG", path) for path in re.findall(r'url\("([^"]+)"\)', await answer.text())}
        assert len(parts) == 48 + 5
        for part in parts:
            async with session.get(part) as answer:
                assert answer.status == 200, part

    visiting(visit)


def test_pictures_are_png_files_of_an_ordinary_weight():
    async def visit(shop, session):
        async with session.get(shop.url("SG", "/pictures/teapot-dusk.png")) as answer:
            assert answer.content_type == "image/png"
            picture = await answer.read()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", picture[16:24]) == (560, 420)
        assert 30_000 < len(picture) < 120_000
        start = picture.index(b"IDAT") + 4
        [size] = struct.unpack(">I", picture[start - 8 : start - 4])
        assert len(zlib.decompress(picture[start : start + size])) == 420 * 561

    visiting(visit)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/product/candle-ink", 404),
        ("/products?page=5", 404),
        ("/products?page=0", 404),
        ("/products?page=%C2%B2", 404),
        ("/kind/candle", 404),
        ("/pictures/../../secret", 404),
        ("/static/../shop.py", 404),
        ("/api/price?sku=none", 404),
        ("/trouble/forbidden", 403),
        ("/trouble/broken", 500),
        ("/trouble/challenge", 200),
        ("/trouble/nothing", 404),
        ("/trouble/slow?seconds=soon", 400),
        ("/trouble/slow?seconds=nan", 400),
        ("/robots.txt", 200),
    ],
)
def test_a_path_answers_with_its_status(path, status):
    async def visit(shop, session):
        async with session.get(shop.url("SG", path)) as answer:
            assert answer.status == status

    visiting(visit)


def test_a_guarded_page_opens_after_the_tries_it_was_told():
    async def visit(shop, session):
        async def statuses(country: str, path: str, times: int) -> list[int]:
            got = []
            for _ in range(times):
                async with session.get(shop.url(country, path)) as answer:
                    got.append(answer.status)
            return got

        assert await statuses("DE", "/trouble/guarded/a?tries=2", 4) == [403, 403, 200, 200]
        assert await statuses("DE", "/trouble/guarded/b?tries=1", 2) == [403, 200]
        assert await statuses("JP", "/trouble/guarded/a?tries=2", 1) == [403]

    visiting(visit)


def test_a_guarded_page_opens_after_the_seconds_it_was_told():
    async def visit(shop, session):
        clock = asyncio.get_running_loop().time
        start, status = clock(), 0
        while status != 200 and clock() < start + 10:
            async with session.get(shop.url("DE", "/trouble/guarded/c?seconds=0.3")) as answer:
                status = answer.status
        assert status == 200
        assert 0.3 <= clock() - start < 5

    visiting(visit)


def test_the_slow_page_is_as_slow_as_the_shop_was_told():
    async def visit(shop, session):
        clock = asyncio.get_running_loop().time
        start = clock()
        await read(session, shop.url("SG", "/trouble/slow"))
        assert clock() - start >= 0.2

    visiting(visit, slow_seconds=0.2)


def test_the_log_tells_who_asked_what_of_which_site():
    async def visit(shop, session):
        await read(session, shop.url("SG", "/"), "en-SG")
        headers = {"User-Agent": "test/1"}
        async with session.get(shop.url("DE", "/products?page=3"), headers=headers) as answer:
            await answer.read()

        first, second = shop.log
        assert (first.site, first.path, first.accept_language) == ("SG", "/", "en-SG")
        assert (second.site, second.path, second.user_agent) == ("DE", "/products?page=3", "test/1")
        assert second.host == f"127.0.0.1:{shop.port('DE')}"
        assert first.at <= second.at
        assert shop.log.of("/products") == shop.log.of("/products", site="DE") == [second]
        assert shop.log.paths(site="SG") == ["/"]

    visiting(visit)


def test_given_host_names_stand_in_the_urls():
    async def visit(shop, session):
        assert re.fullmatch(r"http://shop-de\.localhost:\d+/products", shop.url("DE", "/products"))
        assert shop.url("SG").startswith("http://127.0.0.1:")
        headers = {"Host": "shop-de.localhost:1"}
        async with session.get(f"http://127.0.0.1:{shop.port('DE')}/robots.txt", headers=headers) as answer:
            assert "http://shop-de.localhost:1/sitemap.xml" in await answer.text()

    visiting(visit, hosts={"DE": "shop-de.localhost"})


def test_a_taken_port_is_told_with_what_to_do(capsys):
    """case U2"""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        assert main(["--port-base", str(port)]) == 2

    assert capsys.readouterr().err == f"127.0.0.1:{port} (site SG) is taken; choose others with --port-base\n"
