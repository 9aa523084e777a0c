"""Pages in a real browser, as a crawl sees them: hostile ones, hanging ones, blocked parts, kept cookies."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from tests.fakes.vtime import until
from tests.local.agent_browser import PAGE_MS, a_browser, an_echo_site
from tests.site.hostile import HOSTILE_PAGES, HostileSite
from tests.unit.agent_server.upstreams import listening

from pageslots.wire import Outcome, WaitFor
from pageslots_agent import browser as browser_module
from pageslots_agent import processes
from pageslots_agent.outcome import judge, judge_fault
from pageslots_agent.ports import LoadFault, PageUnreadableError

pytestmark = pytest.mark.browser

IMPATIENT_MS = 1_500
BY_CONTENT = {"/challenge", "/empty"}
"""Judged by what they show, which is the crawl's business."""


async def verdict_on(tab, url, *, timeout_ms=PAGE_MS):
    """The outcome of a page by the rules of the crawl, and its HTML, or why there is none."""
    visit = await tab.visit(url, timeout_ms=timeout_ms)
    if visit.is_download:
        return Outcome.OK, ""
    verdict = judge(visit, is_start=True)
    if verdict.outcome is not Outcome.OK:
        return verdict.outcome, f"{visit.fault}: {visit.message}"
    try:
        return Outcome.OK, await tab.html(timeout_ms=timeout_ms)
    except PageUnreadableError as error:
        return judge_fault(error.fault, str(error), is_start=True).outcome, f"{error.fault}: {error}"


def test_every_hostile_page_ends_in_time_as_it_deserves_and_the_next_one_works():
    """Cases W1 to W7, W11, W12: one tab goes through all of them, one after the other."""

    async def scenario():
        wrong = []
        async with (
            HostileSite() as site,
            a_browser(allow_private_addresses=False, allowed_cidrs=site.allowed_cidrs) as it,
        ):
            for page in HOSTILE_PAGES:
                began = time.monotonic()
                late = Outcome.SITE_ERROR in page.outcomes
                timeout_ms = IMPATIENT_MS if late else 10_000
                outcome, html = await verdict_on(it.tab, site.url(page.path), timeout_ms=timeout_ms)
                if outcome is Outcome.SITE_ERROR and not late:
                    # the page before began to hang while this one was on its way; a crawl tries again, too
                    began = time.monotonic()
                    outcome, html = await verdict_on(it.tab, site.url(page.path), timeout_ms=timeout_ms)
                seconds = time.monotonic() - began
                if outcome not in page.outcomes and page.path not in BY_CONTENT:
                    wrong.append(f"{page.path}: {outcome}, expected {page.outcomes}: {html}")
                if outcome is Outcome.OK and page.expected_outcome is Outcome.OK and page.text not in html:
                    wrong.append(f"{page.path}: {page.text!r} is not in the page")
                if seconds > page.within_seconds:
                    wrong.append(f"{page.path}: took {seconds:.1f} s")
            assert site.neighbour_hits == []
            assert it.chromium.starts == 1  # none of them took the browser along
        assert wrong == []

    asyncio.run(scenario())


@pytest.mark.parametrize("page", ["/endless/after-load", "/endless/microtasks", "/refresh/self"])
def test_a_page_that_hangs_later_does_not_take_the_next_one_along(page):
    """Case W1: the loop begins after the visit; its renderer would be reused for the same site."""

    async def scenario():
        async with HostileSite() as site, a_browser(allowed_cidrs=site.allowed_cidrs) as it:
            await it.tab.visit(site.url(page), timeout_ms=PAGE_MS)
            await asyncio.sleep(0.3)  # until the loop has begun; without it there is nothing to see
            visit = await it.tab.visit(site.url("/"), timeout_ms=PAGE_MS)
            assert (visit.status, visit.fault) == (200, None)
            assert "a quiet page" in await it.tab.html()
            assert it.chromium.starts == 1

    asyncio.run(scenario())


def test_a_hanging_page_is_told_when_it_is_read():
    hanging = b"<script>setTimeout(() => {for (;;);}, 30)</script>"

    async def scenario():
        async with an_echo_site(pages={"/": hanging}) as (_, origin), a_browser() as it:
            await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            await asyncio.sleep(0.2)  # until the loop has begun; without it there is nothing to see
            began = time.monotonic()
            with pytest.raises(PageUnreadableError) as unread:
                await it.tab.html(timeout_ms=500)
            assert unread.value.fault is LoadFault.UNRESPONSIVE
            assert time.monotonic() - began < 5
            began = time.monotonic()
            await it.browser.close()
            assert time.monotonic() - began < 5
            assert processes.descendants(os.getpid()) == []

    asyncio.run(scenario())


def test_a_killed_browser_is_a_fault_of_that_page_and_the_next_one_has_a_new_browser():
    """Case W2."""

    async def scenario():
        asked = []

        async def never(reader, writer):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            await reader.read()

        async with an_echo_site() as (_, origin), listening(never) as port, a_browser() as it:
            loading = asyncio.create_task(it.tab.visit(f"http://127.0.0.1:{port}/", timeout_ms=PAGE_MS))
            await until(lambda: bool(asked))
            for pid in processes.descendants(os.getpid()):
                if b"--remote-debugging-pipe" in command(pid) and b"--type=" not in command(pid):
                    os.kill(pid, signal.SIGKILL)
            visit = await loading
            assert visit.fault in {LoadFault.BROWSER_GONE, LoadFault.CRASH}
            visit = await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            assert visit.status == 200
            assert it.chromium.starts == 2

    asyncio.run(scenario())


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("which", [b"run-driver", b"--remote-debugging-pipe"])
def test_a_driver_or_a_browser_that_hangs_is_noticed_and_killed(which, monkeypatch):
    """Case W2."""
    monkeypatch.setattr(browser_module, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(browser_module, "_KEEP_ANSWER_SECONDS", 0.0)

    async def scenario():
        async with a_browser() as it:
            assert await it.browser.alive()
            for pid in processes.descendants(os.getpid()):
                if which in command(pid) and b"--type=" not in command(pid):
                    os.kill(pid, signal.SIGSTOP)
            assert not await it.browser.alive()
            began = time.monotonic()
            await it.browser.close()
            assert time.monotonic() - began < 10
            assert processes.descendants(os.getpid()) == []
            assert await it.browser.prepare()  # and everything can be opened again

    asyncio.run(scenario())


HEAVY = b"""<!doctype html><link rel=stylesheet href=/s.css><img src=/a.png><img src=/image?1>
<video src=/film autoplay muted preload=auto></video><script src=/code.js></script>
<style>@font-face{font-family:f;src:url(/font)} p{font-family:f;background:url(/back)}</style>
<p>text</p><iframe src=/ads/frame></iframe><script src=/ads/code.js></script>"""


def test_blocked_parts_are_never_asked_for_and_the_cache_works():
    """Case W16."""

    async def scenario():
        async with (
            an_echo_site(pages={"/": HEAVY}) as (site, origin),
            a_browser(blocked_url_patterns=("*/ads/*",)) as it,
        ):
            await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            await it.tab.visit(f"{origin}/?again", timeout_ms=PAGE_MS)
            assert set(site.paths()) == {"/", "/?again", "/s.css", "/code.js"}
            heads = "".join(site.heads).lower()
            assert "no-cache" not in heads
            assert "pragma" not in heads

    asyncio.run(scenario())


def test_a_page_is_never_blocked_itself():
    """Case W16: an image as a start URL, and a URL that a pattern names."""

    async def scenario():
        picture = b"\x89PNG\r\n\x1a\n" + b"\0" * 64
        async with (
            an_echo_site(pages={"/a.png": picture}) as (_, origin),
            a_browser(blocked_url_patterns=("*",)) as it,
        ):
            visit = await it.tab.visit(f"{origin}/a.png", timeout_ms=PAGE_MS)
            assert (visit.status, visit.content_type) == (200, "image/png")
            visit = await it.tab.visit(f"{origin}/ads/", timeout_ms=PAGE_MS)
            assert visit.status == 200

    asyncio.run(scenario())


def test_without_blocking_everything_is_loaded():
    async def scenario():
        async with (
            an_echo_site(pages={"/": HEAVY}) as (site, origin),
            a_browser(blocked_resource_types=()) as it,
        ):
            visit = await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            assert {"/a.png", "/image?1", "/film", "/font", "/back", "/ads/frame"} <= set(site.paths())
            assert visit.bytes > len(HEAVY)

    asyncio.run(scenario())


def test_a_site_finds_its_cookies_again_another_site_and_a_fresh_context_find_none():
    async def scenario():
        async with an_echo_site() as (_, origin), a_browser() as it:

            async def sees_cookie(tab):
                await tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
                return "basket=full" in await tab.html()

            await it.tab.visit(f"{origin}/set", timeout_ms=PAGE_MS)
            assert it.browser.warm_site == "shop"
            assert it.browser.usable_after(Outcome.OK, "")
            await it.browser.tidy()
            assert await sees_cookie(await it.browser.tab("shop", fresh=False))

            assert not await sees_cookie(await it.browser.tab("shop", fresh=True))
            await it.browser.tidy()
            assert await sees_cookie(await it.browser.tab("shop", fresh=False))

            assert not await sees_cookie(await it.browser.tab("other", fresh=False))
            assert it.browser.warm_site == "other"
            assert not await sees_cookie(await it.browser.tab("shop", fresh=False))
            assert it.chromium.starts == 1

    asyncio.run(scenario())


def test_parking_leaves_the_site_and_keeps_its_cookies():
    async def scenario():
        async with an_echo_site() as (site, origin), a_browser() as it:
            await it.tab.visit(f"{origin}/set", timeout_ms=PAGE_MS)
            await it.browser.park()
            assert it.browser.current.url == "about:blank"
            await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            assert "basket=full" in site.heads[-1]

    asyncio.run(scenario())


def test_recycling_between_pages_keeps_cookies_and_the_way_out():
    """Case W14."""

    async def scenario():
        async with an_echo_site() as (site, origin), a_browser(recycle_pages=2) as it:
            upstream = it.relay.upstream
            await it.tab.visit(f"{origin}/set", timeout_ms=PAGE_MS)
            await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            assert it.browser.recycle_due
            await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            assert it.chromium.starts == 2
            assert not it.browser.recycle_due
            assert "basket=full" in site.heads[-1]
            assert it.relay.upstream is upstream
            assert it.browser.pages == 3
            assert it.browser.warm_site == "shop"

    asyncio.run(scenario())


def test_after_blocked_the_next_attempt_has_a_new_browser_without_the_old_cookies():
    async def scenario():
        async with an_echo_site() as (site, origin), a_browser() as it:
            await it.tab.visit(f"{origin}/set", timeout_ms=PAGE_MS)
            assert it.browser.usable_after(Outcome.BLOCKED, "403")
            assert it.browser.warm_site is None
            tab = await it.browser.tab("shop", fresh=False)
            await tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            assert "basket" not in site.heads[-1]
            assert it.chromium.starts == 2

    asyncio.run(scenario())


def test_a_page_sees_the_country_it_is_visited_from():
    async def scenario():
        async with (
            an_echo_site() as (site, origin),
            a_browser(locale="de-DE", time_zone="Asia/Tokyo", viewport_width=900) as it,
        ):
            await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            assert "Accept-Language: de-DE" in site.heads[0]
            page = it.browser.current
            script = (
                "[Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.language, innerWidth].join()"
            )
            assert await page.evaluate(script, seconds=5) == "Asia/Tokyo,de-DE,900"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("wait_for", "fault"),
    [("#late", None), ("#never", LoadFault.WAIT_FOR), ("p[[", LoadFault.BAD_SELECTOR)],
)
def test_an_element_is_waited_for(wait_for, fault):
    late = b"<p>x</p><script>setTimeout(() => {document.body.innerHTML += '<i id=late>'}, 200)</script>"

    async def scenario():
        async with an_echo_site(pages={"/": late}) as (_, origin), a_browser() as it:
            visit = await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS, wait_for=WaitFor(wait_for, 1000))
            assert visit.fault is fault
            assert visit.status == 200

    asyncio.run(scenario())


def test_a_page_is_read_as_it_is_and_only_up_to_a_size():
    page = "<!doctype html><meta charset=utf-8><p>Чай 🍵</p><script>document.body.append('\\ud800')</script>"

    async def scenario():
        async with an_echo_site(pages={"/": page.encode()}) as (_, origin), a_browser() as it:
            await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            html = await it.tab.html()
            assert html.startswith('<!DOCTYPE html><html><head><meta charset="utf-8">')
            html.encode()  # no lone surrogates
            assert "Чай 🍵" in await it.tab.text()
            with pytest.raises(PageUnreadableError, match="characters long; at most 20"):
                await it.tab.html(max_bytes=20)

    asyncio.run(scenario())


def test_a_picture_of_an_endless_page_is_bounded():
    async def scenario():
        tall = b"<body style='margin:0'><div style='height:1000000px'>x</div>"
        async with an_echo_site(pages={"/": tall}) as (_, origin), a_browser() as it:
            await it.tab.visit(f"{origin}/", timeout_ms=PAGE_MS)
            picture = await it.tab.screenshot()
            assert picture.startswith(b"\x89PNG")
            assert int.from_bytes(picture[20:24], "big") == 16_384
            assert int.from_bytes((await it.browser.screenshot())[20:24], "big") == 800

    asyncio.run(scenario())


def test_files_are_recorded_and_not_kept(tmp_path, monkeypatch):
    """Case W5."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    async def scenario():
        async with HostileSite() as site, a_browser(allowed_cidrs=site.allowed_cidrs) as it:
            visit = await it.tab.visit(site.url("/download/attachment"), timeout_ms=PAGE_MS)
            assert visit.is_download
            assert visit.fault is None
            assert "file.bin" in visit.message
            visit = await it.tab.visit(site.url("/pdf"), timeout_ms=PAGE_MS)
            assert visit.is_download
            assert visit.content_type == "application/pdf"
            left = [p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size == 65_536]
            assert left == []

    asyncio.run(scenario())
