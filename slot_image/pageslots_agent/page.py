"""One page in its own browser context: load, read, picture, close; each within a deadline.

Reading goes through one CDP message instead of Playwright's serialiser: cheaper, and the size is looked at
before anything is sent.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Download, Error, Page
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from pageslots_agent.blocking import Blocking
from pageslots_agent.faults import fault_of, net_error
from pageslots_agent.logs import warn
from pageslots_agent.ports import LoadFault

PROBE_SECONDS = 1.0
CLOSE_SECONDS = 2.0
SCREENSHOT_HEIGHT = 16_384
"""Pixels; Chromium paints nothing below, and an endless page must not become an endless picture."""

_NEUTRAL = "window.print = () => {};"


class PageFailedError(Exception):
    """The page did not do what was asked; `net_error`: Chromium's name, if the network was to blame."""

    def __init__(self, fault: LoadFault, message: str, *, net_error: str | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        self.net_error = net_error


class DownloadedError(Exception):
    """The URL is a file; nothing was kept."""

    def __init__(self, url: str, file_name: str) -> None:
        super().__init__(url)
        self.url = url
        self.file_name = file_name


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of a navigation."""

    status: int | None
    headers: Mapping[str, str]
    final_url: str


class BrowserPage:
    """A page; `crashed` once its renderer has died, `stuck` once it did not answer. Neither recovers."""

    def __init__(self, context: BrowserContext, page: Page, cdp: CDPSession) -> None:
        self._context = context
        self._page = page
        self._cdp = cdp
        self._main_frame = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._download: Download | None = None
        self.crashed = False
        self.stuck = False

    @classmethod
    async def open(cls, context: BrowserContext, blocking: Blocking) -> "BrowserPage":
        """Make the page of a new context; raises Playwright's errors."""
        await context.add_init_script(_NEUTRAL)
        page = await context.new_page()
        cdp = await context.new_cdp_session(page)
        itself = cls(context, page, cdp)
        page.on("crash", itself._on_crash)
        page.on("download", itself._on_download)
        context.on("page", itself._on_popup)
        if patterns := blocking.fetch_patterns:
            target = await cdp.send("Target.getTargetInfo")
            itself._main_frame = target["targetInfo"]["targetId"]
            cdp.on("Fetch.requestPaused", itself._on_paused)
            await cdp.send("Fetch.enable", {"patterns": patterns})
        return itself

    @property
    def url(self) -> str:
        """Where the page is."""
        return self._page.url

    @property
    def usable(self) -> bool:
        """Whether the page can be navigated, as far as is known."""
        return not (self.crashed or self.stuck or self._page.is_closed())

    async def goto(self, url: str, *, seconds: float) -> Loaded:
        """Load `url` and wait for its load event; raises PageFailedError, DownloadedError."""
        self._download = None
        try:
            async with asyncio.timeout(seconds):
                response = await self._page.goto(url, timeout=seconds * 1000 + 1000, wait_until="load")
        except (TimeoutError, PlaywrightTimeoutError):
            raise await self._silent(seconds) from None
        except Error as error:
            raise self._failed(error) from None
        if response is None:
            return Loaded(None, {}, self._page.url)
        return Loaded(response.status, response.headers, self._page.url)

    async def _silent(self, seconds: float) -> PageFailedError:
        """A page that is late is either slow or hangs; it is asked which."""
        if await self.answers():
            return PageFailedError(LoadFault.TIMEOUT, f"not loaded within {seconds:.1f} s")
        if self.crashed:
            return PageFailedError(LoadFault.CRASH, "the page's renderer died")
        return PageFailedError(LoadFault.UNRESPONSIVE, f"the page does not answer (after {seconds:.1f} s)")

    def _failed(self, error: Error) -> Exception:
        text = error.message.splitlines()[0]
        if self._download is not None or "Download is starting" in text:
            download = self._download
            return DownloadedError(
                download.url if download else "", download.suggested_filename if download else ""
            )
        name = net_error(text)
        if name is not None:
            return PageFailedError(fault_of(name), name, net_error=name)
        if self.crashed or "crashed" in text:
            self.crashed = True
            return PageFailedError(LoadFault.CRASH, "the page's renderer died")
        if self._page.is_closed() or "has been closed" in text or "Connection closed" in text:
            return PageFailedError(LoadFault.BROWSER_GONE, "the browser died")
        return PageFailedError(LoadFault.OTHER, text)

    async def answers(self) -> bool:
        """Whether the page's script thread answers within `PROBE_SECONDS`."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._cdp.send("Runtime.evaluate", {"expression": "1", "returnByValue": True})
        except (TimeoutError, Error):
            self.stuck = not self.crashed
            return False
        return True

    async def evaluate(self, expression: str, *, seconds: float) -> Any:
        """The value of a script; raises PageFailedError."""
        try:
            async with asyncio.timeout(seconds):
                answer = await self._cdp.send(
                    "Runtime.evaluate",
                    {"expression": expression, "returnByValue": True, "awaitPromise": True},
                )
        except TimeoutError:
            self.stuck = True
            message = f"the page did not answer within {seconds:.1f} s"
            raise PageFailedError(LoadFault.UNRESPONSIVE, message) from None
        except Error as error:
            failed = self._failed(error)
            assert isinstance(failed, PageFailedError)
            raise failed from None
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details.get("text", "")
            raise PageFailedError(LoadFault.OTHER, str(text).splitlines()[0])
        return answer["result"].get("value")

    async def unreachable_url(self) -> str | None:
        """After a failed navigation: the URL that failed, the last of a chain of redirects."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                tree = await self._cdp.send("Page.getFrameTree")
        except (TimeoutError, Error):
            return None
        url = tree["frameTree"]["frame"].get("unreachableUrl")
        return str(url) if url else None

    async def wait_for(self, selector: str, *, seconds: float) -> None:
        """Until an element is there; raises PageFailedError with WAIT_FOR or BAD_SELECTOR."""
        try:
            async with asyncio.timeout(seconds + PROBE_SECONDS):
                await self._page.wait_for_selector(selector, state="attached", timeout=max(seconds * 1000, 1))
        except PlaywrightTimeoutError:
            message = f"{selector!r} did not appear within {seconds:.1f} s"
            raise PageFailedError(LoadFault.WAIT_FOR, message) from None
        except TimeoutError:
            raise await self._silent(seconds) from None
        except Error as error:
            text = error.message.splitlines()[0]
            if "selector" in text.lower() or "Unknown engine" in text:
                raise PageFailedError(LoadFault.BAD_SELECTOR, f"{selector!r}: {text}") from None
            raise self._failed(error) from None

    async def screenshot(self, *, seconds: float, full: bool) -> bytes:
        """PNG of the page, or of what is in view; raises PageFailedError."""
        clip = None
        if full:
            size = await self.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]",
                seconds=seconds,
            )
            width, height = (max(1, min(int(n), SCREENSHOT_HEIGHT)) for n in size)
            clip = {"x": 0.0, "y": 0.0, "width": float(width), "height": float(height)}
        try:
            async with asyncio.timeout(seconds):
                return await self._page.screenshot(
                    full_page=full,
                    clip=clip,  # type: ignore[arg-type]
                    timeout=seconds * 1000 + 1000,
                )
        except (TimeoutError, PlaywrightTimeoutError):
            raise PageFailedError(LoadFault.UNRESPONSIVE, f"no picture within {seconds:.1f} s") from None
        except Error as error:
            raise self._failed(error) from None

    async def cookies(self) -> list[Any]:
        """The context's cookies; none when the browser does not tell."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return list(await self._context.cookies())
        except (TimeoutError, Error):
            return []

    async def close(self) -> bool:
        """Close page and context; False: it did not close in time, and its browser must be closed."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._context.close()
        except TimeoutError:
            return False
        except Error:
            return True  # gone already
        finally:
            for task in self._tasks:
                task.cancel()
        return True

    def _on_crash(self, _: Page) -> None:
        self.crashed = True

    def _on_download(self, download: Download) -> None:
        self._download = download

    def _on_popup(self, popup: Page) -> None:
        if popup is not self._page:
            self._own(popup.close())

    def _on_paused(self, paused: Mapping[str, Any]) -> None:
        self._own(self._refuse(paused))

    async def _refuse(self, paused: Mapping[str, Any]) -> None:
        main_document = paused["resourceType"] == "Document" and paused["frameId"] == self._main_frame
        if main_document:
            await self._cdp.send("Fetch.continueRequest", {"requestId": paused["requestId"]})
        else:
            await self._cdp.send(
                "Fetch.failRequest", {"requestId": paused["requestId"], "errorReason": "BlockedByClient"}
            )

    def _own(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Error):
            warn("page.task-failed", error=repr(error))
