"""What is due on a request by itself: its attempt has ended, is lost, or should end; its patience is over.

From the request, its pod and its agent's word; for `plan`. Half-done things come first: an attempt that a request
names and the agent doesn't have is sent again (DESIGN section 8).
"""

from dataclasses import dataclass

from pageslots.core.actions import Deed, FinishRequest, SendAttempt, StopAttempt
from pageslots.core.model import (
    EPOCH,
    Agent,
    AgentPhase,
    Gone,
    Instant,
    Pod,
    PodPhase,
    PoolSettings,
    Report,
    Request,
)
from pageslots.core.sweeps import end_of
from pageslots.core.verdict import (
    Verdict,
    deadline_exceeded,
    judge,
    lost,
    never_accepted,
    queue_timeout,
    stopped,
)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All that is known about the attempt that a Running request names.

    `pod`, `agent`: of the attempt's pod UID. `last_words`: its final report, kept from an agent that is gone.
    """

    request: Request
    pod: Pod | None
    gone: Gone | None
    agent: Agent | None
    last_words: Report | None
    starting: bool  # the deed that started it is still under way

    @property
    def report(self) -> Report | None:
        """What is known of this attempt from the agent."""
        attempt = self.request.attempt
        told = None if self.agent is None else self.agent.report
        if told is not None and attempt is not None and told.id == attempt.id:
            return told
        return self.last_words


@dataclass(frozen=True, slots=True)
class Outlook:
    """What should be done now, or when to look again. `report`: what the verdict rests on, if an agent told."""

    deed: Deed | None = None
    again: Instant | None = None
    report: Report | None = None


def look_at_running(facts: RunFacts, settings: PoolSettings, since: Instant, now: Instant) -> Outlook:
    """What is due on a Running request."""
    request, report, pod = facts.request, facts.report, facts.pod
    if request.attempt is None:
        return Outlook(never_accepted(request, "it names no attempt"))
    if report is not None and report.ended:
        return Outlook(judge(request, report, now, pool_gone=settings.deleted), report=report)
    if pod is None or pod.phase is PodPhase.TERMINATED:
        return _look_at_lost(facts, settings, since, now)
    if pod.deleting is not None or facts.starting:
        return Outlook()
    return _look_at_unheard(facts) if report is None else _look_at_wishes(request, settings, now)


def _look_at_lost(facts: RunFacts, settings: PoolSettings, since: Instant, now: Instant) -> Outlook:
    """The pod has ended, or is gone: then nothing of it runs any more after its grace period (invariant I3)."""
    request, pod, gone = facts.request, facts.pod, facts.gone
    if pod is not None:
        message = pod.message or "its pod has ended"
        return Outlook(lost(request, now, out_of_memory=pod.out_of_memory, message=message))
    if gone is not None:
        at = end_of(now if gone.at is None else gone.at, terminated=gone.terminated, settings=settings)
    else:
        assert request.attempt is not None
        at = end_of(max(since, request.attempt.started), terminated=False, settings=settings)
    if at > now:
        return Outlook(again=at)
    out_of_memory = gone is not None and gone.out_of_memory
    return Outlook(lost(request, now, out_of_memory=out_of_memory, message="its pod is gone"))


def _look_at_unheard(facts: RunFacts) -> Outlook:
    """The agent has not spoken of the attempt: give it (again), or learn that it never will take it."""
    agent, request = facts.agent, facts.request
    assert request.attempt is not None
    if agent is None:
        return Outlook()
    if agent.phase in (AgentPhase.DRAINED, AgentPhase.GAVE_UP):
        return Outlook(never_accepted(request, "the slot closed before it took the attempt"))
    if agent.phase is not AgentPhase.READY:
        return Outlook()
    attempt = request.attempt
    return Outlook(SendAttempt(request.uid, attempt.id, attempt.slot, attempt.pod))


def _look_at_wishes(request: Request, settings: PoolSettings, now: Instant) -> Outlook:
    """The attempt runs: whether it should end early. The agent keeps the deadlines too; this is the second line."""
    attempt = request.attempt
    assert attempt is not None
    wishes: list[tuple[Instant, str]] = []
    if request.stop or request.deleted:
        wishes.append((EPOCH, "Stopped"))
    if settings.deleted:
        wishes.append((EPOCH, "Shutdown"))
    if request.suspended:
        wishes.append((EPOCH, "Suspended"))
    begun = attempt.started if request.first_started is None else request.first_started
    wishes.append((Instant(begun + request.deadline_ms + settings.dispatch_ms), "Deadline"))
    if request.resumable:
        wishes.append((Instant(attempt.started + settings.attempt_ms + settings.dispatch_ms), "Suspended"))
    at, reason = min(wishes, key=lambda wish: wish[0])
    if at > now:
        return Outlook(again=at)
    return Outlook(StopAttempt(attempt.id, attempt.slot, attempt.pod, reason))


def look_at_queued(request: Request) -> tuple[Instant, FinishRequest] | None:
    """When a queued request ends without (another) attempt, and how; None: never by itself."""
    if request.stop:
        return EPOCH, stopped(request, None)
    ends: list[tuple[Instant, FinishRequest]] = []
    if request.first_started is not None:
        ends.append((Instant(request.first_started + request.deadline_ms), deadline_exceeded(request, None)))
    elif request.queue_timeout_ms is not None and not request.suspended:
        at = Instant(request.created + request.queue_timeout_ms)
        ends.append((at, queue_timeout(request, request.queue_timeout_ms, "QueueTimeout", "not started")))
    return min(ends, key=lambda end: end[0], default=None)


__all__ = ["Outlook", "RunFacts", "Verdict", "look_at_queued", "look_at_running"]
