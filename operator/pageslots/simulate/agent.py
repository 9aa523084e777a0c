"""A slot agent without a browser: the real agent's arbiter, and attempts that only take time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from pageslots.control.ports import AgentRefusedError, AgentUnreachableError, Clock, PodOrder
from pageslots.simulate.courses import AttemptCourse, PodCourse, Script
from pageslots.wire import (
    AgentStatus,
    AttemptReport,
    AttemptSpec,
    AttemptState,
    DrainOrder,
    Failure,
    Outcome,
    PageCounts,
    Phase,
    StopOrder,
    StopReason,
)
from pageslots_agent.arbiter import Admission, Arbiter, RefusedError, no_such_attempt

DecidedT = TypeVar("DecidedT")

_NEEDS_NEW_BROWSER = frozenset({Outcome.BROWSER_CRASH, Outcome.OUT_OF_MEMORY})
_PROGRESS_MS = 1_000


@dataclass(frozen=True, slots=True)
class _Run:
    """The attempt under way: what it was asked, how it will go, since when."""

    spec: AttemptSpec
    course: AttemptCourse
    started_ms: int
    stop_reason: StopReason | None = None


class SimulatedAgent:
    """Obeys wire.py as the real agent does. Everything it does happens in timers of the running loop.

    `on_attempt(spec, report)`: called when one starts (report None) and when it ends. `on_death(message,
    out_of_memory)`: the course says that the pod dies.
    """

    def __init__(
        self,
        order: PodOrder,
        course: PodCourse,
        script: Script,
        clock: Clock,
        *,
        on_attempt: Callable[[AttemptSpec, AttemptReport | None], None],
        on_death: Callable[[str, bool], None],
    ) -> None:
        self.order = order
        self.arbiter = Arbiter(order.config.pod_uid)
        self.alive = True
        self._course = course
        self._script = script
        self._clock = clock
        self._on_attempt = on_attempt
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._run: _Run | None = None
        self._rev = 1
        self._changed = asyncio.Event()
        self._status = AgentStatus(rev=1, pod_uid=order.config.pod_uid, phase=Phase.PREPARING)
        self._pages = 0
        self._bytes = 0
        self._records: dict[str, tuple[bytes, ...]] = {}
        self._prepare()

    @property
    def status(self) -> AgentStatus:
        """The status as of now."""
        attempt = self._report() if self._run is not None else self.arbiter.unacknowledged
        return replace(
            self._status,
            rev=self._rev,
            phase=self.arbiter.phase,
            epoch=self.arbiter.epoch,
            attempt=attempt,
            pages=self._pages,
            bytes=self._bytes,
        )

    async def wait_status(self, after: int, wait_seconds: float) -> AgentStatus:
        """The status once its revision is above `after`, or when `wait_seconds` are over."""
        try:
            async with asyncio.timeout(wait_seconds):
                while self._rev <= after and self.alive:
                    await self._changed.wait()
        except TimeoutError:
            pass  # nothing changed: the status is what it was, and that is the answer
        if not self.alive:
            raise AgentUnreachableError(f"{self.order.name} is gone")
        return self.status

    def put_attempt(self, spec: AttemptSpec) -> AttemptReport:
        """Start it, or tell how it stands; AgentRefusedError."""
        if self._decide(lambda: self.arbiter.admit(spec)) is Admission.KNOWN:
            return self._known(spec.id)
        course = self._script.attempt(self.order, spec)
        limits = [limit for limit in (spec.attempt_ms, spec.deadline_ms) if limit]
        if limits and course.duration_ms > min(limits):
            message = f"not done within {min(limits)} ms"
            course = replace(course, duration_ms=min(limits), outcome=Outcome.TIMEOUT, message=message)
        self._run = _Run(spec, course, self._clock.now_ms())
        self._records = {spec.id: course.records}
        self._after(course.duration_ms, self._die if course.pod_dies else self._end)
        self._on_attempt(spec, None)
        self._bump()
        return self._report()

    def acknowledge(self, attempt_id: str) -> None:
        """The report has been read; unknown ids are fine; AgentRefusedError while it runs."""
        if self.arbiter.is_running(attempt_id) or self.arbiter.ended(attempt_id) is not None:
            self._decide(lambda: self.arbiter.acknowledge(attempt_id))
            self._bump()

    def stop(self, attempt_id: str, order: StopOrder) -> AttemptReport:
        """End the attempt after the page under way; AgentRefusedError."""
        if self._decide(lambda: self.arbiter.check_stop(attempt_id, order)):
            self._stop(order.reason)
        return self._known(attempt_id)

    def drain(self, order: DrainOrder) -> AgentStatus:
        """Take nothing any more; AgentRefusedError while an attempt runs."""
        self._decide(lambda: self.arbiter.drain(order))
        self._bump()
        return self.status

    def records(self, attempt_id: str, offset: int) -> bytes:
        """JSON Lines of the current or last attempt; AgentRefusedError for another one."""
        records = self._records.get(attempt_id)
        if records is None:
            raise AgentRefusedError(no_such_attempt(attempt_id).refusal)
        return b"".join(line + b"\n" for line in records[offset:])

    def shut_down(self) -> int:
        """SIGTERM: no new attempt, the one under way ends soon. Milliseconds until the agent has ended."""
        self.arbiter.shut_down()
        rest_ms = 0
        if self._run is not None:
            rest_ms = min(self._run.course.page_ms, max(self.order.grace_ms - 4_000, 0))
            self._stop(StopReason.SHUTDOWN)
        self._bump()
        return rest_ms + self._course.end_ms

    def end(self) -> None:
        """The process is gone: nothing happens any more, and nobody gets an answer."""
        self.alive = False
        self._cancel_timer()
        self._changed.set()

    def lose_browser(self) -> None:
        """An idle slot's browser died: it prepares anew."""
        self.arbiter.browser_lost()
        self._prepare()

    def _decide(self, decide: Callable[[], DecidedT]) -> DecidedT:
        try:
            return decide()
        except RefusedError as refused:
            raise AgentRefusedError(refused.refusal) from None

    def _known(self, attempt_id: str) -> AttemptReport:
        if self._run is not None and self._run.spec.id == attempt_id:
            return self._report()
        ended = self.arbiter.ended(attempt_id)
        assert ended is not None, "the arbiter knew the attempt a moment ago"
        return ended

    def _report(self) -> AttemptReport:
        assert self._run is not None
        spec, course = self._run.spec, self._run.course
        elapsed_ms = self._clock.now_ms() - self._run.started_ms
        return AttemptReport(
            id=spec.id,
            request_uid=spec.request_uid,
            request=spec.request,
            state=AttemptState.RUNNING,
            pages=PageCounts(discovered=course.counts.discovered),
            progress=elapsed_ms // _PROGRESS_MS if course.progresses else 0,
            started_ms=self._run.started_ms,
            stop_reason=self._run.stop_reason,
        )

    def _prepare(self) -> None:
        if self.arbiter.phase is Phase.PREPARING:
            self._after(self._course.prepare_ms, self._prepared)
            self._bump()

    def _prepared(self) -> None:
        now_ms = self._clock.now_ms()
        if self._course.failure is None:
            self.arbiter.prepared()
            self._status = replace(self._status, ready_ms=self._status.ready_ms or now_ms)
        else:
            self.arbiter.gave_up()
            failure = Failure(self._course.failure, self._course.message, now_ms)
            failures = self.order.config.give_up_after_failures
            self._status = replace(self._status, consecutive_failures=failures, last_failure=failure)
        self._bump()

    def _stop(self, reason: StopReason) -> None:
        assert self._run is not None
        if self._run.stop_reason is not None or not self._run.course.progresses:
            return  # stopping already; or it hangs and hears nothing
        stopped = replace(
            self._run.course, outcome=Outcome.STOPPED, message=f"stopped: {reason.value}", pod_dies=False
        )
        left_ms = self._run.started_ms + self._run.course.duration_ms - self._clock.now_ms()
        if left_ms > stopped.page_ms:
            self._run = replace(self._run, course=stopped, stop_reason=reason)
            self._after(stopped.page_ms, self._end)
            self._bump()

    def _end(self) -> None:
        assert self._run is not None
        spec, course = self._run.spec, self._run.course
        stopped = self._run.stop_reason is not None
        report = replace(
            self._report(),
            state=AttemptState.ENDED,
            outcome=course.outcome,
            message=course.message,
            pages=PageCounts(discovered=course.counts.discovered) if stopped else course.counts,
            new_ok_pages=0 if stopped else course.new_ok_pages,
            start_pages_ok=0 if stopped else course.start_pages_ok,
            all_tried_blocked=course.all_tried_blocked,
            retry_after_ms=course.retry_after_ms,
            records=len(course.records),
            bytes=course.bytes,
            result_uri=spec.output_uri,
            ended_ms=self._clock.now_ms(),
        )
        self._run, self._timer = None, None
        self._pages += course.counts.done + course.counts.failed + course.counts.blocked
        self._bytes += course.bytes
        self._status = replace(
            self._status,
            warm_site=spec.site,
            recycle_due=self._pages >= self.order.config.recycle_pages,
        )
        self.arbiter.end(report, browser_usable=course.outcome not in _NEEDS_NEW_BROWSER)
        self._on_attempt(spec, report)
        self._bump()
        self._prepare()

    def _die(self) -> None:
        assert self._run is not None
        self._on_death(self._run.course.message, self._run.course.out_of_memory)

    def _bump(self) -> None:
        self._rev += 1
        self._changed.set()
        self._changed.clear()  # wakes everybody who waits now, and nobody later

    def _after(self, delay_ms: int, do: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(delay_ms / 1_000, do)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
