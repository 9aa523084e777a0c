"""The slot's page as a crawl sees it: visits with a verdict, readings with a deadline."""

import asyncio
import mimetypes
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

from pageslots.wire import WaitFor
from pageslots_agent.browser_port import BrowserFailedError
from pageslots_agent.faults import RELAYED, objection_to
from pageslots_agent.page import (
    PROBE_SECONDS,
    BrowserPage,
    DownloadedError,
    PageFailedError,
    StuckBeforeError,
)
from pageslots_agent.ports import LoadFault, PageUnreadableError, Visit
from pageslots_agent.relay import MAX_PAGE_BYTES, Relay

_AGAIN_SECONDS = 0.05

_HTML = """(() => {
  const root = document.documentElement;
  if (location.protocol === "chrome-error:") return false;
  if (!root || document.readyState === "loading") return null;
  const html = root.outerHTML;
  if (html.length > %d) return html.length;
  const type = document.doctype;
  return (type ? new XMLSerializer().serializeToString(type) : "") + html;
})()"""
_TEXT = "document.body ? document.body.innerText : ''"


class Pages(Protocol):
    """Where the tab gets its page from."""

    @property
    def current(self) -> BrowserPage | None:
        """The page in use."""
        ...

    async def page_for_visit(self) -> BrowserPage:
        """The page to load something in: renewed if it hangs or is gone, recycled if due.

        Has a bound of its own, outside the visit's; raises BrowserFailedError.
        """
        ...

    def visited(self) -> None:
        """One more page."""
        ...


class SlotTab:
    """Implements `ports.Tab` on whatever page the slot has."""

    def __init__(self, pages: Pages, relay: Relay) -> None:
        self._pages = pages
        self._relay = relay

    async def visit(self, url: str, *, timeout_ms: int, wait_for: WaitFor | None = None) -> Visit:
        """Load `url`; never raises for what a page does. Renewing the page has its own bound."""
        objection = objection_to(url)
        if objection is not None:
            return Visit(url, url, None, fault=LoadFault.FORBIDDEN_ADDRESS, message=objection)
        try:
            page = await self._pages.page_for_visit()
            self._pages.visited()
            try:
                return await self._load(page, url, timeout_ms / 1000, wait_for)
            except StuckBeforeError:
                page = await self._pages.page_for_visit()
                return await self._load(page, url, timeout_ms / 1000, wait_for)
        except StuckBeforeError:
            return Visit(url, url, None, fault=LoadFault.UNRESPONSIVE, message="a new page does not answer")
        except BrowserFailedError as failed:
            return Visit(url, url, None, fault=LoadFault.BROWSER_GONE, message=str(failed))

    async def load(self, page: BrowserPage, url: str, *, seconds: float) -> Visit:
        """`visit` on a given page, of any scheme, without a second try."""
        try:
            return await self._load(page, url, seconds, None)
        except StuckBeforeError:
            return Visit(url, url, None, fault=LoadFault.UNRESPONSIVE, message="the page does not answer")

    async def _load(self, page: BrowserPage, url: str, seconds: float, wait_for: WaitFor | None) -> Visit:
        clock = asyncio.get_running_loop().time
        started = clock()
        # what is kept back is for asking a silent page whether it hangs
        limit = max(seconds - PROBE_SECONDS, seconds * 0.8)
        bytes_before = self._relay.meter.total
        self._relay.begin_page()
        try:
            loaded = await page.goto(url, seconds=limit)
            visit = Visit(
                url,
                loaded.final_url,
                loaded.status,
                headers=loaded.headers,
                content_type=loaded.headers.get("content-type", loaded.content_type),
            )
            if loaded.status == 407:
                visit = replace(
                    visit, fault=LoadFault.PROXY, message="the proxy wants other credentials (407)"
                )
            elif wait_for is not None:
                left = min(wait_for.timeout_ms / 1000, limit - (clock() - started))
                visit = await self._await_element(page, visit, wait_for.selector, left)
        except DownloadedError as download:
            visit = _downloaded(url, download)
        except PageFailedError as failed:
            visit = await self._explained(page, url, failed)
        return replace(
            visit,
            bytes=self._relay.meter.total - bytes_before,
            milliseconds=round((clock() - started) * 1000),
            proxy=self._relay.upstream.name,
        )

    async def _await_element(self, page: BrowserPage, visit: Visit, selector: str, seconds: float) -> Visit:
        try:
            await page.wait_for(selector, seconds=max(seconds, 0.05))
        except PageFailedError as failed:
            return replace(visit, final_url=page.url, fault=failed.fault, message=str(failed))
        return replace(visit, final_url=page.url)

    async def _explained(self, page: BrowserPage, url: str, failed: PageFailedError) -> Visit:
        """A failed visit, with the cause that the relay knows where Chromium only knows a proxy."""
        final_url = url
        fault, message = failed.fault, str(failed)
        if self._relay.overflowed:
            message = f"more than {MAX_PAGE_BYTES // 2**20} MiB for one page"
            return Visit(url, final_url, None, fault=LoadFault.OTHER, message=message)
        if failed.net_error == "ERR_ABORTED":
            message = "nothing to show: no content, or a redirect to a script"
        elif failed.net_error is not None:
            final_url = await page.unreachable_url() or url
            known = self._relay.faults.of(urlsplit(final_url).hostname or "")
            if known is not None:
                fault, message = known.fault, known.message
            elif failed.net_error in RELAYED and not self._relay.upstream.name:
                fault = LoadFault.REFUSED
            elif fault is LoadFault.FORBIDDEN_ADDRESS:
                message = f"{failed.net_error}: not an address for pages, or a redirect to one"
        return Visit(url, final_url, None, fault=fault, message=message)

    async def html(self, *, timeout_ms: int = 10_000, max_bytes: int = 32 * 1024 * 1024) -> str:
        """The DOM as HTML, doctype included; raises PageUnreadableError."""
        html = await self._read(_HTML % max_bytes, timeout_ms)
        if html is False:
            raise await self._moved_to_failure()
        if html is None:
            raise PageUnreadableError(LoadFault.OTHER, "the page is still loading another document")
        if not isinstance(html, str):
            message = f"the page's HTML is {html} characters long; at most {max_bytes} are read"
            raise PageUnreadableError(LoadFault.OTHER, message)
        return html

    async def _moved_to_failure(self) -> PageUnreadableError:
        """The page has led to another one after its visit, and that one failed."""
        url = await self._page().unreachable_url() or ""
        known = self._relay.faults.of(urlsplit(url).hostname or "")
        if known is not None:
            return PageUnreadableError(known.fault, f"the page led to {url}: {known.message}")
        return PageUnreadableError(LoadFault.OTHER, f"the page led to {url}, which did not load")

    async def text(self, *, timeout_ms: int = 10_000) -> str:
        """The visible text of the body; raises PageUnreadableError."""
        return str(await self._read(_TEXT, timeout_ms))

    async def _read(self, expression: str, timeout_ms: int) -> object:
        """A page that is just going on to another one (`null`, or no context) is asked again."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        page = self._page()
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                value = await page.evaluate(expression, seconds=max(left, 0.01))
            except PageFailedError as failed:
                moving = failed.fault is LoadFault.OTHER and "context" in str(failed).lower()
                if not moving or left <= _AGAIN_SECONDS:
                    raise PageUnreadableError(failed.fault, str(failed)) from None
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                if value is not None or left <= _AGAIN_SECONDS:
                    return _sound(value) if isinstance(value, str) else value
                await asyncio.sleep(_AGAIN_SECONDS)

    async def screenshot(self, *, timeout_ms: int = 15_000) -> bytes:
        """PNG of the whole page, at most 16,384 pixels high; raises PageUnreadableError."""
        try:
            return await self._page().screenshot(seconds=timeout_ms / 1000, full=True)
        except PageFailedError as failed:
            raise PageUnreadableError(failed.fault, str(failed)) from None

    def _page(self) -> BrowserPage:
        page = self._pages.current
        if page is None:
            raise PageUnreadableError(LoadFault.BROWSER_GONE, "the browser is closed")
        return page


def _downloaded(url: str, download: DownloadedError) -> Visit:
    final_url = download.url or url
    kind, _ = mimetypes.guess_type(download.file_name or urlsplit(final_url).path)
    return Visit(
        url,
        final_url,
        None,
        is_download=True,
        content_type=kind or "application/octet-stream",
        message=f"a file: {download.file_name or final_url}",
    )


def _sound(text: str) -> str:
    """Without the lone surrogates that a page may hold and UTF-8 can't."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
