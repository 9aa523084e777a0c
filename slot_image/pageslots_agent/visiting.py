"""Loading one page and judging it: visit → DOM → challenge rules and extracts → verdict.

The DOM is read once, for every page that answers with success: extracts, links and the rules that find
challenge pages behind a status of 200 all need it.
"""

from collections.abc import Callable
from functools import partial

from pageslots.wire import AttemptSpec, Outcome
from pageslots_agent.aside import Aside
from pageslots_agent.capture import MAX_HTML_BYTES
from pageslots_agent.challenges import challenge_rule, is_empty
from pageslots_agent.clock import Clock
from pageslots_agent.extract import ExtractError, Reader, Reading
from pageslots_agent.frontier import Page
from pageslots_agent.outcome import Next, Verdict, is_readable, judge, judge_fault
from pageslots_agent.ports import PageUnreadableError, Tab, Visit
from pageslots_agent.record import Visited

READING_MS = 10_000
"""Parsing a page and evaluating all extracts on it."""

_HTML_TYPES = ("", "text/html", "application/xhtml+xml")


class Visitor:
    """Loads pages through the tab."""

    def __init__(
        self, spec: AttemptSpec, tab: Tab, clock: Clock, *, reads_links: Callable[[int], bool]
    ) -> None:
        """Compile the extracts; raises ExtractError."""
        self._spec = spec
        self._tab = tab
        self._clock = clock
        self._reads_links = reads_links
        self._reader = Reader(spec.extract)
        self._aside = Aside("reading")

    async def visit(self, page: Page, *, timeout_ms: int) -> Visited:
        """The page and the verdict on it. Raises ExtractError when an extract fails, or takes too long, on
        it.
        """
        fetched_ms = self._clock.wall_ms()
        visit = await self._tab.visit(page.url, timeout_ms=timeout_ms, wait_for=self._spec.wait_for)
        if not is_readable(visit):
            verdict = judge(visit, is_start=page.is_start, wall_ms=fetched_ms)
            return Visited(page, visit, verdict, fetched_ms)
        try:
            html = await self._tab.html(max_bytes=MAX_HTML_BYTES)
        except PageUnreadableError as error:
            verdict = judge_fault(error.fault, str(error), is_start=page.is_start)
            return Visited(page, visit, verdict, fetched_ms)
        try:
            rule, reading = await self._aside.call(
                partial(self._examine, html, visit, links=self._reads_links(page.depth)),
                timeout_ms=READING_MS,
            )
        except TimeoutError:
            verdict = self._too_slow(page)
            return Visited(page, visit, verdict, fetched_ms, html=html)
        verdict = judge(visit, is_start=page.is_start, challenge=rule, wall_ms=fetched_ms)
        return Visited(page, visit, verdict, fetched_ms, reading, html)

    def close(self) -> None:
        """Let go of the thread."""
        self._aside.close()

    def _examine(self, html: str, visit: Visit, *, links: bool) -> tuple[str | None, Reading | None]:
        """The challenge rule that a page fits, or what it shows. Runs aside of the event loop."""
        rule = challenge_rule(html, visit.headers)
        if rule is not None or visit.fault is not None:
            return rule, None
        reading = self._reader.read(html, visit.final_url, links=links, obey_nofollow=self._spec.obey_robots)
        content_type = visit.content_type.partition(";")[0].strip().lower()
        if content_type in _HTML_TYPES and is_empty(html, has_text=reading.has_text):
            return "empty", None
        return None, reading

    def _too_slow(self, page: Page) -> Verdict:
        took = f"took longer than {READING_MS // 1_000} s on {page.url}"
        if self._reader.at.startswith("extract"):
            raise ExtractError(f"{self._reader.at}: {took}")
        return Verdict(Outcome.SITE_ERROR, "unreadable", Next.FAIL, f"parsing {took}")
