"""Chromium behind Playwright: one process tree, started small, closed for certain.

Together with `page` the only module that knows Playwright. Every operation has a deadline; what does not
close is killed. The recipe of flags and environment is measured (docs/decisions/small-slot.md).
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import CDPSession, Error, Playwright, async_playwright

from pageslots_agent import processes
from pageslots_agent.blocking import Blocking
from pageslots_agent.browser_port import BrowserFailedError
from pageslots_agent.logs import event, warn
from pageslots_agent.page import BrowserPage

OPEN_SECONDS = 30.0
CLOSE_SECONDS = 3.0
ANSWER_SECONDS = 5.0
_KEEP_ANSWER_SECONDS = 1.0

_PLAYWRIGHT_BLINK = (
    "primaryHoverType=2",
    "availableHoverTypes=2",
    "primaryPointerType=4",
    "availablePointerTypes=4",
)
_PLAYWRIGHT_FEATURES = ("CDPScreenshotNewSurface", "SkipListAccountsWithoutGaiaCookies")
"""Playwright's own values: of a repeated flag the last one wins, so ours must contain them."""

DRIVER_ENVIRONMENT = {"NODE_OPTIONS": "--max-semi-space-size=1", "MALLOC_ARENA_MAX": "1"}


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """What a browser and its pages are made with."""

    executable: str  # empty: Playwright's own
    sandbox: bool
    locale: str
    time_zone: str
    viewport: tuple[int, int]
    blocking: Blocking
    relay_port: int

    @property
    def flags(self) -> list[str]:
        """Beside Playwright's own."""
        return [
            "--disable-gpu",
            "--in-process-gpu",  # a compositor and nothing else: 4 MiB less, and a process less to start
            "--disable-quic",  # would not pass the relay
            "--disable-software-rasterizer",
            "--enable-features=" + ",".join(("NetworkServiceInProcess2", *_PLAYWRIGHT_FEATURES)),
            "--blink-settings=" + ",".join((*_PLAYWRIGHT_BLINK, *self.blocking.blink_settings)),
            "--block-new-web-contents",  # no pop-ups
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # names are the relay's business
            "--disable-crash-reporter",
            "--disable-breakpad",
            *self.blocking.flags,
        ]


class Chromium:
    """One browser at a time, opened and closed any number of times. `on_lost` hears of unasked deaths."""

    def __init__(self, settings: BrowserSettings) -> None:
        self._settings = settings
        self.on_lost: Callable[[], None] | None = None
        self._playwright: Playwright | None = None
        self._browser: PlaywrightBrowser | None = None
        self._cdp: CDPSession | None = None
        self._pids: list[int] = []
        self._answered = float("-inf")
        self.version = ""
        self.starts = 0

    @property
    def is_open(self) -> bool:
        """Whether there is a browser, as far as is known without asking."""
        return self._browser is not None and self._browser.is_connected()

    async def open(self) -> None:
        """Start a browser; raises BrowserFailedError."""
        await self.close()
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await self._launch()
        except (Error, OSError, TimeoutError) as error:
            await self._end_by_force()
            raise BrowserFailedError(_opening_failed(error, self._settings.executable)) from None
        except asyncio.CancelledError:
            # a half-opened browser is known to nobody: no time to wait for its orderly end
            self._browser, self._cdp, self._playwright = None, None, None
            processes.kill_own_children()
            raise

    async def _launch(self) -> None:
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        browser = await self._playwright.chromium.launch(
            executable_path=self._settings.executable or None,
            chromium_sandbox=self._settings.sandbox,
            args=self._settings.flags,
            proxy={"server": f"http://127.0.0.1:{self._settings.relay_port}"},
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=OPEN_SECONDS * 1000,
        )
        self._browser = browser
        self._cdp = await browser.new_browser_cdp_session()
        self._pids = processes.descendants(os.getpid())
        browser.on("disconnected", self._disconnected)
        self.version = browser.version
        self.starts += 1
        self._answered = asyncio.get_running_loop().time()
        event("browser.opened", version=browser.version, start=self.starts)

    def _disconnected(self, browser: PlaywrightBrowser) -> None:
        if browser is self._browser and self.on_lost is not None:
            self.on_lost()

    async def new_page(self, *, cookies: list[Any] | None = None) -> BrowserPage:
        """A page in a context of its own; raises BrowserFailedError."""
        if self._browser is None:
            raise BrowserFailedError("the browser is not open")
        width, height = self._settings.viewport
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                context = await self._browser.new_context(
                    locale=self._settings.locale or None,
                    timezone_id=self._settings.time_zone or None,
                    viewport={"width": width, "height": height},
                    accept_downloads=False,
                    service_workers="block",
                )
                if cookies:
                    await context.add_cookies(cookies)
                return await BrowserPage.open(context, self._settings.blocking)
        except (Error, TimeoutError) as error:
            raise BrowserFailedError(f"no page could be opened: {_first_line(error)}") from None

    async def alive(self) -> bool:
        """Whether the browser answers; asked at most once a second."""
        if not self.is_open or self._cdp is None:
            return False
        loop = asyncio.get_running_loop()
        if self._answered + _KEEP_ANSWER_SECONDS > loop.time():
            return True
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._cdp.send("Browser.getVersion")
        except (Error, TimeoutError):
            return False
        self._answered = loop.time()
        return True

    async def close(self) -> None:
        """Close the browser, or kill it."""
        browser, self._browser, self._cdp = self._browser, None, None
        if browser is None:
            return
        if not await in_time(browser.close(), CLOSE_SECONDS):
            warn("browser.killed", reason="it did not close", processes=len(self._pids))
            await self._end_by_force()
        self._pids = []

    async def quit(self) -> None:
        """Close the browser and end Playwright's driver."""
        await self.close()
        playwright, self._playwright = self._playwright, None
        if playwright is not None and not await in_time(playwright.stop(), CLOSE_SECONDS):
            processes.kill_own_children()

    async def _end_by_force(self) -> None:
        """Kill browser and driver: a driver that has lost count of its browser is not worth keeping."""
        self._browser, self._cdp = None, None
        playwright, self._playwright = self._playwright, None
        processes.kill([*processes.descendants(os.getpid()), *self._still_ours()])
        self._pids = []
        if playwright is not None:
            await in_time(playwright.stop(), CLOSE_SECONDS)

    def _still_ours(self) -> list[int]:
        """Browser processes that outlived the driver and so are no descendants any more."""
        found = []
        for pid in self._pids:
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if f"127.0.0.1:{self._settings.relay_port}".encode() in command:
                    found.append(pid)
        return found


async def in_time(work: Coroutine[Any, Any, object], seconds: float) -> bool:
    """Whether `work` was done within `seconds`; that it failed because its object is gone counts as done."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    except (Error, OSError) as error:
        event("browser.already-gone", error=_first_line(error))
    return True


def _opening_failed(error: BaseException, executable: str) -> str:
    if isinstance(error, TimeoutError):
        return f"the browser did not open within {OPEN_SECONDS:.0f} s"
    text = _first_line(error)
    if "executable doesn't exist" in text.lower() or "ENOENT" in text:
        where = executable or "the place where Playwright installs its own"
        return f"there is no browser at {where}; install one, or set `chromium` to its path"
    return f"the browser did not open: {text}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
