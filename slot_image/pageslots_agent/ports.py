"""Where the agent's two halves meet: the browser side offers a `Tab`, the crawl side an `Attempt`.

The crawl never sees Playwright, the browser never sees a frontier: either can be replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pageslots.wire import AttemptReport, StopReason, WaitFor


class LoadFault(StrEnum):
    """Why a page did not load: what the network, the browser or a rule of ours said."""

    DNS = "Dns"
    REFUSED = "Refused"  # connection refused, reset, unreachable
    TLS = "Tls"
    TIMEOUT = "Timeout"  # pageTimeoutSeconds
    PROXY = "Proxy"  # tunnel failed, 407, proxy unreachable, wrong exit country
    REDIRECT_LOOP = "RedirectLoop"
    FORBIDDEN_ADDRESS = "ForbiddenAddress"  # private, loopback, metadata, or a scheme that is not http(s)
    WAIT_FOR = "WaitFor"  # the page loaded, the awaited selector did not appear
    BAD_SELECTOR = "BadSelector"  # the awaited selector can't be compiled
    CRASH = "Crash"  # the renderer died
    BROWSER_GONE = "BrowserGone"  # the whole browser died
    UNRESPONSIVE = "Unresponsive"  # the page does not answer within its deadline: endless script
    OTHER = "Other"


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of loading one URL. `status` None: no HTTP answer. Header names are lower case."""

    url: str
    final_url: str
    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: LoadFault | None = None
    message: str = ""  # one line for people, names the cause
    is_download: bool = False  # a file, not a page: recorded, not opened
    content_type: str = ""
    bytes: int = 0  # over the wire, both ways, as the relay counted them
    milliseconds: int = 0
    proxy: str = ""  # name of the upstream proxy; empty: direct


class Tab(Protocol):
    """The slot's one page. Every call ends within its deadline, also when the renderer hangs or is gone."""

    async def visit(self, url: str, *, timeout_ms: int, wait_for: WaitFor | None = None) -> Visit:
        """Load `url`; never raises for what a page does. Recycles the browser first when that is due."""
        ...

    async def html(self, *, timeout_ms: int = 10_000, max_bytes: int = 32 * 1024 * 1024) -> str:
        """The DOM as HTML; raises `PageUnreadableError` when the page does not answer or is too large."""
        ...

    async def text(self, *, timeout_ms: int = 10_000) -> str:
        """The visible text (innerText of the body)."""
        ...

    async def screenshot(self, *, timeout_ms: int = 15_000) -> bytes:
        """PNG of the full page (bounded height)."""
        ...


class PageUnreadableError(Exception):
    """The page could not be read; carries the fault."""

    def __init__(self, fault: LoadFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class Attempt(Protocol):
    """One attempt, made by `crawl.start_attempt(spec, tab, on_change=…)`."""

    @property
    def report(self) -> AttemptReport:
        """The state as of now."""
        ...

    async def run(self) -> AttemptReport:
        """Crawl until an outcome; checkpoints before it returns; raises nothing but CancelledError."""
        ...

    def request_stop(self, reason: StopReason, *, page_grace_ms: int) -> None:
        """End soon: the page under way has `page_grace_ms`, else it goes back to the frontier."""
        ...

    def records(self, offset: int) -> bytes:
        """JSON Lines of the records from `offset` on (attempts without an output)."""
        ...
