"""From objects, pods and agents' answers to the planner's facts."""

import hashlib
import json

from pageslots.api import CrawlRequest, PageSlot, PageSlotPool
from pageslots.control.instants import instant
from pageslots.control.names import GRANTED_FOR, permit_of, slot_of
from pageslots.control.ports import JsonObject, PodView
from pageslots.core import model
from pageslots.core.model import SECOND, Country, Instant, PodUid, Site, SlotUid, Version
from pageslots.wire import AgentStatus, AttemptReport, AttemptState, StopReason


def revision_of(pool: PageSlotPool) -> str:
    """What a slot's process is made from: pods of another revision are replaced (DESIGN section 10)."""
    spec = pool.spec
    parts = spec.model_dump(
        mode="json",
        include={"pod_template", "blocking", "network", "recycle"},
    )
    parts["preparation"] = spec.preparation.model_dump(mode="json", include={"target_url"})
    parts["countries"] = [
        c.model_dump(mode="json", include={"code", "proxies", "direct", "locale", "time_zone", "exit_check"})
        for c in spec.countries
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]


def pool_settings(pool: PageSlotPool) -> model.PoolSettings:
    """All that a pool says about decisions."""
    spec = pool.spec
    return model.PoolSettings(
        name=pool.name,
        uid=pool.metadata.uid,
        max_page_slots=spec.max_page_slots,
        max_concurrent=spec.max_concurrent,
        suspended=spec.suspend,
        deleted=pool.metadata.deletion_timestamp is not None,
        countries={
            Country(c.code): model.CountrySettings(Country(c.code), c.min_ready, c.max_slots, c.suspend)
            for c in spec.countries
        },
        sites={
            Site(s.name): model.SiteSettings(
                Site(s.name),
                s.max_per_site,
                None if s.cooldown_seconds is None else s.cooldown_seconds * SECOND,
                s.suspend,
            )
            for s in spec.sites
        },
        interval_ms=spec.allocation.interval_seconds * SECOND,
        unfinished_weight=spec.allocation.unfinished_weight,
        finished_weight=spec.allocation.finished_weight,
        sample_size=spec.allocation.sample_size,
        window_ms=spec.allocation.window_seconds * SECOND,
        starvation_ms=spec.allocation.starvation_seconds * SECOND,
        min_requests_per_slot=spec.preparation.min_requests_per_slot,
        reopen_after_failures=spec.preparation.reopen_after_failures,
        give_up_after_failures=spec.preparation.give_up_after_failures,
        idle_ms=spec.preparation.idle_seconds * SECOND,
        max_per_site=spec.dispatch.max_per_site,
        cooldown_ms=spec.dispatch.site_cooldown_seconds * SECOND,
        start_ms=spec.deadlines.start_seconds * SECOND,
        preparation_ms=spec.deadlines.preparation_seconds * SECOND,
        attempt_ms=spec.deadlines.attempt_seconds * SECOND,
        stale_ms=spec.deadlines.stale_seconds * SECOND,
        unschedulable_ms=spec.deadlines.unschedulable_seconds * SECOND,
        stuck_terminating_ms=spec.deadlines.stuck_terminating_seconds * SECOND,
        dispatch_ms=spec.deadlines.dispatch_seconds * SECOND,
        grace_ms=spec.pod_template.termination_grace_period_seconds * SECOND,
        max_unavailable=spec.rollout.max_unavailable,
        revision=revision_of(pool),
    )


def gone_pool(name: str) -> model.PoolSettings:
    """A pool of which only slots, permits or pods are left: everything drains."""
    return model.PoolSettings(name=name, deleted=True, max_page_slots=0, max_concurrent=0)


def request_fact(request: CrawlRequest, *, site: str, slot: SlotUid, resumable: bool) -> model.Request:
    """One request; `slot` is the UID of the slot that a Running one names ("" when that is unknown)."""
    spec, status, metadata = request.spec, request.status, request.metadata
    state = model.RequestState(status.state.value)
    latest = status.attempt
    running = None
    if state is model.RequestState.RUNNING and latest is not None:
        running = model.RunningAttempt(
            id=model.AttemptId(latest.id),
            number=latest.number,
            slot=slot,
            pod=PodUid(latest.pod_uid),
            started=instant(latest.started_time),
        )
    retries = spec.retries
    return model.Request(
        uid=model.RequestUid(metadata.uid),
        name=metadata.name,
        country=Country(spec.country),
        site=Site(site),
        created=instant(metadata.creation_timestamp) or Instant(0),
        seen=Version(metadata.resource_version),
        state=state,
        priority=spec.priority,
        suspended=spec.suspend,
        stop=spec.stop,
        deleted=metadata.deletion_timestamp is not None,
        attempt=running,
        attempts=0 if latest is None else latest.number,
        last_started=None if latest is None else instant(latest.started_time),
        next_attempt=instant(status.next_attempt_time),
        since_progress={
            model.Outcome(count.outcome.value): count.since_progress
            for count in status.attempts
            if count.since_progress
        },
        first_started=instant(status.first_start_time),
        finished=instant(status.finish_time),
        resumable=resumable,
        deadline_ms=spec.deadline_seconds * SECOND,
        queue_timeout_ms=None if spec.queue_timeout_seconds is None else spec.queue_timeout_seconds * SECOND,
        failed_pages_percent=spec.fail_when.failed_pages_percent,
        budgets=model.Budgets(
            blocked=retries.blocked,
            proxy_error=retries.proxy_error,
            site_error=retries.site_error,
            crash=retries.crash,
            slot_lost=retries.slot_lost,
        ),
    )


def slot_fact(slot: PageSlot) -> model.Slot | None:
    """One page slot; None for a name that we never give."""
    numbered = slot_of(slot.name)
    if numbered is None or numbered[0] != slot.spec.pool_name:
        return None
    return model.Slot(
        uid=SlotUid(slot.metadata.uid),
        name=slot.name,
        number=numbered[1],
        country=Country(slot.spec.country),
        seen=Version(slot.metadata.resource_version),
        deleted=slot.metadata.deletion_timestamp is not None,
    )


def permit_fact(lease: JsonObject) -> model.Permit | None:
    """One permit; None for a Lease that is none of ours. An unreadable holder poisons it (case P9)."""
    numbered = permit_of(lease["metadata"]["name"])
    if numbered is None:
        return None
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity") or None
    annotations = lease["metadata"].get("annotations") or {}
    granted_for, taken, poisoned = model.GrantedFor.SPARE, None, False
    try:
        granted_for = model.GrantedFor(annotations.get(GRANTED_FOR, granted_for))
        taken = instant(spec.get("acquireTime"))
        poisoned = holder is not None and not isinstance(holder, str)
    except (ValueError, TypeError):
        poisoned = True
    return model.Permit(
        number=numbered[1],
        seen=Version(lease["metadata"]["resourceVersion"]),
        holder=SlotUid(holder) if isinstance(holder, str) else None,
        granted_for=granted_for,
        taken=taken,
        poisoned=poisoned,
    )


def pod_fact(pod: PodView) -> model.Pod:
    """One pod as last seen."""
    return model.Pod(
        number=pod.number,
        uid=PodUid(pod.uid),
        owner=None if pod.owner_uid is None else SlotUid(pod.owner_uid),
        phase=model.PodPhase(pod.phase.value),
        created=Instant(pod.created),
        scheduled=None if pod.scheduled is None else Instant(pod.scheduled),
        deleting=None if pod.deleting is None else Instant(pod.deleting),
        revision=pod.revision,
        message=pod.message,
        out_of_memory=pod.out_of_memory,
    )


def report_fact(report: AttemptReport) -> model.Report:
    """What an agent says of its attempt."""
    return model.Report(
        id=model.AttemptId(report.id),
        request=model.RequestUid(report.request_uid),
        ended=report.state is AttemptState.ENDED,
        outcome=None if report.outcome is None else model.Outcome(report.outcome.value),
        message=report.message,
        done=report.pages.done,
        failed=report.pages.failed,
        blocked=report.pages.blocked,
        new_ok_pages=report.new_ok_pages,
        start_pages_ok=report.start_pages_ok,
        all_tried_blocked=report.all_tried_blocked,
        retry_after_ms=report.retry_after_ms,
        suspended=report.stop_reason in (StopReason.SUSPENDED, StopReason.SHUTDOWN),
        deadline=report.stop_reason is StopReason.DEADLINE,
    )


def agent_fact(
    status: AgentStatus, before: model.Agent | None, now: Instant, *, site: str | None
) -> model.Agent:
    """An agent's answer, with what only the sequence of its answers tells: since when idle, since when silent."""
    report = None if status.attempt is None else report_fact(status.attempt)
    busy = report is not None and not report.ended
    phase = model.AgentPhase(status.phase.value)
    known = before if before is not None and before.pod == status.pod_uid else None
    was_busy = known is not None and known.report is not None and not known.report.ended
    ran = known.ran if known is not None else int(status.pages > 0)
    if report is not None and (known is None or known.report is None or known.report.id != report.id):
        ran = max(1, ran + 1)
    idle_since: Instant | None = None
    if phase is model.AgentPhase.READY and not busy:
        idle_since = known.idle_since if known is not None and not was_busy and known.idle_since else now
    if known is not None and report is not None and known.report is not None and known.report.id != report.id:
        idle_since = now if idle_since is not None else None
    return model.Agent(
        pod=PodUid(status.pod_uid),
        phase=phase,
        contact=now,
        progress=now,
        warm_site=Site(site) if site else None,
        report=report,
        recycle_due=status.recycle_due,
        ready_since=None if status.ready_ms is None else Instant(status.ready_ms),
        idle_since=idle_since,
        consecutive_failures=status.consecutive_failures,
        failure=None if status.last_failure is None else model.Outcome(status.last_failure.outcome.value),
        failure_message="" if status.last_failure is None else status.last_failure.message,
        ran=ran,
    )
