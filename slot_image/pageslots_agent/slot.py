"""One slot at work: prepares its browser, runs one attempt at a time, tells its status.

`arbiter` says what may happen; this module does it. One worker does everything that touches the browser, so
that two things can never be done to it at once; HTTP calls only change the arbiter and wake the worker.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pageslots.wire import (
    AgentConfig,
    AgentStatus,
    AttemptReport,
    AttemptSpec,
    AttemptState,
    DrainOrder,
    Outcome,
    Phase,
    StopOrder,
    StopReason,
)
from pageslots_agent.arbiter import Admission, Arbiter, RefusedError, no_such_attempt
from pageslots_agent.browser_port import BrowserFailedError, BrowserPort
from pageslots_agent.logs import event, warn
from pageslots_agent.ports import Attempt, Tab
from pageslots_agent.revision import Revision

Value = TypeVar("Value")

StartAttempt = Callable[[AttemptSpec, Tab, Callable[[], None]], Attempt]
LoadCrawl = Callable[[], Awaitable[StartAttempt]]
"""Imports the crawl at the first attempt: an idle slot does without its libraries."""
WallClock = Callable[[], int]
"""Milliseconds since the Unix epoch."""

PARK_SECONDS = 10.0
"""An idle page that long goes to about:blank: scripts left running there would cost CPU and proxy traffic."""
SLACK_SECONDS = 60.0
"""Beyond page and grace: in which an attempt past its deadline may still write what it has."""
WATCH_SECONDS = 15.0
"""How often an idle slot asks its browser whether it is there."""


@dataclass(slots=True)
class _Run:
    """The attempt under way, from its admission on."""

    spec: AttemptSpec
    started_ms: int
    deadline: float  # of the loop's clock, slack included
    attempt: Attempt | None = None  # None while its code is imported and its page opened
    stop: tuple[StopReason, int] | None = None  # asked for before there was an attempt

    @property
    def report(self) -> AttemptReport:
        if self.attempt is not None:
            return self.attempt.report
        return AttemptReport(
            self.spec.id,
            self.spec.request_uid,
            AttemptState.RUNNING,
            started_ms=self.started_ms,
            request=self.spec.request,
        )


class Slot:
    """The slot behind the HTTP routes; `run` is its worker and ends only when cancelled."""

    def __init__(
        self, config: AgentConfig, browser: BrowserPort, *, load_crawl: LoadCrawl, wall_clock: WallClock
    ) -> None:
        self._config = config
        self._browser = browser
        self._load_crawl = load_crawl
        self._start_attempt: StartAttempt | None = None
        self._wall_clock = wall_clock
        self._arbiter = Arbiter(config.pod_uid)
        self._revision = Revision()
        self._run: _Run | None = None
        self._last_attempt: Attempt | None = None  # ended and unacknowledged: its records can still be read
        self._ready_ms: int | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()  # set while no attempt runs
        self._idle.set()
        self.outcomes: dict[Outcome, int] = {}

    # --- what callers see

    @property
    def phase(self) -> Phase:
        """What the slot is doing."""
        return self._arbiter.phase

    @property
    def busy(self) -> bool:
        """Whether an attempt runs."""
        return self._run is not None

    @property
    def overdue(self) -> bool:
        """An attempt runs past its deadline and the slack in which it should have ended by itself."""
        return self._run is not None and asyncio.get_running_loop().time() > self._run.deadline

    def status(self) -> AgentStatus:
        """The slot as of now."""
        arbiter, browser = self._arbiter, self._browser
        return AgentStatus(
            rev=self._revision.now,
            pod_uid=self._config.pod_uid,
            phase=arbiter.phase,
            epoch=arbiter.epoch,
            warm_site=browser.warm_site,
            attempt=self._run.report if self._run is not None else arbiter.unacknowledged,
            pages=browser.pages,
            consecutive_failures=browser.failures,
            last_failure=browser.last_failure,
            bytes=browser.bytes_total,
            browser_version=browser.version,
            ready_ms=self._ready_ms,
            recycle_due=browser.recycle_due and self._run is None,
        )

    async def status_after(self, after: int, *, seconds: float) -> AgentStatus:
        """The status once its rev differs from `after`, at the latest in `seconds`."""
        await self._revision.newer_than(after, seconds=seconds)
        return self.status()

    def report(self, attempt_id: str) -> AttemptReport:
        """Of the attempt under way or one that has ended here; raises RefusedError."""
        if self._run is not None and self._run.spec.id == attempt_id:
            return self._run.report
        ended = self._arbiter.ended(attempt_id)
        if ended is None:
            raise no_such_attempt(attempt_id)
        return ended

    def records(self, attempt_id: str, offset: int) -> bytes:
        """JSON Lines of the records from `offset` on; raises RefusedError when they are gone."""
        attempt = self._run.attempt if self._run is not None else self._last_attempt
        if self._run is not None and self._run.spec.id == attempt_id and attempt is None:
            return b""
        if attempt is None or attempt.report.id != attempt_id:
            raise no_such_attempt(attempt_id)
        return attempt.records(offset)

    async def screenshot(self) -> bytes:
        """PNG of the page as it is; raises PageUnreadableError."""
        return await self._browser.screenshot()

    async def alive(self) -> bool:
        """False: there is a browser, it does not answer, and nothing here will change that.

        One that is known to be gone is opened again by the worker, or by the attempt's next page.
        """
        if self.phase in {Phase.READY, Phase.RUNNING} and self._browser.is_open:
            return await self._browser.alive()
        return True

    # --- what callers ask for

    def admit(self, spec: AttemptSpec) -> AttemptReport:
        """Start the attempt, or recognise it; raises RefusedError."""
        if self._admit(spec) is Admission.START:
            slack = (spec.page_timeout_ms + self._config.grace_ms) / 1000 + SLACK_SECONDS
            deadline = asyncio.get_running_loop().time() + spec.deadline_ms / 1000 + slack
            self._run = _Run(spec, self._wall_clock(), deadline)
            self._last_attempt = None
            self._idle.clear()
            self._changed()
            event("attempt.accepted", id=spec.id, request=spec.request, number=spec.number, site=spec.site)
        return self.report(spec.id)

    def _admit(self, spec: AttemptSpec) -> Admission:
        try:
            return self._arbiter.admit(spec)
        except RefusedError as refused:
            event("attempt.refused", id=spec.id, request=spec.request, code=refused.refusal.code)
            raise

    def acknowledge(self, attempt_id: str) -> None:
        """The report has been read; raises RefusedError."""
        self._arbiter.acknowledge(attempt_id)
        if self._last_attempt is not None and self._last_attempt.report.id == attempt_id:
            self._last_attempt = None
        self._revision.bump()

    def stop(self, attempt_id: str, order: StopOrder) -> AttemptReport:
        """Ask the attempt to end soon; raises RefusedError."""
        if self._arbiter.check_stop(attempt_id, order):
            event("attempt.stop", id=attempt_id, reason=order.reason)
            self._request_stop(order.reason)
        return self.report(attempt_id)

    def _request_stop(self, reason: StopReason) -> None:
        assert self._run is not None
        page_grace_ms = max(self._config.grace_ms - 4_000, 0)
        if self._run.attempt is None:
            self._run.stop = (reason, page_grace_ms)
        else:
            self._run.attempt.request_stop(reason, page_grace_ms=page_grace_ms)

    def drain(self, order: DrainOrder) -> AgentStatus:
        """Take nothing any more; raises RefusedError while an attempt runs."""
        before = self.phase
        self._arbiter.drain(order)
        if before is not Phase.DRAINED:
            event("slot.drained", epoch=order.epoch)
            self._changed()
        return self.status()

    async def shut_down(self, *, seconds: float) -> None:
        """Let the attempt end within `seconds`; afterwards no attempt runs and none will."""
        self._arbiter.shut_down()
        if self._run is not None:
            self._request_stop(StopReason.SHUTDOWN)
        self._changed()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            warn("attempt.abandoned", id=self._run.spec.id if self._run else None, after_seconds=seconds)

    def _changed(self) -> None:
        self._revision.bump()
        self._wake.set()

    # --- the worker

    async def run(self) -> None:
        """Prepare, run attempts, keep an idle browser in order; until cancelled."""
        while True:
            self._wake.clear()
            match self.phase:
                case Phase.PREPARING:
                    await self._prepare()
                case Phase.RUNNING:
                    await self._run_attempt()
                case Phase.READY:
                    await self._keep()
                case Phase.DRAINED | Phase.GAVE_UP:
                    await self._browser.close()
                    await self._wake.wait()

    async def _prepare(self) -> None:
        started = asyncio.get_running_loop().time()
        prepared = await self._unless_woken(self._browser.prepare())
        if prepared is None:
            return
        if not prepared:
            self._arbiter.gave_up()
            failure = self._browser.last_failure
            warn("slot.gave-up", failures=self._browser.failures, last=failure.message if failure else None)
        else:
            self._arbiter.prepared()
            self._ready_ms = self._ready_ms or self._wall_clock()
            event("slot.ready", seconds=asyncio.get_running_loop().time() - started)
        self._revision.bump()

    async def _keep(self) -> None:
        """An idle slot: park the page, watch the browser; until something is to be done."""
        if await self._woken_within(PARK_SECONDS):
            return
        await self._unless_woken(self._browser.park())
        while not await self._woken_within(WATCH_SECONDS):
            if not await self._browser.alive():
                self.browser_lost()
                return

    def browser_lost(self) -> None:
        """The browser died or hangs while nothing runs on it: prepare anew."""
        if self.phase is Phase.READY:
            warn("browser.lost")
            self._arbiter.browser_lost()
            self._changed()

    async def _woken_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._wake.wait()
        except TimeoutError:
            return False

    async def _unless_woken(self, work: Coroutine[Any, Any, Value]) -> Value | None:
        """Do `work`, but drop it as soon as there is something else to do."""
        doing = asyncio.create_task(work)
        woken = asyncio.create_task(self._wake.wait())
        try:
            await asyncio.wait({doing, woken}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
            return None
        finally:
            woken.cancel()
            doing.cancel()
            await asyncio.gather(doing, woken, return_exceptions=True)

    async def _run_attempt(self) -> None:
        run = self._run
        assert run is not None
        report = await self._carried_out(run)
        assert report.outcome is not None
        usable = self._browser.usable_after(report.outcome, report.message)
        self._arbiter.end(report, browser_usable=usable)
        self._last_attempt = run.attempt
        self._run = None
        self._idle.set()
        self._revision.bump()
        self.outcomes[report.outcome] = self.outcomes.get(report.outcome, 0) + 1
        event(
            "attempt.ended",
            id=report.id,
            request=run.spec.request,
            outcome=report.outcome,
            done=report.pages.done,
            failed=report.pages.failed,
            seconds=((report.ended_ms or self._wall_clock()) - run.started_ms) / 1000,
            message=report.message or None,
        )
        await self._browser.tidy()

    async def _carried_out(self, run: _Run) -> AttemptReport:
        """Run the attempt to its end; whatever goes wrong here becomes its outcome."""
        try:
            tab = await self._browser.tab(run.spec.site, fresh=run.spec.fresh_context)
            if self._start_attempt is None:
                self._start_attempt = await self._load_crawl()
            run.attempt = self._start_attempt(run.spec, tab, self._revision.touch)
            if run.stop is not None:
                reason, page_grace_ms = run.stop
                run.attempt.request_stop(reason, page_grace_ms=page_grace_ms)
            report = await run.attempt.run()
        except BrowserFailedError as failed:
            return self._failed(run, Outcome.BROWSER_CRASH, str(failed))
        except Exception as error:  # noqa: BLE001 -- a fault of the crawl must not take the slot along
            warn("attempt.raised", exc_info=True, id=run.spec.id)
            return self._failed(run, Outcome.SLOT_LOST, f"the agent failed: {type(error).__name__}: {error}")
        if report.state is AttemptState.ENDED and report.outcome is not None:
            return report
        return self._failed(run, Outcome.SLOT_LOST, "the agent failed: the crawl ended without an outcome")

    def _failed(self, run: _Run, outcome: Outcome, message: str) -> AttemptReport:
        return replace(
            run.report,
            state=AttemptState.ENDED,
            outcome=outcome,
            message=message,
            ended_ms=self._wall_clock(),
        )
