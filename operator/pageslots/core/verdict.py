"""What the end of an attempt means for its request (DESIGN section 9, outcomes and budgets).

From the request and what the agent reported, or from the loss of its slot; for `plan`. A verdict is given once:
only a Running request gets one, and only for the attempt that it names (invariant I4).
"""

from pageslots.core.actions import FinishRequest, RequeueRequest
from pageslots.core.model import SECOND, Instant, Outcome, Report, Request, RequestState

Verdict = FinishRequest | RequeueRequest

CLOSES_SLOT = frozenset(
    {Outcome.BLOCKED, Outcome.PROXY_ERROR, Outcome.BROWSER_CRASH, Outcome.OUT_OF_MEMORY, Outcome.SLOT_LOST}
)
"""After these the browser is closed: a new exit, or a new process, is due."""

FIRST_RETRY_MS = 5 * SECOND
LONGEST_RETRY_MS = 300 * SECOND
"""Pauses of one request between attempts that its site, or its slowness, ended."""

NO_SUCH_POOL = "NoSuchPool"


def judge(request: Request, report: Report, now: Instant, *, pool_gone: bool = False) -> Verdict:
    """The verdict on an attempt that ended and told how. `report.ended` must be True."""
    outcome = report.outcome if report.outcome is not None else Outcome.SLOT_LOST
    match outcome:
        case Outcome.OK:
            return _all_pages_done(request, report)
        case Outcome.NOT_FOUND:
            return _failed(request, outcome, "NotFound", report.message or "every start page is missing")
        case Outcome.BAD_REQUEST:
            return _failed(request, outcome, "BadRequest", report.message)
        case Outcome.STOPPED:
            return _stopped(request, report, pool_gone=pool_gone)
        case Outcome.TIMEOUT if report.deadline:
            return deadline_exceeded(request, outcome)
        case _:
            return _another_attempt(request, outcome, report, now)


def _all_pages_done(request: Request, report: Report) -> Verdict:
    """Success needs a start page that went well, and no more failed pages than allowed."""
    tried = report.done + report.failed
    if report.start_pages_ok == 0:
        return _failed(
            request,
            Outcome.OK,
            "NoStartPageSucceeded",
            report.message or f"no start page succeeded; {report.failed} of {tried} pages failed",
        )
    if report.failed * 100 > request.failed_pages_percent * tried:
        return _failed(
            request,
            Outcome.OK,
            "TooManyFailedPages",
            f"{report.failed} of {tried} pages failed, more than failedPagesPercent {request.failed_pages_percent}",
        )
    return FinishRequest(
        request.uid, request.seen, RequestState.SUCCEEDED, Outcome.OK, "AllPagesDone", _done_text(report)
    )


def _done_text(report: Report) -> str:
    if report.failed == 0:
        return f"{report.done} pages done"
    return f"{report.done} pages done, {report.failed} failed" + (
        f": {report.message}" if report.message else ""
    )


def _stopped(request: Request, report: Report, *, pool_gone: bool) -> Verdict:
    """We asked the attempt to end: for good, or to go back to the queue."""
    if report.deadline:
        return deadline_exceeded(request, Outcome.TIMEOUT)
    if request.stop or request.deleted:
        return stopped(request, Outcome.STOPPED)
    message = f"{NO_SUCH_POOL}: the pool is gone" if pool_gone else report.message or "suspended"
    return RequeueRequest(request.uid, request.seen, None, report.new_ok_pages > 0, None, message)


def _another_attempt(request: Request, outcome: Outcome, report: Report, now: Instant) -> Verdict:
    progressed = report.new_ok_pages > 0
    if request.stop or request.deleted:
        return stopped(request, outcome)
    charged = not progressed and (outcome is not Outcome.BLOCKED or report.all_tried_blocked)
    spent = spent_after(request, outcome) if charged else 0
    message = report.message or outcome.value
    if charged and spent > budget(request, outcome):
        return _failed(
            request, outcome, outcome.value, f"{message} (attempt {spent} in a row without a good page)"
        )
    pause = _pause_ms(outcome, spent)
    return RequeueRequest(
        request.uid,
        request.seen,
        outcome,
        progressed,
        Instant(now + pause) if pause else None,
        message,
        charged=charged,
    )


def lost(request: Request, now: Instant, *, out_of_memory: bool, message: str) -> Verdict:
    """The slot of a running attempt is no more, and nothing was heard of its end."""
    outcome = Outcome.OUT_OF_MEMORY if out_of_memory else Outcome.SLOT_LOST
    assert request.attempt is not None
    report = Report(request.attempt.id, request.uid, ended=True, outcome=outcome, message=message)
    return _another_attempt(request, outcome, report, now)


def never_accepted(request: Request, message: str) -> RequeueRequest:
    """The agent has certainly not taken the attempt: back to the queue, free, at its old place."""
    return RequeueRequest(
        request.uid, request.seen, None, progressed=False, next_attempt=None, message=message
    )


def stopped(request: Request, outcome: Outcome | None) -> FinishRequest:
    """By spec.stop (or deletion)."""
    return FinishRequest(
        request.uid, request.seen, RequestState.STOPPED, outcome, "Stopped", "stopped as asked by spec.stop"
    )


def deadline_exceeded(request: Request, outcome: Outcome | None) -> FinishRequest:
    """The deadline of the whole request has passed."""
    seconds = request.deadline_ms // SECOND
    return _failed(request, outcome, "DeadlineExceeded", f"not finished {seconds} s after its first start")


def queue_timeout(request: Request, limit_ms: int, reason: str, message: str) -> FinishRequest:
    """It has waited for its first start for longer than it may. `reason`: QueueTimeout or what was missing."""
    return _failed(request, None, reason, f"{message} for {limit_ms // SECOND} s")


def _failed(request: Request, outcome: Outcome | None, reason: str, message: str) -> FinishRequest:
    return FinishRequest(request.uid, request.seen, RequestState.FAILED, outcome, reason, message)


def spent_after(request: Request, outcome: Outcome) -> int:
    """Attempts in a row without a new Ok page that ended in this way, the latest included."""
    kinds = _KINDS.get(outcome, (outcome,))
    return 1 + sum(request.since_progress.get(kind, 0) for kind in kinds)


_KINDS = {
    Outcome.BROWSER_CRASH: (Outcome.BROWSER_CRASH, Outcome.OUT_OF_MEMORY),
    Outcome.OUT_OF_MEMORY: (Outcome.BROWSER_CRASH, Outcome.OUT_OF_MEMORY),
}


def budget(request: Request, outcome: Outcome) -> int:
    """How many such attempts are retried. One without progress that ran out of time is counted like a SiteError."""
    budgets = request.budgets
    match outcome:
        case Outcome.BLOCKED:
            return budgets.blocked
        case Outcome.PROXY_ERROR:
            return budgets.proxy_error
        case Outcome.BROWSER_CRASH | Outcome.OUT_OF_MEMORY:
            return budgets.crash
        case Outcome.SLOT_LOST:
            return budgets.slot_lost
        case _:
            return budgets.site_error


def _pause_ms(outcome: Outcome, spent: int) -> int:
    """The request's own pause: Blocked and ProxyError have back-offs of their own, lost slots are nobody's fault."""
    if outcome not in (Outcome.SITE_ERROR, Outcome.TIMEOUT) or spent == 0:
        return 0
    return min(LONGEST_RETRY_MS, FIRST_RETRY_MS << min(spent - 1, 10))
