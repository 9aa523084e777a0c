"""What only a browser can tell about the sites: that scripts run as meant, and that what should crash it does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright
from playwright.async_api import Error as PlaywrightError
from tests.site.hostile import HostileSite
from tests.site.many import ManySites

from pageslots.demo.catalogue import STORES, expected_product
from pageslots.demo.shop import ShopSite
from pageslots.local.browser import find_browser

pytestmark = pytest.mark.browser

CRASH_SECONDS = 10
FONT_STATUS = "document.fonts.load('20px \"Kiln Dots\"').then((fonts) => fonts[0].status)"
PICTURES_SHOWN = "[...document.images].every((image) => image.complete && image.naturalWidth > 0)"


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    found = await find_browser()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found.path, args=["--no-sandbox"], handle_sigint=False
        )
        try:
            yield browser
        finally:
            await browser.close()


def browsing(visit: Callable[[Browser], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(90), chromium() as browser:
            await visit(browser)

    asyncio.run(run())


async def _crashes(browser: Browser, url: str) -> bool:
    """Whether the renderer dies within CRASH_SECONDS of loading the page."""
    page = await browser.new_page()
    crashed = asyncio.Event()
    page.on("crash", lambda _: crashed.set())
    try:
        await page.goto(url, timeout=CRASH_SECONDS * 1000)
    except PlaywrightError as error:  # it died before it had loaded
        if "crash" not in str(error).lower():
            raise
    try:
        async with asyncio.timeout(CRASH_SECONDS):
            await crashed.wait()
    except TimeoutError:
        return False
    finally:
        await page.close()
    return True


def test_the_crash_pages_kill_their_renderer_and_a_quiet_page_does_not():
    """case W2"""

    async def visit(browser: Browser) -> None:
        async with HostileSite() as site, ShopSite(countries=["JP"]) as shop:
            assert await _crashes(browser, site.url("/crash/after-load"))
            assert await _crashes(browser, site.url("/crash/inline"))
            assert await _crashes(browser, shop.url("JP", "/trouble/crash?after_ms=0"))
            page = await browser.new_page()
            await page.goto(site.url("/"))
            assert await page.inner_text("h1") == "a quiet page"

    browsing(visit)


def test_an_endless_script_stops_its_page_from_answering():
    """case W1"""

    async def visit(browser: Browser) -> None:
        async with HostileSite() as site:
            page = await browser.new_page()
            await page.goto(site.url("/endless/after-load"))
            await page.wait_for_timeout(300)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await page.evaluate("1 + 1")
            other = await browser.new_page()
            await other.goto(site.url("/endless/timers"))
            assert await other.evaluate("1 + 1") == 2

    browsing(visit)


def test_the_shop_shows_each_country_its_price_language_and_clock():
    async def visit(browser: Browser) -> None:
        async with ShopSite() as shop:
            for country, locale in (("SG", "en-SG"), ("DE", "de-DE"), ("JP", "ja-JP"), ("JP", "de-DE")):
                store = STORES[country]
                expected = expected_product(country, "lamp-ember", locale)
                context = await browser.new_context(locale=locale, timezone_id=store.time_zone)
                page = await context.new_page()
                await page.goto(shop.url(country, expected.path))
                price = await page.wait_for_selector(".today-price[data-ready]", timeout=10_000)
                assert price is not None
                assert await price.text_content() == expected.today_price
                assert await price.get_attribute("data-amount") == str(expected.today_amount)
                assert await page.text_content("h1") == expected.name
                assert await page.get_attribute(".your-time", "data-time-zone") == store.time_zone
                assert await page.evaluate(FONT_STATUS) == "loaded"
                assert await page.evaluate(PICTURES_SHOWN)
                assert {hit.accept_language.split(",")[0] for hit in shop.log} == {locale}
                shop.log.clear()
                await context.close()

    browsing(visit)


def test_a_scripts_prices_of_the_many_sites_are_the_expected_ones():
    async def visit(browser: Browser) -> None:
        async with ManySites(40) as sites:
            page = await browser.new_page()
            for site in [site for site in sites if site.scripted][:8]:
                url, (name, price) = next(iter(site.expected.items()))
                await page.goto(url)
                name_selector, price_selector = site.selectors
                there = f"document.querySelector('{price_selector}')?.textContent"
                await page.wait_for_function(there, timeout=5000)
                assert await page.text_content(name_selector) == name
                assert await page.text_content(price_selector) == price

    browsing(visit)
