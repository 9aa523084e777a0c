"""The last part of a plan: pages that are not needed, not allowed or not up to date any more."""

from pageslots.core.actions import CloseSlot, NoteDraining, NoteIdleClosing
from pageslots.core.draft import Draft
from pageslots.core.model import EPOCH, DrainReason, Instant
from pageslots.core.slots import Role, SlotView
from pageslots.core.survey import Situation, Survey


def close(draft: Draft, looked: Survey) -> None:
    """Shrink below a lowered maxConcurrent, replace what is of an old revision, close what is idle."""
    _shrink(draft, looked)
    _roll_out(draft, looked)
    for situation in looked.situations.values():
        if situation.free and not situation.backs_off:
            _close_idle(draft, situation)


def _close_slot(draft: Draft, situation: Situation, view: SlotView, reason: str) -> bool:
    pod = view.facts.pod
    situation.leave(draft, view)
    return pod is not None and draft.emit(CloseSlot(view.uid, pod.number, pod.uid, reason))


def _shrink(draft: Draft, looked: Survey) -> None:
    """More permits are held than maxConcurrent allows now: those above it close when idle, drain when busy."""
    index = draft.index
    most = index.settings.max_concurrent
    draining = [v for v in index.roster.all_of(Role.DRAINING) if v.doomed is DrainReason.SHRINK]
    excess = len(index.numbers.occupied) - most
    if excess <= 0 and not draining:
        return
    excess -= sum(not v.facts.stuck for v in index.roster.all_of(Role.LEAVING)) + len(draft.leaving)
    above = [v for n in sorted(index.numbers.occupied) if n >= most and (v := _holder(draft, n)) is not None]
    above = [v for v in above if v.country in looked.situations and v.uid not in draft.taken]
    for view in reversed(above):
        if excess > 0 and view.role in (Role.FREE, Role.PREPARING):
            draft.note(NoteDraining(view.uid, DrainReason.SHRINK))
            excess -= _close_slot(draft, looked.situations[view.country], view, DrainReason.SHRINK.value)
    if excess <= 0:
        for view in sorted(draining, key=lambda v: v.facts.slot.number):
            draft.note(NoteDraining(view.uid, None))
        return
    for view in above:
        if view.role is Role.BUSY:
            looked.situations[view.country].leave(draft, view)
            draft.note(NoteDraining(view.uid, DrainReason.SHRINK))


def _holder(draft: Draft, number: int) -> SlotView | None:
    permit = draft.index.records.permits.get(number)
    if permit is None or permit.holder is None:
        return None
    view = draft.index.roster.views.get(permit.holder)
    return view if view is not None and view.facts.number == number else None


def _roll_out(draft: Draft, looked: Survey) -> None:
    """Replace pods of an old revision, few at a time; unavailable are those on their way out or being prepared."""
    roster, settings = draft.index.roster, draft.index.settings
    if not roster.outdated:
        return
    replacing = sum(
        v.doomed is DrainReason.ROLLOUT for role in (Role.LEAVING, Role.DRAINING) for v in roster.all_of(role)
    )
    preparing = sum(v.uid not in roster.outdated for v in roster.all_of(Role.PREPARING))
    room = settings.max_unavailable - replacing - preparing
    if room <= 0:
        return
    candidates = [
        v
        for v in roster.outdated.values()
        if v.uid not in draft.taken and v.role in _ROLLOUT_ORDER and v.country in looked.situations
    ]
    candidates.sort(key=lambda v: (_ROLLOUT_ORDER[v.role], _since(v), v.facts.slot.number))
    for view in candidates[:room]:
        draft.note(NoteDraining(view.uid, DrainReason.ROLLOUT))
        if view.role is Role.BUSY:
            looked.situations[view.country].leave(draft, view)
        else:
            _close_slot(draft, looked.situations[view.country], view, DrainReason.ROLLOUT.value)


_ROLLOUT_ORDER = {Role.PREPARING: 0, Role.FREE: 1, Role.BUSY: 2}


def _since(view: SlotView) -> Instant:
    """The longest idle first; of the running ones the one that began first."""
    return view.facts.named_since or EPOCH if view.role is Role.BUSY else view.idle_since


def _close_idle(draft: Draft, situation: Situation) -> None:
    """Close what has been idle for long, never below what is needed or kept warm."""
    settings = draft.index.settings
    idle = sorted(
        (v for v in situation.free.values() if v.uid not in draft.taken),
        key=lambda v: (v.idle_since, -v.facts.slot.number),
    )
    running = len(situation.slots.of(Role.BUSY)) + situation.started
    beyond = running + len(idle) - situation.kept
    for view in idle[: max(0, beyond)]:
        at = Instant(view.idle_since + settings.idle_ms)
        if at > draft.now:
            draft.wake(at)
            return
        if _close_slot(draft, situation, view, "Idle"):
            draft.note(NoteIdleClosing(situation.code, situation.demand))
