"""The browser of one slot over its whole life: what is warm, when it is renewed, when recycled."""

import asyncio
from collections.abc import Callable

from pageslots.wire import AgentConfig, Failure, Outcome
from pageslots_agent.browser import Chromium
from pageslots_agent.browser_port import BrowserFailedError
from pageslots_agent.logs import event, warn
from pageslots_agent.page import BrowserPage, PageFailedError
from pageslots_agent.ports import LoadFault, PageUnreadableError, Tab, Visit
from pageslots_agent.prepare import Failures, Preparation, PreparationFailedError
from pageslots_agent.proxies import ProxyChoice
from pageslots_agent.relay import Relay
from pageslots_agent.tab import SlotTab

SCREENSHOT_SECONDS = 10.0
PARK_SECONDS = 5.0


class SlotBrowser:
    """Implements `slot.Browser`, and what `tab` and `prepare` need of it."""

    def __init__(
        self,
        config: AgentConfig,
        chromium: Chromium,
        relay: Relay,
        choice: ProxyChoice,
        *,
        wall_clock: Callable[[], int],
    ) -> None:
        self._config = config
        self._chromium = chromium
        self._relay = relay
        self._choice = choice
        self._failures = Failures(wall_clock)
        self._preparation = Preparation(config, self, self._failures)
        self._tab = SlotTab(self, relay)
        self._kept: BrowserPage | None = None
        self._fresh: BrowserPage | None = None
        self._wants_fresh = False
        self._site: str | None = None  # of the attempt under way
        self._spent: Outcome | None = None  # why the next use needs a new browser, with a new exit
        self._opened_at = 0.0
        self._pages_since_opened = 0
        self.pages = 0
        self.warm_site: str | None = None

    # --- what the status tells

    @property
    def version(self) -> str:
        """Of the browser that was opened last."""
        return self._chromium.version

    @property
    def is_open(self) -> bool:
        """Whether there is a browser, as far as is known without asking it."""
        return self._chromium.is_open

    @property
    def starts(self) -> int:
        """How often a browser was opened."""
        return self._chromium.starts

    @property
    def bytes_total(self) -> int:
        """Through the relay, both ways."""
        return self._relay.meter.total

    @property
    def failures(self) -> int:
        """Consecutive failures."""
        return self._failures.consecutive

    @property
    def last_failure(self) -> Failure | None:
        """What went wrong last."""
        return self._failures.last

    @property
    def recycle_due(self) -> bool:
        """Whether age or pages call for a new browser."""
        if not self._chromium.is_open:
            return False
        age_ms = (asyncio.get_running_loop().time() - self._opened_at) * 1000
        return age_ms >= self._config.recycle_age_ms or self._pages_since_opened >= self._config.recycle_pages

    # --- for the slot

    async def prepare(self) -> bool:
        """Make the page ready; False: gave up, and closed."""
        return await self._preparation.run()

    async def tab(self, site: str, *, fresh: bool) -> Tab:
        """The page for an attempt; raises BrowserFailedError."""
        if self._spent is not None:
            await self.close_browser()
        if not self._chromium.is_open:
            await self._open_browser()
        self._wants_fresh = fresh
        self._site = None if fresh else site
        if fresh:
            self._fresh = await self._chromium.new_page()
        else:
            if self.warm_site not in {None, site}:
                await self._drop_kept()
            self.warm_site = site
        return self._tab

    def usable_after(self, outcome: Outcome, message: str) -> bool:
        """An attempt ended so; whether the slot may take the next one without preparing anew."""
        crashed = outcome in {Outcome.BROWSER_CRASH, Outcome.OUT_OF_MEMORY}
        self._failures.attempt_ended(crashed=crashed)
        if crashed or outcome in {Outcome.BLOCKED, Outcome.PROXY_ERROR}:
            self._spent = outcome
            self.warm_site = None
            self._failures.note(outcome, message)
        return not crashed and self._chromium.is_open

    async def tidy(self) -> None:
        """After an attempt: a fresh context goes."""
        self._wants_fresh, self._site = False, None
        fresh, self._fresh = self._fresh, None
        if fresh is not None and not await fresh.close():
            await self.close_browser()

    async def park(self) -> None:
        """Leave the site, keep its cookies and cache."""
        page = self._kept
        if page is not None and page.usable and page.url != "about:blank":
            await self._tab.load(page, "about:blank", seconds=PARK_SECONDS)

    async def alive(self) -> bool:
        """Whether the browser answers."""
        return await self._chromium.alive()

    async def screenshot(self) -> bytes:
        """What is in view; raises PageUnreadableError."""
        page = self.current
        if page is None:
            raise PageUnreadableError(LoadFault.BROWSER_GONE, "there is no page now")
        try:
            return await page.screenshot(seconds=SCREENSHOT_SECONDS, full=False)
        except PageFailedError as failed:
            raise PageUnreadableError(failed.fault, str(failed)) from None

    async def close(self) -> None:
        """Close the browser and the driver."""
        self._forget_pages()
        await self._chromium.quit()

    # --- for the tab

    @property
    def current(self) -> BrowserPage | None:
        """The page in use."""
        return self._fresh if self._wants_fresh else self._kept

    def visited(self) -> None:
        """One more page."""
        self.pages += 1
        self._pages_since_opened += 1

    async def page_for_visit(self) -> BrowserPage:
        """The page in use, renewed if needed; raises BrowserFailedError."""
        page = self.current
        if page is not None and page.usable and not self.recycle_due and self._chromium.is_open:
            return page
        cookies = await page.cookies() if page is not None and self._chromium.is_open else []
        if self.recycle_due:
            event("browser.recycled", pages=self._pages_since_opened)
            await self.close_browser()
        elif page is not None and not await page.close():
            warn("page.stuck", closing="browser")
            await self.close_browser()
        if not self._chromium.is_open:
            await self._open_browser(same_exit=True)
        renewed = await self._chromium.new_page(cookies=cookies)
        if self._wants_fresh:
            self._fresh = renewed
        else:
            self._kept, self.warm_site = renewed, self._site
        return renewed

    # --- for the preparation

    async def open(self, *, other_proxy: bool) -> None:
        """Browser and page, if they are not open; raises PreparationFailedError."""
        try:
            if self._spent is not None or not await self._chromium.alive():
                await self.close_browser()
                await self._open_browser(other_proxy=other_proxy)
            if self._kept is None or not self._kept.usable:
                await self._drop_kept()
                self._kept = await self._chromium.new_page()
        except BrowserFailedError as failed:
            raise PreparationFailedError(Outcome.BROWSER_CRASH, str(failed)) from None

    async def close_browser(self) -> None:
        """Close or kill it; the driver stays for the next one."""
        self._forget_pages()
        await self._chromium.close()

    async def load(self, url: str, *, seconds: float) -> Visit:
        """Open a URL in the kept page."""
        assert self._kept is not None
        return await self._tab.load(self._kept, url, seconds=seconds)

    async def body_text(self, *, seconds: float) -> str:
        """The text of the kept page."""
        return await self._tab.text(timeout_ms=round(seconds * 1000))

    # --- inner parts

    async def _open_browser(self, *, other_proxy: bool = False, same_exit: bool = False) -> None:
        if not same_exit:
            avoid = other_proxy or self._spent is Outcome.PROXY_ERROR
            self._relay.upstream = self._choice.choose(avoid_current=avoid)
        self._relay.drop_connections()
        await self._chromium.open()
        self._spent = None
        self._opened_at = asyncio.get_running_loop().time()
        self._pages_since_opened = 0

    async def _drop_kept(self) -> None:
        kept, self._kept = self._kept, None
        self.warm_site = None
        if kept is not None and not await kept.close():
            await self.close_browser()
            await self._open_browser(same_exit=True)

    def _forget_pages(self) -> None:
        self._kept = self._fresh = None
        self.warm_site = None
