"""What is written into a request's status: one function per move, each returns a merge patch.

Pure: from the request as read and what happened to the patch. A patch never touches what it does not decide.
"""

from typing import Any

from pageslots.api import CrawlRequest
from pageslots.api.meta import set_condition
from pageslots.api.reasons import ConditionStatus, RequestReason, RequestState
from pageslots.api.request import AttemptCount, ConditionType, RequestCondition
from pageslots.control.instants import time_text
from pageslots.control.ports import JsonObject
from pageslots.core.model import Instant, Outcome
from pageslots.wire import AttemptReport

MAX_MESSAGE = 1000


def _conditions(
    request: CrawlRequest, now: Instant, *news: tuple[ConditionType, ConditionStatus, RequestReason, str]
) -> list[JsonObject]:
    conditions = request.status.conditions
    at = time_text(now)
    for type_, status, reason, message in news:
        new = RequestCondition.because(type_, status, reason, at=at, message=message[:MAX_MESSAGE])
        conditions = set_condition(conditions, new)
    return [c.model_dump(mode="json", by_alias=True, exclude_none=True) for c in conditions]


def started(
    request: CrawlRequest, now: Instant, *, attempt_id: str, number: int, pod_uid: str, slot_name: str
) -> JsonObject:
    """Queued → Running."""
    return {
        "state": RequestState.RUNNING.value,
        "slotName": slot_name,
        "observedGeneration": request.metadata.generation,
        "attempt": {
            "id": attempt_id,
            "number": number,
            "podUID": pod_uid,
            "startedTime": time_text(now),
            "finishedTime": None,
            "observedGeneration": request.metadata.generation,
        },
        "firstStartTime": request.status.first_start_time or time_text(now),
        "nextAttemptTime": None,
        "conditions": _conditions(
            request,
            now,
            ("Accepted", ConditionStatus.TRUE, RequestReason.ACCEPTED, ""),
            ("Dispatched", ConditionStatus.TRUE, RequestReason.RUNNING, f"attempt {number} on {slot_name}"),
            ("Finished", ConditionStatus.FALSE, RequestReason.RUNNING, ""),
        ),
    }


def never_started(request: CrawlRequest, now: Instant) -> JsonObject:
    """Running → Queued when the agent has not taken the attempt: costs nothing, the place in the queue stays.

    The attempt's number stays used. A first start that was none is taken back: the deadline does not run yet.
    """
    latest = request.status.attempt
    first = request.status.first_start_time
    taken_back = latest is not None and latest.started_time == first and not request.status.attempts
    return {
        "state": RequestState.QUEUED.value,
        "slotName": None,
        "firstStartTime": None if taken_back else first,
        "conditions": _conditions(
            request,
            now,
            ("Dispatched", ConditionStatus.FALSE, RequestReason.WAITING_FOR_SLOT, "the slot did not take it"),
            ("Finished", ConditionStatus.FALSE, RequestReason.WAITING_FOR_SLOT, "the slot did not take it"),
        ),
    }


def progress(report: AttemptReport | None) -> JsonObject:
    """Counters and result as the agent reported them last; nothing without a report."""
    if report is None:
        return {}
    patch: JsonObject = {
        "pages": {
            "done": report.pages.done,
            "failed": report.pages.failed,
            "blocked": report.pages.blocked,
            "discovered": report.pages.discovered,
        },
        "result": {"records": report.records, "truncated": report.truncated},
    }
    if report.result_uri is not None:
        patch["result"]["uri"] = report.result_uri
    return patch


def _attempts(
    request: CrawlRequest, outcome: Outcome | None, *, progressed: bool, charged: bool
) -> list[JsonObject]:
    """The counts per outcome with one more attempt; progress starts all budgets anew."""
    counts = {count.outcome.value: count for count in request.status.attempts}
    if progressed:
        counts = {name: count.model_copy(update={"since_progress": 0}) for name, count in counts.items()}
    if outcome is not None:
        old = counts.get(outcome.value)
        counts[outcome.value] = AttemptCount(
            outcome=outcome.value,
            count=1 + (old.count if old else 0),
            since_progress=0 if progressed else int(charged) + (old.since_progress if old else 0),
        )
    return [c.model_dump(mode="json", by_alias=True) for c in counts.values()]


def _ended(
    request: CrawlRequest,
    now: Instant,
    outcome: Outcome | None,
    report: AttemptReport | None,
    *,
    progressed: bool,
    charged: bool = True,
) -> JsonObject:
    patch: JsonObject = {
        "attempts": _attempts(request, outcome, progressed=progressed, charged=charged),
        **progress(report),
    }
    if request.status.attempt is not None:
        patch["attempt"] = {"finishedTime": time_text(now)}
    if report is not None:
        patch["bytes"] = request.status.bytes + report.bytes
    return patch


def requeued(
    request: CrawlRequest,
    now: Instant,
    *,
    outcome: Outcome | None,
    progressed: bool,
    next_attempt: Instant | None,
    message: str,
    report: AttemptReport | None,
    charged: bool = True,
    reason: RequestReason | None = None,
) -> JsonObject:
    """Running → Queued for the next attempt; not `charged`: it spends nothing of the budget."""
    if reason is None:
        reason = RequestReason.WAITING_FOR_SLOT if next_attempt is None else RequestReason.RETRY_SCHEDULED
    return {
        **_ended(request, now, outcome, report, progressed=progressed, charged=charged),
        "state": RequestState.QUEUED.value,
        "slotName": None,
        "nextAttemptTime": None if next_attempt is None else time_text(next_attempt),
        "conditions": _conditions(
            request,
            now,
            ("Dispatched", ConditionStatus.FALSE, reason, message),
            ("Finished", ConditionStatus.FALSE, reason, message),
        ),
    }


def finished(
    request: CrawlRequest,
    now: Instant,
    *,
    state: RequestState,
    outcome: Outcome | None,
    reason: RequestReason,
    message: str,
    report: AttemptReport | None,
) -> JsonObject:
    """The verdict: written once, never changed (I4)."""
    was_running = request.status.state is RequestState.RUNNING
    succeeded = ConditionStatus.TRUE if state is RequestState.SUCCEEDED else ConditionStatus.FALSE
    attempt: JsonObject = _ended(request, now, outcome, report, progressed=False) if was_running else {}
    news: list[tuple[ConditionType, ConditionStatus, RequestReason, str]] = [
        ("Finished", ConditionStatus.TRUE, reason, message),
        ("Succeeded", succeeded, reason, message),
    ]
    if not was_running and request.status.attempt is None:
        news.append(("Dispatched", ConditionStatus.FALSE, reason, message))
    return {
        **attempt,
        "state": state.value,
        "slotName": None,
        "observedGeneration": request.metadata.generation,
        "finishTime": time_text(now),
        "nextAttemptTime": None,
        "conditions": _conditions(request, now, *news),
    }


def waiting(request: CrawlRequest, now: Instant, reason: RequestReason, message: str) -> JsonObject:
    """Why a queued request waits."""
    return {
        "state": request.status.state.value,
        "observedGeneration": request.metadata.generation,
        "conditions": _conditions(
            request,
            now,
            ("Dispatched", ConditionStatus.FALSE, reason, message),
            ("Finished", ConditionStatus.FALSE, reason, message),
        ),
    }


def not_accepted(request: CrawlRequest, now: Instant, reason: RequestReason, message: str) -> JsonObject:
    """Its pool or country does not exist (yet)."""
    return {
        "state": RequestState.QUEUED.value,
        "observedGeneration": request.metadata.generation,
        "conditions": _conditions(
            request,
            now,
            ("Accepted", ConditionStatus.FALSE, reason, message),
            ("Dispatched", ConditionStatus.FALSE, reason, message),
            ("Finished", ConditionStatus.FALSE, reason, message),
        ),
    }


def condition_of(request: CrawlRequest, type_: str) -> Any:
    """The condition of that type, or None."""
    return next((c for c in request.status.conditions if c.type == type_), None)
