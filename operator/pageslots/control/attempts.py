"""Attempts: written into the request first, then given to the agent; ended by a verdict (DESIGN section 8).

A crash between any two steps is completed by the next plan: the request names an attempt, and the same id given
to the agent again is the same attempt.
"""

from pageslots.api import CrawlRequest
from pageslots.api.reasons import RequestReason, RequestState
from pageslots.control import request_status
from pageslots.control.context import Context
from pageslots.control.names import Key, browser_name
from pageslots.control.orders import attempt_spec
from pageslots.control.ports import (
    AgentClient,
    AgentRefusedError,
    AgentUnreachableError,
    JsonObject,
    Kind,
    NotFoundError,
    PodView,
)
from pageslots.core import actions
from pageslots.core.index import Index
from pageslots.core.model import AttemptId, Instant, PodUid, RequestUid
from pageslots.wire import AttemptReport, RefusalCode, StopOrder, StopReason


def attempt_id(request: RequestUid, number: int) -> AttemptId:
    """The id that keys everything the agent does for an attempt."""
    return AttemptId(f"{request}-{number}")


class Attempts:
    """Dispatch and verdicts of one pool."""

    def __init__(self, context: Context, pool: Key, index: Index) -> None:
        self._context = context
        self._pool = pool
        self._index = index

    def _now(self) -> Instant:
        return Instant(self._context.clock.now_ms())

    def _request(self, uid: RequestUid) -> CrawlRequest | None:
        obj = self._context.cache.by_uid(uid)
        return None if obj is None else CrawlRequest.model_validate(obj)

    async def start(self, deed: actions.StartAttempt) -> None:
        """Queued → Running, as seen; then the attempt to the agent. The loser of a race changes nothing (D3)."""
        request, slot = self._request(deed.request), self._index.slots.get(deed.slot)
        if request is None or slot is None:
            return
        id_ = attempt_id(deed.request, deed.number)
        patch = request_status.started(
            request,
            self._now(),
            attempt_id=id_,
            number=deed.number,
            pod_uid=deed.pod,
            slot_name=slot.name,
        )
        await self._write(request, patch, version=deed.seen)
        await self._give(deed.request, id_, deed.pod)

    async def send(self, deed: actions.SendAttempt) -> None:
        """Give the agent an attempt that the request names already."""
        await self._give(deed.request, deed.attempt, deed.pod)

    async def _give(self, uid: RequestUid, id_: AttemptId, pod_uid: PodUid) -> None:
        request, pool = self._request(uid), self._context.pool(self._pool)
        if request is None or pool is None or request.status.attempt is None:
            return
        if request.status.state is not RequestState.RUNNING or request.status.attempt.id != id_:
            return  # the verdict was quicker
        pod = await self._pod(pod_uid)
        if pod is None:
            return  # the plan sees that the pod is gone, and decides
        fact = self._index.requests[uid]
        begun = fact.first_started if fact.first_started is not None else self._now()
        spec = attempt_spec(
            self._context,
            pool,
            request,
            site=fact.site,
            attempt_id=id_,
            number=request.status.attempt.number,
            pod_uid=pod_uid,
            left_ms=max(1, fact.deadline_ms - (self._now() - begun)),
        )
        agent = self._context.runtime.agent(pod)
        self._context.leadership.check()
        try:
            await agent.put_attempt(spec)
        except AgentRefusedError as refused:
            await self._refused(request, pod, refused)
            return
        self._context.recorder.event(
            "info",
            "attempt.start",
            request=request.name,
            country=request.spec.country,
            slot=request.status.slot_name,
            number=request.status.attempt.number,
        )
        self._context.intake.agent_said(pod, await agent.status(after=-1, wait_seconds=0))

    async def _refused(self, request: CrawlRequest, pod: PodView, refused: AgentRefusedError) -> None:
        """The agent has certainly not taken it: back to the queue, free; and look at what the agent is doing."""
        context = self._context
        context.recorder.event(
            "warning", "attempt.refused", request=request.name, pod=pod.name, why=str(refused)
        )
        if refused.refusal.code is RefusalCode.BAD_REQUEST:
            patch = request_status.finished(
                request,
                self._now(),
                state=RequestState.FAILED,
                outcome=None,
                reason=RequestReason.BAD_REQUEST,
                message=refused.refusal.message,
                report=None,
            )
        else:
            patch = request_status.never_started(request, self._now())
        await self._write(request, patch, version=request.metadata.resource_version)
        try:
            status = await context.runtime.agent(pod).status(after=-1, wait_seconds=0)
        except AgentUnreachableError:
            return  # its watcher goes on asking
        context.intake.agent_said(pod, status)

    async def stop(self, deed: actions.StopAttempt) -> None:
        """Ask the agent to end an attempt; its status tells when it has."""
        pod = await self._pod(deed.pod)
        if pod is None:
            return
        agent = self._context.runtime.agent(pod)
        if not self._is_named(deed.attempt) and await self._is_named_after_all(agent, deed.attempt):
            return  # our list of requests was not complete
        order = StopOrder(
            reason=StopReason(deed.reason), epoch=self._context.leadership.epoch(), pod_uid=deed.pod
        )
        self._context.leadership.check()
        try:
            await agent.stop(deed.attempt, order)
        except AgentRefusedError as refused:
            if refused.refusal.code is not RefusalCode.NO_SUCH_ATTEMPT:
                raise AgentUnreachableError(str(refused)) from refused
        self._context.intake.agent_said(pod, await agent.status(after=-1, wait_seconds=0))

    def _is_named(self, attempt: AttemptId) -> bool:
        return any(r.attempt is not None and r.attempt.id == attempt for r in self._index.running_requests())

    async def _is_named_after_all(self, agent: AgentClient, attempt: AttemptId) -> bool:
        """A live look at the request of an attempt that no known request names; what is found becomes a fact."""
        report = (await agent.status(after=-1, wait_seconds=0)).attempt
        if report is None or report.id != attempt:
            return True  # it has ended by itself
        name = report.request.rpartition("/")[2]
        try:
            found = await self._context.api.get(Kind.REQUEST, self._pool.namespace, name)
        except NotFoundError:
            return False
        self._context.intake.observe(Kind.REQUEST, found)
        return self._is_named(attempt)

    async def requeue(self, deed: actions.RequeueRequest) -> None:
        """Running → Queued, as seen."""
        request = self._request(deed.request)
        if request is None:
            return
        now = self._now()
        if deed.outcome is None and not deed.progressed and self._report(request) is None:
            patch = request_status.never_started(request, now)
        else:
            patch = request_status.requeued(
                request,
                now,
                outcome=deed.outcome,
                progressed=deed.progressed,
                charged=deed.charged,
                next_attempt=deed.next_attempt,
                message=deed.message,
                report=self._report(request),
            )
        await self._write(request, patch, version=deed.seen)
        self._context.recorder.event(
            "info",
            "attempt.again",
            request=request.name,
            outcome=deed.outcome.value if deed.outcome else "NotStarted",
            message=deed.message,
        )

    async def finish(self, deed: actions.FinishRequest) -> None:
        """The verdict, as seen."""
        request = self._request(deed.request)
        if request is None or request.status.is_finished:
            return
        patch = request_status.finished(
            request,
            self._now(),
            state=RequestState(deed.state.value),
            outcome=deed.outcome,
            reason=RequestReason(deed.reason),
            message=deed.message,
            report=self._report(request),
        )
        await self._write(request, patch, version=deed.seen)
        self._context.recorder.event(
            "info" if deed.state.value == "Succeeded" else "warning",
            "request.finished",
            request=request.name,
            country=request.spec.country,
            state=deed.state.value,
            reason=deed.reason,
            message=deed.message,
        )

    def _report(self, request: CrawlRequest) -> AttemptReport | None:
        latest = request.status.attempt
        return None if latest is None else self._context.reports.get(latest.id)

    async def _pod(self, uid: PodUid) -> PodView | None:
        """The live pod of that UID; what is found instead becomes a fact."""
        number = self._index.pod_number(uid)
        if number is None:
            return None
        name = browser_name(self._pool.name, number)
        try:
            pod = await self._context.runtime.get(self._pool.namespace, name)
        except NotFoundError:
            self._index.drop_pod(number, uid, terminated=self._context.runtime.absence_is_end)
            return None
        if pod.uid != uid:
            self._context.intake.pod_seen(pod)
            return None
        return pod

    async def _write(self, request: CrawlRequest, patch: JsonObject, *, version: str) -> None:
        context = self._context
        context.leadership.check()
        written = await context.api.patch(
            Kind.REQUEST,
            request.metadata.namespace,
            request.name,
            {"status": patch},
            version=version,
            status=True,
        )
        context.intake.observe(Kind.REQUEST, written)
