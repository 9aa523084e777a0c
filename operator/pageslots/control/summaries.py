"""A pool's and a slot's status, and why a request waits, as the index tells them: pure, from facts to JSON.

A field that has no value is named with None: that is what takes it out of a status.
"""

from typing import Any

from pageslots.api.meta import set_condition
from pageslots.api.pool import PoolCondition
from pageslots.api.reasons import ConditionStatus, PoolReason, SlotReason
from pageslots.api.slot import SlotCondition
from pageslots.control.instants import time_text
from pageslots.control.names import POOL_LABEL, browser_name
from pageslots.control.ports import JsonObject
from pageslots.core.counting import counts
from pageslots.core.index import Index
from pageslots.core.model import Agent, DrainReason, Instant, Outcome, Request, SlotState, SlotUid
from pageslots.core.slots import Role, SlotView
from pageslots.core.waiting import why_waiting

MAX_MESSAGE = 1000
MAX_BACKOFFS = 100

_DRAIN_REASONS = {
    DrainReason.YIELD_PERMIT: SlotReason.YIELD_PERMIT,
    DrainReason.ALLOCATION: SlotReason.REALLOCATED,
    DrainReason.SHRINK: SlotReason.CAP_LOWERED,
    DrainReason.ROLLOUT: SlotReason.ROLLOUT,
    DrainReason.RECYCLE: SlotReason.RECYCLING,
    DrainReason.POOL_GONE: SlotReason.POOL_DELETED,
}
_FAILURES = {
    Outcome.PROXY_ERROR: SlotReason.PROXY_ERROR,
    Outcome.SITE_ERROR: SlotReason.SITE_ERROR,
    Outcome.BROWSER_CRASH: SlotReason.BROWSER_CRASH,
    Outcome.OUT_OF_MEMORY: SlotReason.OUT_OF_MEMORY,
    Outcome.SLOT_LOST: SlotReason.SLOT_LOST,
}


def slot_status(index: Index, uid: SlotUid, obj: JsonObject, now: Instant) -> JsonObject:
    """The status of one page slot."""
    view = index.slot_view(uid, now)
    if view is None:
        return {}
    facts = view.facts
    pod, agent = facts.pod, facts.agent
    running = None if facts.named is None else index.requests.get(facts.named)
    failing = agent is not None and agent.failure is not None and agent.consecutive_failures > 0
    status: JsonObject = {
        "state": view.state.value,
        "permit": facts.number,
        "podName": None if facts.number is None else browser_name(index.settings.name, facts.number),
        "podUID": None if pod is None else pod.uid,
        "request": None if running is None else running.name,
        "site": None if agent is None else agent.warm_site,
        "readyTime": _time(None if agent is None else agent.ready_since),
        "idleSince": _time(agent.idle_since) if agent is not None and view.role is Role.FREE else None,
        "consecutiveFailures": 0 if agent is None else agent.consecutive_failures,
    }
    if agent is not None and failing:
        status["lastFailure"] = {
            "outcome": agent.failure.value if agent.failure is not None else None,
            "message": agent.failure_message[:MAX_MESSAGE],
            "time": time_text(agent.contact),
        }
        known = (obj.get("status") or {}).get("lastFailure") or {}
        if all(known.get(key) == status["lastFailure"][key] for key in ("outcome", "message")):
            status["lastFailure"]["time"] = known.get("time", time_text(now))
    status["conditions"] = _conditions(
        SlotCondition,
        obj,
        SlotCondition.because("Ready", *_ready(view, agent), at=time_text(now), message=_message(view)),
        SlotCondition.because("Draining", *_draining(view), at=time_text(now)),
    )
    return status


def _time(at: Instant | None) -> str | None:
    return None if at is None else time_text(at)


def _ready(view: SlotView, agent: Agent | None) -> tuple[ConditionStatus, SlotReason]:
    match view.state:
        case SlotState.RUNNING:
            return ConditionStatus.TRUE, SlotReason.RUNNING
        case SlotState.READY:
            return ConditionStatus.TRUE, SlotReason.PAGE_READY
        case SlotState.CLOSING:
            return (
                ConditionStatus.FALSE,
                SlotReason.STUCK_TERMINATING if view.facts.stuck else SlotReason.CLOSING,
            )
        case SlotState.PREPARING:
            failure = agent.failure if agent is not None and agent.consecutive_failures else None
            reason = (
                SlotReason.PREPARING
                if failure is None
                else _FAILURES.get(failure, SlotReason.PREPARATION_FAILED)
            )
            return ConditionStatus.FALSE, reason
        case SlotState.NO_PAGE:
            return ConditionStatus.FALSE, SlotReason.NOT_NEEDED


def _message(view: SlotView) -> str:
    agent, pod = view.facts.agent, view.facts.pod
    if view.state is SlotState.PREPARING and agent is not None and agent.consecutive_failures:
        return agent.failure_message[:MAX_MESSAGE]
    return "" if pod is None else pod.message[:MAX_MESSAGE]


def _draining(view: SlotView) -> tuple[ConditionStatus, SlotReason]:
    drain = view.facts.drain
    if drain is None or view.state is SlotState.NO_PAGE:
        return ConditionStatus.FALSE, SlotReason.NOT_DRAINING
    return ConditionStatus.TRUE, _DRAIN_REASONS.get(drain.reason, SlotReason.CLOSING)


def _conditions(kind: Any, obj: JsonObject, *news: Any) -> list[JsonObject]:
    """The object's conditions with the new ones in their places; unchanged ones keep their time."""
    known = tuple(kind.model_validate(c) for c in (obj.get("status") or {}).get("conditions") or ())
    for new in news:
        known = set_condition(known, new)
    return [c.model_dump(mode="json", by_alias=True, exclude_none=True) for c in known]


def pool_status(index: Index, obj: JsonObject, now: Instant) -> JsonObject:
    """The status of a pool."""
    by_country = counts(index, now)
    settings = index.settings
    room = max(0, settings.sample_size - index.queues.unfinished)
    finished = index.memory.finished_lately(Instant(now - settings.window_ms), room)
    rows = [
        {
            "code": code,
            "score": settings.unfinished_weight * count.unfinished
            + settings.finished_weight * finished.get(code, 0),
            "allocated": count.allocated,
            "wanted": count.wanted,
            "ready": count.ready,
            "running": count.running,
            "queued": count.queued,
            "oldestQueuedTime": _time(count.oldest_queued),
        }
        for code, count in sorted(by_country.items())
        if code in index.settings.countries
    ]
    ready, running = sum(c.ready for c in by_country.values()), sum(c.running for c in by_country.values())
    held = sum(1 for permit in index.permits.values() if permit.holder is not None)
    backoffs = sorted((b for b in index.backoffs() if b.until > now), key=lambda b: -b.until)[:MAX_BACKOFFS]
    return {
        "observedGeneration": obj["metadata"].get("generation", 0),
        "slots": len(index.slots),
        "ready": ready,
        "running": running,
        "permitsHeld": held,
        "queued": sum(row["queued"] for row in rows),
        "selector": f"{POOL_LABEL}={index.settings.name}",
        "countries": [{key: value for key, value in row.items() if value is not None} for row in rows],
        "backoffs": [
            {"country": b.country, "site": b.site or "", "until": time_text(b.until), "failures": b.failures}
            for b in sorted(backoffs, key=lambda b: (b.country, b.site or ""))
        ],
        "conditions": _conditions(
            PoolCondition,
            obj,
            PoolCondition.because("Ready", *_pool_ready(index, ready + running, held), at=time_text(now)),
            PoolCondition.because("Progressing", *_progressing(index, held), at=time_text(now)),
        ),
    }


def _pool_ready(index: Index, usable: int, held: int) -> tuple[ConditionStatus, PoolReason]:
    if index.settings.suspended:
        return ConditionStatus.FALSE, PoolReason.SUSPENDED
    if usable:
        return ConditionStatus.TRUE, PoolReason.SLOTS_READY
    if any(permit.poisoned for permit in index.permits.values()):
        return ConditionStatus.FALSE, PoolReason.PERMIT_POISONED
    if held:
        return ConditionStatus.FALSE, PoolReason.NO_SLOT_READY
    return ConditionStatus.TRUE, PoolReason.NOTHING_TO_DO


def _progressing(index: Index, held: int) -> tuple[ConditionStatus, PoolReason]:
    if held > index.settings.max_concurrent:
        return ConditionStatus.TRUE, PoolReason.LOWERING_CAP
    if any(pod.revision and pod.revision != index.settings.revision for pod in index.pods.values()):
        return ConditionStatus.TRUE, PoolReason.ROLLING_OUT
    return ConditionStatus.FALSE, PoolReason.UP_TO_DATE


def waiting_reason(index: Index, request: Request, now: Instant) -> tuple[str, str]:
    """Why a queued request waits: a condition reason and a sentence."""
    why = why_waiting(index, request, now)
    return why.reason.value, why.message
