"""One attempt, from its start to its outcome: feed → lease → visit → settle → write.

One page at a time, as a slot has one page. The loop decides when to stop and when to write; everything else
is a part of its own: `frontier`, `visiting`, `following`, `ledger`, `output`. Whenever the loop waits, the
frontier, the counts and the waiting records agree with each other, so that a batch can be cut at any such
moment.

Import this when the first attempt starts: lxml, SQLite and their like take about 15 MiB that an idle slot
saves.
"""

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pageslots.wire import AttemptReport, AttemptSpec, AttemptState, Outcome, StopReason
from pageslots_agent.capture import FAILURE_KINDS, KINDS, Capturer
from pageslots_agent.checkpoint import ROWS_AT_ONCE
from pageslots_agent.clock import Clock, SystemClock
from pageslots_agent.extract import ExtractError
from pageslots_agent.feeding import Feeder
from pageslots_agent.following import Follower, May
from pageslots_agent.frontier import Frontier, Page, Wait
from pageslots_agent.ledger import Ending, Ledger
from pageslots_agent.logs import warn
from pageslots_agent.outcome import attempt_outcome, judge_fault
from pageslots_agent.output import Finished, Folder, ForeignOutputError, OutputError, Preview
from pageslots_agent.ports import Attempt, LoadFault, Tab, Visit
from pageslots_agent.record import Visited
from pageslots_agent.robots import SlotSpentError
from pageslots_agent.scope import SCOPES
from pageslots_agent.source import SourceError
from pageslots_agent.storage import Storage, StorageError, open_storage
from pageslots_agent.visiting import Visitor
from pageslots_agent.writing import Writer

MIN_LINKS = 10_000
OPEN_MS = 30_000
"""How long an output may refuse at the start before the attempt gives up."""
LAST_WORDS_MS = 3_000
"""Writing what an attempt leaves behind when it has to end: less than the grace that follows a page's own."""
FINISH_MS = 30_000
"""Writing the last part and `_done.json` of a crawl that is through, at least."""
LATE_MS = 5_000
"""What a page may take beyond the attempt's deadline before it is cancelled."""

_USELESS = (ExtractError, SourceError, StorageError, ForeignOutputError)


def start_attempt(spec: AttemptSpec, tab: Tab, on_change: Callable[[], None]) -> Attempt:
    """An attempt at `spec` in `tab`; nothing happens before `run`. `on_change`: the report has changed."""
    return CrawlAttempt(spec, tab, on_change)


class CrawlAttempt:
    """See ports.Attempt. `clock` and `storage` are replaced by tests."""

    def __init__(
        self,
        spec: AttemptSpec,
        tab: Tab,
        on_change: Callable[[], None],
        *,
        clock: Clock | None = None,
        storage: Storage | None = None,
    ) -> None:
        self._spec = spec
        self._tab = tab
        self._on_change = on_change
        self._clock = clock or SystemClock()
        self._storage = storage
        self._preview = Preview()
        self._frontier = Frontier(
            max_pages=spec.max_pages or None,
            max_links=max(MIN_LINKS, 10 * spec.max_pages),
            page_delay_ms=spec.page_delay_ms,
        )
        self._writer: Writer | None = None
        self._ledger = Ledger(spec, self._frontier, self._preview, on_change)
        self._stop = asyncio.Event()
        self._stop_reason: StopReason | None = None
        self._page_until_ms = 0
        self._began_ms = 0
        self._deadline_ms = 0
        self._started_wall_ms = 0
        self._ended_wall_ms: int | None = None
        self._ending: Ending | None = None

    @property
    def report(self) -> AttemptReport:
        """The state as of now."""
        ledger, ending = self._ledger, self._ending
        return AttemptReport(
            id=self._spec.id,
            request_uid=self._spec.request_uid,
            request=self._spec.request,
            state=AttemptState.RUNNING if ending is None else AttemptState.ENDED,
            outcome=ending.outcome if ending else None,
            message=ending.message if ending else self._trouble(),
            pages=ledger.pages,
            new_ok_pages=ledger.new_ok_pages,
            start_pages_ok=ledger.tally.starts_ok,
            all_tried_blocked=ledger.all_tried_blocked,
            records=ledger.tally.records,
            bytes=ledger.bytes,
            progress=ledger.progress,
            retry_after_ms=ending.retry_after_ms if ending else None,
            result_uri=self._spec.output_uri,
            truncated=self._preview.truncated,
            stop_reason=self._stop_reason,
            started_ms=self._started_wall_ms,
            ended_ms=self._ended_wall_ms,
        )

    def records(self, offset: int) -> bytes:
        """JSON Lines of the records from `offset` on (attempts without an output)."""
        return self._preview.since(offset)

    def request_stop(self, reason: StopReason, *, page_grace_ms: int) -> None:
        """End soon; the first reason stays, the shortest grace counts."""
        until = self._clock.elapsed_ms() + page_grace_ms
        if self._stop_reason is None:
            self._stop_reason, self._page_until_ms = reason, until
        self._page_until_ms = min(self._page_until_ms, until)
        if self._writer is not None:
            self._writer.hurry(self._page_until_ms + LAST_WORDS_MS)
        self._stop.set()

    async def run(self) -> AttemptReport:
        """Crawl until an outcome; checkpoints before it returns; raises nothing but CancelledError."""
        self._began_ms, self._started_wall_ms = self._clock.elapsed_ms(), self._clock.wall_ms()
        limit = self._spec.deadline_ms
        if self._spec.output_uri is not None and self._spec.attempt_ms:
            limit = min(limit, self._spec.attempt_ms)
        self._deadline_ms = self._began_ms + limit
        ending = Ending(Outcome.SLOT_LOST, "the agent failed")
        try:
            async with asyncio.TaskGroup() as tasks:
                ending = await self._attempt(tasks)
        except* Exception as group:  # noqa: BLE001 -- a fault of ours: another attempt may get by it
            first = group.exceptions[0]
            warn("attempt.failed", exc_info=True, id=self._spec.id)
            ending = Ending(Outcome.SLOT_LOST, f"the agent failed: {_fault(first)}")
        finally:
            self._frontier.close()
        self._ended_wall_ms = self._clock.wall_ms()
        self._ending = ending
        self._on_change()
        return self.report

    # --- the parts of run

    async def _attempt(self, tasks: asyncio.TaskGroup) -> Ending:
        stopping = tasks.create_task(self._stop.wait())
        with ExitStack() as closing:
            try:
                crew = self._crew(tasks, stopping, closing)
                earlier = await self._open(crew)
                if earlier is not None:
                    return earlier
                ending = await self._crawl(crew)
            except _USELESS as error:
                return Ending(Outcome.BAD_REQUEST, str(error))
            except OutputError as error:
                return Ending(Outcome.SITE_ERROR, str(error))
            finally:
                stopping.cancel()
            return await self._conclude(ending)

    def _crew(self, tasks: asyncio.TaskGroup, stopping: asyncio.Task[bool], closing: ExitStack) -> "_Crew":
        """Everybody who takes part; raises what _USELESS names."""
        spec = self._spec
        _check(spec)
        follower = None
        if spec.follow is not None:
            follower = Follower(spec, spec.follow, self._frontier, self._tab, self._clock)
        folder = None
        if spec.output_uri is not None:
            storage = self._storage or open_storage(spec.output_uri)
            folder = Folder(storage, spec, self._clock)
            closing.callback(folder.close)
            self._ledger.sink = folder
            self._writer = Writer(folder, self._frontier, self._ledger, self._clock, tasks)
        visitor = Visitor(spec, self._tab, self._clock, reads_links=_reads_links(spec, follower))
        closing.callback(visitor.close)
        feeder = Feeder(spec, self._frontier, self._ledger, self._clock)
        closing.callback(feeder.close)
        return _Crew(tasks, stopping, feeder, visitor, Capturer(self._tab, folder), follower, folder)

    async def _open(self, crew: "_Crew") -> Ending | None:
        """Take over what earlier attempts left; an Ending when one of them finished."""
        folder, ledger = crew.folder, self._ledger
        if folder is None:
            return None
        folder.give_up_ms = min(self._deadline_ms, self._began_ms + OPEN_MS)
        opened = await folder.open()
        folder.give_up_ms = self._deadline_ms
        if isinstance(opened, Finished):
            ledger.tally, ledger.discovered_before = opened.tally, opened.discovered
            return Ending(opened.outcome, "an earlier attempt finished it", is_complete=True)
        for checkpoint in opened:
            rows = checkpoint.rows()
            while some := list(islice(rows, ROWS_AT_ONCE)):
                self._frontier.restore(some)
                await asyncio.sleep(0)
            ledger.tally = checkpoint.header.tally
        self._frontier.settle()
        return None

    async def _crawl(self, crew: "_Crew") -> Ending:
        while True:
            await crew.feeder.feed()
            if self._writer is not None:
                await self._writer.cut_if_due()
                await self._writer.room(self._stop)
            ending = self._must_end()
            if ending is not None:
                return ending
            now = self._clock.elapsed_ms()
            page = self._frontier.lease(now)
            if page is None:
                return self._all_done()
            if isinstance(page, Wait):
                await self._clock.wait(self._stop, self._until_next(page.until_ms - now))
                continue
            ending = await self._one(crew, page)
            if ending is not None:
                return ending

    async def _one(self, crew: "_Crew", page: Page) -> Ending | None:
        """Load a page and settle it; an Ending when the attempt ends with it."""
        left = max(1, self._deadline_ms - self._clock.elapsed_ms())
        timeout_ms = min(self._spec.page_timeout_ms, left)
        result = await self._watched(crew, self._page(crew, page, timeout_ms))
        match result:
            case None:
                self._frontier.put_back(page, tried=False)
                return self._must_end() or self._timeout()
            case Ending():
                self._frontier.put_back(page, tried=False)
                return result
            case May.NEVER:
                self._ledger.disallow(page)
            case May():
                self._frontier.put_back(page, tried=False)
                self._ledger.moved()
            case _Found(visited, captures, links):
                if visited.visit.fault is LoadFault.TIMEOUT and timeout_ms < self._spec.page_timeout_ms:
                    self._frontier.put_back(page, tried=False)  # it was not given its time
                    return self._timeout()
                return self._ledger.settle(visited, captures, links, now_ms=self._clock.elapsed_ms())
        return None

    async def _page(self, crew: "_Crew", page: Page, timeout_ms: int) -> "_Found | Ending | May":
        """What loading a page gives. Cancelled at any moment, it has only admitted links, and may do so
        again.
        """
        try:
            if crew.follower is not None:
                may = await crew.follower.may_load(page, timeout_ms=timeout_ms)
                self._ledger.bytes += crew.follower.take_bytes()
                if may is not May.LOAD:
                    return may
            visited = await crew.visitor.visit(page, timeout_ms=timeout_ms)
            captures, links = await crew.capturer.take(visited, self._ledger.captures_of(visited))
            if crew.follower is not None and visited.verdict.outcome is Outcome.OK:
                async with self._writer.still if self._writer else nullcontext():
                    await crew.follower.admit_links(visited)
        except SlotSpentError as error:
            visit = Visit(
                url=page.url, final_url=page.url, status=None, fault=error.fault, message=str(error)
            )
            verdict = judge_fault(error.fault, f"robots.txt: {error}", is_start=False)
            return _Found(Visited(page, visit, verdict, self._clock.wall_ms()), {}, None)
        except ExtractError as error:
            return Ending(Outcome.BAD_REQUEST, str(error))
        except OutputError as error:
            return Ending(Outcome.TIMEOUT, str(error))
        return _Found(visited, captures, links)

    async def _watched(
        self, crew: "_Crew", work: Coroutine[Any, Any, "_Found | Ending | May"]
    ) -> "_Found | Ending | May | None":
        """The result of `work`; None when it was cancelled because the attempt has to end.

        Meanwhile records are written, so that a slow page does not hold those of others back.
        """
        task = crew.tasks.create_task(work)
        waiting: set[asyncio.Task[Any]] = {task, crew.stopping}
        while not task.done():
            until = self._deadline_ms + LATE_MS
            if self._stop.is_set():
                until, waiting = min(until, self._page_until_ms), {task}
            left = until - self._clock.elapsed_ms()
            if left <= 0:
                task.cancel()
                await asyncio.wait({task})
                break
            timeout = self._until_next(left) / 1_000
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if self._writer is not None and not task.done() and not self._writer.still.locked():
                await self._writer.cut_if_due()
        return None if task.cancelled() else task.result()

    async def _conclude(self, ending: Ending) -> Ending:
        """Write what the attempt leaves behind; how it ended may depend on that."""
        writer, now = self._writer, self._clock.elapsed_ms()
        if writer is None:
            if self._ledger.evidence is not None:
                self._preview.add(self._ledger.evidence)
            return ending
        is_finished = ending.is_complete and ending.outcome in (Outcome.OK, Outcome.NOT_FOUND)
        try:
            if is_finished:
                if not self._stop.is_set():
                    writer.extend(max(self._deadline_ms, now + FINISH_MS))
                await writer.finish(ending.outcome)
            else:
                writer.hurry(max(now, self._page_until_ms) + LAST_WORDS_MS)
                await writer.leave(void=ending.is_complete)
        except OutputError as error:
            if is_finished:
                return Ending(Outcome.TIMEOUT, f"all pages are done, but could not be written: {error}")
            lost = f"what was not written will be crawled again: {error}"
            return replace(ending, message=f"{ending.message}; {lost}" if ending.message else lost)
        return ending

    def _must_end(self) -> Ending | None:
        if self._stop_reason is StopReason.DEADLINE:
            return Ending(Outcome.TIMEOUT, "stopped by the operator: deadlineSeconds is over")
        if self._stop_reason is not None:
            return Ending(Outcome.STOPPED, f"stopped by the operator: {self._stop_reason}")
        if self._writer is not None and self._writer.broken:
            return Ending(Outcome.TIMEOUT, self._writer.broken)
        if self._clock.elapsed_ms() >= self._deadline_ms:
            return self._timeout()
        return None

    def _timeout(self) -> Ending:
        of_request = self._deadline_ms - self._began_ms >= self._spec.deadline_ms
        name = "deadlineSeconds" if of_request else "attemptSeconds"
        if of_request and self._stop_reason is None:
            self._stop_reason = StopReason.DEADLINE  # told in the report: no further attempt makes sense
        trouble = self._trouble()
        return Ending(Outcome.TIMEOUT, f"{name} is over" + (f"; {trouble}" if trouble else ""))

    def _all_done(self) -> Ending:
        tally = self._ledger.tally
        if not tally.starts:
            parts = self._spec.urls_from.part_count if self._spec.urls_from else 1
            if parts > 1:
                return Ending(Outcome.OK, "no row belongs to this part", is_complete=True)
            return Ending(Outcome.BAD_REQUEST, "there are no start URLs", is_complete=True)
        outcome = attempt_outcome({Outcome(name): count for name, count in tally.starts.items()})
        message = "" if outcome is Outcome.OK else self._ledger.last_failure
        if tally.disallowed:
            said = f"{tally.disallowed} links not followed: disallowed by robots.txt"
            message = f"{message}; {said}" if message else said
        return Ending(outcome, message, is_complete=True)

    def _until_next(self, ms: int) -> int:
        """The shortest of `ms` and the times at which the loop has something else to do."""
        due = self._writer.due_in_ms() if self._writer is not None else None
        left = max(0, self._deadline_ms + LATE_MS - self._clock.elapsed_ms())
        return max(1, min(ms, left, ms if due is None else due))

    def _trouble(self) -> str:
        return self._writer.trouble if self._writer is not None else ""


@dataclass(frozen=True, slots=True)
class _Crew:
    tasks: asyncio.TaskGroup
    stopping: asyncio.Task[bool]
    feeder: Feeder
    visitor: Visitor
    capturer: Capturer
    follower: Follower | None
    folder: Folder | None


@dataclass(frozen=True, slots=True)
class _Found:
    visited: Visited
    captures: dict[str, Any]
    links: list[str] | None


def _reads_links(spec: AttemptSpec, follower: Follower | None) -> Callable[[int], bool]:
    if "links" in spec.capture:
        return lambda _depth: True
    return follower.reads_links if follower is not None else lambda _depth: False


def _fault(error: BaseException) -> str:
    if isinstance(error, sqlite3.OperationalError):
        return f"its scratch file in {tempfile.gettempdir()}: {error}"
    return f"{type(error).__name__}: {error}"


def _check(spec: AttemptSpec) -> None:
    """What is wrong with a spec beside its selectors; raises SourceError, which says it to its author."""
    for name, given, known in (
        ("capture", spec.capture, KINDS),
        ("captureOnFailure", spec.capture_on_failure, FAILURE_KINDS),
        ("follow.scope", (spec.follow.scope,) if spec.follow else (), SCOPES),
    ):
        for word in given:
            if word not in known:
                raise SourceError(f"{name}: {word!r} is not one of {', '.join(known)}")
    if spec.urls_from is not None and not 0 <= spec.urls_from.part_index < spec.urls_from.part_count:
        raise SourceError("urlsFrom: partIndex must be below partCount")
