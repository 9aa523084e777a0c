"""The first part of a plan: what is half done, has ended, or is overdue."""

from pageslots.core import backoff
from pageslots.core.actions import (
    CloseSlot,
    CreatePod,
    DeletePod,
    FinishRequest,
    NoteBackOff,
    NoteDraining,
    RequeueRequest,
)
from pageslots.core.draft import Draft
from pageslots.core.model import AgentPhase, DrainReason, Instant, Outcome, Report, Request, RequestState
from pageslots.core.pointing import prepare_for
from pageslots.core.runs import Outlook, look_at_queued
from pageslots.core.slots import HOLDING, SlotView
from pageslots.core.verdict import CLOSES_SLOT


def complete(draft: Draft) -> None:
    """Ask for everything that is due by itself."""
    _runs(draft)
    _waits(draft)
    _slots(draft)
    for due in draft.index.numbers.due(draft.now):
        draft.emit(due.deed)
    index = draft.index
    if index.memory.unstamped:
        draft.wake(
            Instant(draft.now + 1)
        )  # acceptance says when they went; what follows is planned right after it
    draft.wake(index.run_timers.next_after(draft.now))
    draft.wake(index.wait_timers.next_after(draft.now))
    draft.wake(index.roster.timers.next_after(draft.now))
    draft.wake(index.queues.timers.next_after(draft.now))
    draft.wake(index.numbers.next_after(draft.now))


def _runs(draft: Draft) -> None:
    index = draft.index
    for uid in index.run_timers.due(draft.now):
        request = index.records.running[uid]
        outlook = index.outlook(request)
        if outlook.deed is None or not draft.emit(outlook.deed):
            continue
        if isinstance(outlook.deed, FinishRequest | RequeueRequest):
            draft.ended.add(uid)
            _learn(draft, request, outlook)


def _learn(draft: Draft, request: Request, outlook: Outlook) -> None:
    """What an agent's report means for its slot, its site and its country."""
    report, attempt = outlook.report, request.attempt
    if report is None or attempt is None:
        return
    if report.outcome in CLOSES_SLOT and attempt.slot in draft.index.records.slots:
        draft.note(NoteDraining(attempt.slot, DrainReason.FAILED))
    _, cooldown, _ = draft.index.queues.limits(request.site)
    note = backoff.site_after(
        draft.backoff(request.country, request.site),
        report,
        country=request.country,
        site=request.site,
        begun=attempt.started,
        cooldown_ms=cooldown,
        now=draft.now,
    )
    if note is not None:
        draft.note(note)
    note = _country_after(draft, request, report, attempt.started)
    if note is not None:
        draft.note(note)


def _country_after(draft: Draft, request: Request, report: Report, begun: Instant) -> NoteBackOff | None:
    known = draft.backoff(request.country, None)
    if report.outcome is Outcome.PROXY_ERROR:
        return backoff.country_failed(
            known, country=request.country, begun=begun, gave_up=False, now=draft.now
        )
    if report.new_ok_pages > 0 and not backoff.holds_back(known):
        return backoff.country_recovered(known, country=request.country)
    return None


def _waits(draft: Draft) -> None:
    """Queued requests that were stopped, or whose time is over."""
    index = draft.index
    for uid in index.wait_timers.due(draft.now):
        request = index.records.requests[uid]
        end = look_at_queued(request) if request.state is RequestState.QUEUED else None
        if end is not None and not index.gather.is_starting(uid):
            draft.ended.add(uid)
            draft.emit(end[1])


def _slots(draft: Draft) -> None:
    index = draft.index
    pointed = prepare_for(draft)
    for view, due in index.roster.due(draft.now):
        deed = due.deed
        if isinstance(deed, CreatePod):
            deed = CreatePod(deed.number, deed.slot, pointed.next(view))
        if draft.emit(deed):
            if isinstance(deed, CloseSlot | DeletePod):
                draft.taken.add(view.uid)
                if view.role in HOLDING:
                    draft.leaving.add(view.uid)
            _learn_from_slot(draft, view)


def _learn_from_slot(draft: Draft, view: SlotView) -> None:
    """A slot that could not be prepared again and again makes its country back off."""
    agent, pod = view.facts.agent, view.facts.pod
    if agent is None or pod is None or agent.phase is not AgentPhase.GAVE_UP:
        return
    note = backoff.country_failed(
        draft.backoff(view.country, None),
        country=view.country,
        begun=pod.created,
        gave_up=True,
        now=draft.now,
    )
    if note is not None:
        draft.note(note)
