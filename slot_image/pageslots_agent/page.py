"""One page in its own browser context: load, read, picture, close; each within a deadline.

Reading goes through one CDP message instead of Playwright's serialiser: cheaper, and the size is looked at
before anything is sent.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from playwright.async_api import BrowserContext, CDPSession, Download, Error, Page, Response
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from pageslots_agent.blocking import Blocking
from pageslots_agent.faults import fault_of, net_error
from pageslots_agent.logs import warn
from pageslots_agent.ports import LoadFault

T = TypeVar("T")

PROBE_SECONDS = 1.0
ALIVE_SECONDS = 2.0
"""In which a page that is left must have answered: a busy machine must not look like a hanging page."""
SETTLE_SECONDS = 2.0
"""How long a page may go on leading elsewhere after its load event."""
CLOSE_SECONDS = 5.0
SCREENSHOT_HEIGHT = 16_384
"""Pixels; Chromium paints nothing below, and an endless page must not become an endless picture."""

_AGAIN_SECONDS = 0.05

_WHERE = """(() => {
  const entry = performance.getEntriesByType("navigation")[0];
  const refresh = document.querySelector("meta[http-equiv=refresh i]");
  const leaves = refresh !== null && /^\\s*[01]?\\s*[;,]/.test(refresh.content);
  return [document.readyState === "complete" && !leaves, location.href, document.contentType,
          entry ? entry.name : "", entry ? entry.responseStatus || 0 : 0];
})()"""

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


class StuckBeforeError(Exception):
    """What the page showed before hangs, or won't let go of it: the URL asked for is not to blame."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of a navigation, after the redirects that the page itself made while loading."""

    status: int | None
    headers: Mapping[str, str]
    final_url: str
    content_type: str


class BrowserPage:
    """A page; `crashed` once its renderer has died, `stuck` once it did not answer. Neither recovers."""

    def __init__(self, context: BrowserContext, page: Page, cdp: CDPSession) -> None:
        self._context = context
        self._page = page
        self._cdp = cdp
        self._main_frame = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._downloads: list[Download] = []
        self._downloading = asyncio.Event()
        self.crashed = False
        self.stuck = False
        self._crash = asyncio.Event()

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
        """Load `url`, wait for its load event and for where it leads by itself.

        Raises PageFailedError, DownloadedError, StuckBeforeError.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        self._downloads.clear()
        try:
            response = await self._navigate(url, deadline)
        except Error as error:
            if "interrupted by another navigation" in error.message:
                self.stuck = True  # the page before goes on leading elsewhere
                raise StuckBeforeError from None
            raise await self._failed_navigation(error) from None
        except (TimeoutError, PlaywrightTimeoutError):
            raise await self._silent(seconds) from None
        return await self._settled(response, deadline)

    async def _navigate(self, url: str, deadline: float) -> Response | None:
        """One navigation. The page shown before is asked for a sign of life on the way.

        A hanging renderer is reused for the same site: without that question an innocent page would be late.
        """
        left = deadline - asyncio.get_running_loop().time()
        before = asyncio.ensure_future(self._cdp.send("Runtime.evaluate", {"expression": "1"}))
        going = asyncio.ensure_future(self._page.goto(url, timeout=left * 1000 + 5000, wait_until="load"))
        try:
            await asyncio.wait({going}, timeout=min(ALIVE_SECONDS, left))
            if not going.done() and not _succeeded(before) and not await self._reacts():
                self.stuck = True
                raise StuckBeforeError
            async with asyncio.timeout_at(deadline):
                return await self._unless_crashed(going)
        finally:
            for task in (before, going):
                task.cancel()
            await asyncio.gather(before, going, return_exceptions=True)

    async def _settled(self, response: Response | None, deadline: float) -> Loaded:
        """Where the page is now. A page may lead elsewhere at once; the question waits for that to commit."""
        loop = asyncio.get_running_loop()
        until = min(deadline, loop.time() + SETTLE_SECONDS)
        while True:
            try:
                where = await self.evaluate(_WHERE, seconds=max(deadline - loop.time(), 0.05))
            except PageFailedError as failed:
                if failed.fault is not LoadFault.OTHER or loop.time() > until:
                    raise
                where = None
            if where is not None and (where[0] or loop.time() > until):
                break
            await asyncio.sleep(_AGAIN_SECONDS)
        _, href, content_type, document_url, status = where
        if href.startswith("chrome-error:"):
            raise PageFailedError(LoadFault.OTHER, "the page led to one that failed", net_error="ERR_FAILED")
        if response is not None and _same(response.url, document_url or href):
            return Loaded(response.status, response.headers, href, content_type)
        return Loaded(status or None, {}, href, content_type)

    async def _silent(self, seconds: float) -> PageFailedError:
        """A page that is late is either slow or hangs; it is stopped and asked which."""
        if await self.answers():
            return PageFailedError(LoadFault.TIMEOUT, f"not loaded within {seconds:.1f} s")
        if self.crashed:
            return PageFailedError(LoadFault.CRASH, "the page's renderer died")
        return PageFailedError(LoadFault.UNRESPONSIVE, f"the page does not answer (after {seconds:.1f} s)")

    async def _failed_navigation(self, error: Error) -> Exception:
        if "Download is starting" not in error.message and not self._downloads:
            return self._failed(error)
        with contextlib.suppress(TimeoutError):  # the event comes a little later than the error
            async with asyncio.timeout(PROBE_SECONDS):
                while not self._downloads:
                    await self._downloading.wait()
                    self._downloading.clear()
        if not self._downloads:
            return DownloadedError("", "")
        download = self._downloads[-1]
        return DownloadedError(download.url, download.suggested_filename)

    def _failed(self, error: Error) -> PageFailedError:
        text = error.message.splitlines()[0]
        name = net_error(text)
        if "frame was detached" in text and not self.crashed:
            return PageFailedError(LoadFault.BROWSER_GONE, "the browser died")
        if name is not None:
            return PageFailedError(fault_of(name), name, net_error=name)
        if self.crashed or "crashed" in text:
            self.crashed = True
            return PageFailedError(LoadFault.CRASH, "the page's renderer died")
        if self._page.is_closed() or "has been closed" in text or "Connection closed" in text:
            return PageFailedError(LoadFault.BROWSER_GONE, "the browser died")
        return PageFailedError(LoadFault.OTHER, text)

    async def _reacts(self) -> bool:
        """Whether the document that is there now answers."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._cdp.send("Runtime.evaluate", {"expression": "1"})
        except (TimeoutError, Error):
            return False
        return True

    async def answers(self) -> bool:
        """Whether the page answers within `PROBE_SECONDS`; ends what it is loading.

        While a navigation has not committed, Chromium holds all questions back: so it is stopped first.
        """
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await asyncio.gather(
                    self._cdp.send("Page.stopLoading"),
                    self._cdp.send("Runtime.evaluate", {"expression": "1"}),
                )
        except (TimeoutError, Error):
            self.stuck = not self.crashed
            return False
        return True

    async def evaluate(self, expression: str, *, seconds: float) -> Any:
        """The value of a script; raises PageFailedError."""
        try:
            async with asyncio.timeout(seconds):
                answer = await self._unless_crashed(
                    self._cdp.send(
                        "Runtime.evaluate",
                        {"expression": expression, "returnByValue": True, "awaitPromise": True},
                    )
                )
        except TimeoutError:
            raise await self._silent(seconds) from None
        except Error as error:
            raise self._failed(error) from None
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
                waiting = self._page.wait_for_selector(
                    selector, state="attached", timeout=max(seconds * 1000, 1)
                )
                await self._unless_crashed(waiting)
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
                picture = self._page.screenshot(
                    full_page=full,
                    clip=clip,  # type: ignore[arg-type]
                    timeout=seconds * 1000 + 1000,
                )
                return await self._unless_crashed(picture)
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
        self._crash.set()

    async def _unless_crashed(self, doing: Awaitable[T]) -> T:
        """What `doing` gives; PageFailedError as soon as the renderer has died.

        Chromium leaves a question to a dead renderer unanswered: without this it would cost the whole deadline.
        """
        task, crash = asyncio.ensure_future(doing), asyncio.ensure_future(self._crash.wait())
        try:
            await asyncio.wait({task, crash}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise PageFailedError(LoadFault.CRASH, "the page's renderer died")
            return task.result()
        finally:
            for unfinished in (task, crash):
                unfinished.cancel()
            await asyncio.gather(task, crash, return_exceptions=True)

    def _on_download(self, download: Download) -> None:
        del self._downloads[:-8]
        self._downloads.append(download)
        self._downloading.set()

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


def _succeeded(question: asyncio.Future[Any]) -> bool:
    """An error is no sign of life: a commit that the renderer never carries out ends the question too."""
    return question.done() and not question.cancelled() and question.exception() is None


def _same(one: str, other: str) -> bool:
    return one.partition("#")[0] == other.partition("#")[0]
