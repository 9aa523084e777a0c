"""The browser as the slot's worker needs it: implemented by `slot_browser`, by a fake in tests."""

from typing import Protocol

from pageslots.wire import Failure, Outcome
from pageslots_agent.ports import Tab


class BrowserFailedError(Exception):
    """The browser did not open, or is gone; the text names the cause."""


class BrowserPort(Protocol):
    """Every call ends by a deadline of its own."""

    @property
    def version(self) -> str:
        """Of the browser that was opened last; empty before."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether there is a browser, as far as is known without asking it."""
        ...

    @property
    def pages(self) -> int:
        """Visited since the agent started."""
        ...

    @property
    def bytes_total(self) -> int:
        """Through the relay since the agent started, both ways."""
        ...

    @property
    def warm_site(self) -> str | None:
        """The site that the kept page has served last."""
        ...

    @property
    def recycle_due(self) -> bool:
        """Whether age or pages call for a new browser."""
        ...

    @property
    def failures(self) -> int:
        """Consecutive failures that count towards reopening and giving up."""
        ...

    @property
    def last_failure(self) -> Failure | None:
        """What went wrong last."""
        ...

    async def prepare(self) -> bool:
        """Open what is needed and load the target; False: gave up, and closed."""
        ...

    async def tab(self, site: str, *, fresh: bool) -> Tab:
        """The page for an attempt: the warm one if it may serve `site`; raises BrowserFailedError."""
        ...

    def usable_after(self, outcome: Outcome, message: str) -> bool:
        """An attempt ended so; whether the slot may take the next one without preparing anew."""
        ...

    async def tidy(self) -> None:
        """After an attempt: what was opened for it alone goes."""
        ...

    async def park(self) -> None:
        """Leave the site, keep its cookies and cache."""
        ...

    async def alive(self) -> bool:
        """Whether the browser answers."""
        ...

    async def screenshot(self) -> bytes:
        """PNG of what is in view; raises PageUnreadableError."""
        ...

    async def close(self) -> None:
        """Close or kill everything; may be called again."""
        ...
