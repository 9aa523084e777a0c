"""The books of one attempt: what each page's verdict does to the frontier, the counts and the records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pageslots.wire import AttemptSpec, Outcome, PageCounts
from pageslots_agent.capture import FAILURES_CAPTURED
from pageslots_agent.checkpoint import Tally
from pageslots_agent.frontier import Frontier, Page
from pageslots_agent.outcome import Next
from pageslots_agent.record import Visited, page_record, row_record
from pageslots_agent.source import Start

OWN_TRIES = 3
"""Tries of a page that is Blocked, or takes proxy or browser along, before it is recorded as failed."""
FIRST_PAUSE_MS, LAST_PAUSE_MS = 1_000, 30_000
"""Before a failed page is tried again: doubled with each try; the other pages of its host wait along."""

_NOTHING_TO_SEE = ("fault-Crash", "fault-BrowserGone", "fault-Unresponsive", "fault-Proxy")


@dataclass(frozen=True, slots=True)
class Ending:
    """Why an attempt ends. `is_complete`: every page is done, there is nothing left for another attempt."""

    outcome: Outcome
    message: str = ""
    retry_after_ms: int | None = None
    is_complete: bool = False


class Sink(Protocol):
    """Takes records, one line each."""

    def add(self, line: bytes) -> None:
        """Keep a record."""
        ...


class Ledger:
    """Counts and records; the only place that ends pages."""

    def __init__(
        self, spec: AttemptSpec, frontier: Frontier, sink: Sink, on_change: Callable[[], None]
    ) -> None:
        self._spec = spec
        self._frontier = frontier
        self.sink = sink
        self._on_change = on_change
        self.tally = Tally()
        self.discovered_before = 0
        """By an earlier attempt that finished: its frontier is gone."""
        self.last_failure = ""
        self.new_ok_pages = 0
        self.bytes = 0
        self.progress = 0
        self.evidence: bytes | None = None
        """The record of the page that ended the attempt, when the page itself will be tried again."""
        self._tried = 0
        self._tried_blocked = 0

    @property
    def pages(self) -> PageCounts:
        """Over all attempts."""
        tally = self.tally
        discovered = self._frontier.discovered + tally.bad_rows + self.discovered_before
        return PageCounts(tally.done, tally.failed, tally.blocked, discovered)

    @property
    def all_tried_blocked(self) -> bool:
        """Every page that this attempt tried was Blocked."""
        return self._tried > 0 and self._tried == self._tried_blocked

    def moved(self) -> None:
        """Something happened that shows life."""
        self.progress += 1
        self._on_change()

    def refuse_row(self, start: Start, wall_ms: int) -> None:
        """A start URL that can't be crawled: recorded, failed, never loaded."""
        self.tally.bad_rows += 1
        self.tally.failed += 1
        self.tally.count_start(Outcome.BAD_REQUEST)
        self.last_failure = start.problem
        self._record(
            row_record(
                text=start.text,
                problem=start.problem,
                given=start.input,
                attempt=self._spec.id,
                wall_ms=wall_ms,
            )
        )

    def will_fail(self, visited: Visited) -> bool:
        """Whether this try of the page is its last, and it is no good."""
        match visited.verdict.next:
            case Next.FAIL:
                return True
            case Next.AGAIN:
                return visited.page.tries >= self._spec.page_retries
            case Next.LEAVE:
                return visited.page.tries + 1 >= OWN_TRIES
            case _:
                return False

    def captures_of(self, visited: Visited) -> tuple[str, ...]:
        """What to capture of a page that was just visited."""
        verdict = visited.verdict
        if verdict.next is Next.DONE:
            return (
                self._spec.capture if verdict.outcome is Outcome.OK and not visited.visit.is_download else ()
            )
        seen = verdict.rule not in _NOTHING_TO_SEE and visited.visit.status is not None
        ends = verdict.next is Next.LEAVE or self.will_fail(visited)
        if not (seen and ends) or self.tally.failures_captured >= FAILURES_CAPTURED:
            return ()
        return self._spec.capture_on_failure

    def settle(
        self, visited: Visited, captures: Mapping[str, Any], links: list[str] | None, *, now_ms: int
    ) -> Ending | None:
        """Enter a visited page; tells whether the attempt ends by it."""
        page, verdict = visited.page, visited.verdict
        self.bytes += visited.visit.bytes
        self._tried += 1
        self._tried_blocked += verdict.outcome is Outcome.BLOCKED
        if verdict.next is Next.REFUSE:
            self._frontier.put_back(page, tried=False)
            return Ending(Outcome.BAD_REQUEST, verdict.message)
        if verdict.outcome is not Outcome.OK:
            self.last_failure = f"{page.url}: {verdict.message} (rule {verdict.rule})"
        line = page_record(visited, attempt=self._spec.id, captures=captures, links=links)
        fails = self.will_fail(visited)
        if fails or verdict.next is Next.DONE:
            if fails and captures:
                self.tally.failures_captured += 1
            self._end(visited, failed=fails)
            self._record(line)
        else:
            pause = min(FIRST_PAUSE_MS << min(page.tries, 10), LAST_PAUSE_MS)
            not_before = now_ms + pause if verdict.next is Next.AGAIN else 0
            self._frontier.put_back(page, tried=True, not_before_ms=not_before)
        self.moved()
        return self._ending(visited, line, fails=fails)

    def disallow(self, page: Page) -> None:
        """The page is not loaded because robots.txt says so."""
        self._frontier.skip(page)
        self.tally.disallowed += 1
        self.moved()

    def _ending(self, visited: Visited, line: bytes, *, fails: bool) -> Ending | None:
        verdict = visited.verdict
        if verdict.next is not Next.LEAVE:
            return None
        if fails and verdict.outcome is Outcome.BLOCKED:
            return None  # this page is given up; the others have their chance
        if not fails:
            self.evidence = line
        return Ending(verdict.outcome, self.last_failure, verdict.retry_after_ms)

    def _end(self, visited: Visited, *, failed: bool) -> None:
        page, outcome = visited.page, visited.verdict.outcome
        self._frontier.end(page)
        if failed:
            self.tally.failed += 1
            self.tally.blocked += outcome is Outcome.BLOCKED
        else:
            self.tally.done += 1
            self.new_ok_pages += outcome is Outcome.OK
        if page.is_start:
            self.tally.count_start(outcome)

    def _record(self, line: bytes) -> None:
        self.sink.add(line)
        self.tally.records += 1
        self.moved()
