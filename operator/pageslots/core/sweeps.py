"""What is due on a slot, a permit's number or a request by itself: half-done things, deadlines, dead agents.

Each function looks at one thing and says what should be done from which instant on; `plan` asks for it when that
instant has come (DESIGN section 5 "Sweeps", sections 7 and 8). Half-done things are due at once (instant 0).
"""

from dataclasses import dataclass

from pageslots.core.actions import CloseSlot, CreatePod, Deed, DeletePod, DeleteSlot, FreePermit, StopAttempt
from pageslots.core.model import (
    SECOND,
    AgentPhase,
    DrainReason,
    Gone,
    Instant,
    Permit,
    Pod,
    PodPhase,
    PoolSettings,
    SlotUid,
)
from pageslots.core.slots import Role, SlotView, was_asked_to_close

AT_ONCE = Instant(0)

LAST_WORDS_MS = 5 * SECOND
"""On top of the grace period: how long a pod that vanished unseen may still have a process running."""


@dataclass(frozen=True, slots=True)
class Due:
    """A deed, and from when on it should be done."""

    at: Instant
    deed: Deed


def end_of(gone_at: Instant, *, terminated: bool, settings: PoolSettings) -> Instant:
    """From when on nothing of a vanished pod can run any more (invariant I3)."""
    return gone_at if terminated else Instant(gone_at + settings.grace_ms + LAST_WORDS_MS)


def _free_after(gone: Gone, permit: Permit, settings: PoolSettings) -> list[Due]:
    """The permit of a vanished pod is freed when nothing of the pod can run any more.

    Nothing yet while it is not known when that was: the next accepted plan says so.
    """
    if gone.at is None and not gone.terminated:
        return []
    at = end_of(gone.at or AT_ONCE, terminated=gone.terminated, settings=settings)
    return [Due(at, free(permit, settings))]


def look_at_slot(view: SlotView, settings: PoolSettings, since: Instant) -> list[Due]:
    """What is due on a slot, the most urgent first. `since`: when this operator began to watch."""
    facts = view.facts
    if facts.number is None:
        return _look_at_absent(view)
    if facts.pod is None:
        return _look_at_podless(view, settings, since)
    if facts.pod.deleting is not None:
        return []
    if facts.pod.phase is PodPhase.TERMINATED:
        message = facts.pod.message or "its containers have ended"
        return [Due(AT_ONCE, DeletePod(facts.pod.number, facts.pod.uid, "Terminated", message))]
    return _look_at_pod(view, facts.pod, settings, since)


def _look_at_absent(view: SlotView) -> list[Due]:
    """Without a permit: a slot that its country gave up is deleted."""
    slot = view.facts.slot
    leaves = view.doomed in (DrainReason.ALLOCATION, DrainReason.POOL_GONE)
    if view.role is Role.ABSENT and leaves and not slot.deleted and view.facts.named is None:
        return [Due(AT_ONCE, DeleteSlot(slot.uid, slot.seen))]
    return []


def _look_at_podless(view: SlotView, settings: PoolSettings, since: Instant) -> list[Due]:
    """A permit without a pod: the pod is still to be created, or is gone."""
    facts = view.facts
    permit = facts.permit
    if permit is None:
        return []  # the permit is being taken
    slot = facts.slot
    if facts.gone is not None:
        return _free_after(facts.gone, permit, settings)
    at = _known_quiet(permit, settings, since, named=facts.named is not None)
    if facts.named is not None or view.doomed is not None:
        return [Due(at, free(permit, settings))]
    return [Due(at, CreatePod(permit.number, slot.uid, None))]


def _known_quiet(permit: Permit, settings: PoolSettings, since: Instant, *, named: bool) -> Instant:
    """From when on nothing of a pod that was gone before this operator looked can run any more.

    A permit that was taken before may have had a pod that vanished a moment ago; one that was taken since has not.
    """
    if not named and permit.taken is not None and permit.taken >= since:
        return AT_ONCE
    return end_of(since, terminated=False, settings=settings)


def free(permit: Permit, settings: PoolSettings) -> FreePermit:
    """Give the permit back; numbers that are used no more lose their Lease."""
    remove = settings.deleted or permit.number >= settings.max_concurrent
    return FreePermit(permit.number, permit.seen, remove)


def _look_at_pod(view: SlotView, pod: Pod, settings: PoolSettings, since: Instant) -> list[Due]:
    facts = view.facts
    number, uid = pod.number, pod.uid
    agent = facts.agent
    if was_asked_to_close(facts):
        assert facts.closed_at is not None
        patience = settings.stale_ms if facts.named is not None else settings.dispatch_ms
        forced = CloseSlot(facts.slot.uid, number, uid, closing_reason(view), force=True)
        return [Due(Instant(facts.closed_at + patience), forced)]
    if view.role is Role.LEAVING:
        if agent is not None and agent.phase is AgentPhase.DRAINED and not facts.closing:
            return [Due(AT_ONCE, DeletePod(number, uid, closing_reason(view), "drained"))]
        return [Due(AT_ONCE, CloseSlot(facts.slot.uid, number, uid, closing_reason(view)))]
    found = _deadlines(view, pod, settings, since)
    if facts.orphan is not None:
        found.append(Due(AT_ONCE, StopAttempt(facts.orphan, facts.slot.uid, uid, "Stopped")))
    return sorted(found, key=lambda due: due.at)


def closing_reason(view: SlotView) -> str:
    """One CamelCase word on why a slot closes."""
    if view.doomed is not None:
        return view.doomed.value
    agent = view.facts.agent
    if agent is not None and agent.phase is AgentPhase.GAVE_UP:
        return "PreparationFailed"
    return "Closing"


def _deadlines(view: SlotView, pod: Pod, settings: PoolSettings, since: Instant) -> list[Due]:
    """Start, preparation and silence; what happened before this operator watched is counted from its start."""
    agent, slot = view.facts.agent, view.facts.slot
    if pod.phase is not PodPhase.RUNNING:
        if pod.scheduled is None:
            return []  # unschedulable pods are judged together
        at = Instant(pod.scheduled + settings.start_ms)
        message = pod.message or f"not running {settings.start_ms // SECOND} s after it was scheduled"
        return [Due(at, DeletePod(pod.number, pod.uid, "StartTimeout", message))]
    begun = max(since, pod.scheduled or pod.created)
    heard = begun if agent is None else agent.contact
    moved = begun if agent is None else max(since, agent.progress)
    found = []
    if view.role in (Role.BUSY, Role.DRAINING):
        moved = max(moved, view.facts.named_since or moved)
        message = f"no progress for {settings.stale_ms // SECOND} s"
        found.append(
            Due(Instant(moved + settings.stale_ms), DeletePod(pod.number, pod.uid, "Stale", message))
        )
        return found
    message = f"its agent has not answered for {settings.stale_ms // SECOND} s"
    found.append(Due(Instant(heard + settings.stale_ms), DeletePod(pod.number, pod.uid, "Stale", message)))
    if view.role is Role.PREPARING and (agent is None or agent.ready_since is None):
        at = Instant(begun + settings.start_ms + settings.preparation_ms)
        found.append(Due(at, CloseSlot(slot.uid, pod.number, pod.uid, "PreparationTimeout")))
    return found


def look_at_number(
    number: int,
    permit: Permit | None,
    pod: Pod | None,
    *,
    holder_known: bool,
    owner_known: bool,
    is_main: bool,
    settings: PoolSettings,
    gone: Gone | None,
    since: Instant,
) -> list[Due]:
    """What is due on a permit and its name that no slot answers for; the doer verifies each by a live look.

    `holder_known`, `owner_known`: the permit's holder and the pod's owner are slots that exist. `is_main`: the
    holder answers for this number (a slot that holds two permits answers for one). `gone`: the pod that it had.
    """
    if pod is not None:
        return _look_at_strange_pod(pod, permit, owner_known=owner_known, is_main=is_main)
    if permit is None or permit.poisoned:
        return []
    if permit.holder is None:
        unused = settings.deleted or number >= settings.max_concurrent
        return [Due(AT_ONCE, free(permit, settings))] if unused else []
    if holder_known and is_main:
        return []
    if gone is not None:
        return _free_after(gone, permit, settings)
    return [Due(_known_quiet(permit, settings, since, named=False), free(permit, settings))]


def _look_at_strange_pod(pod: Pod, permit: Permit | None, *, owner_known: bool, is_main: bool) -> list[Due]:
    poisoned = permit is not None and permit.poisoned
    if poisoned or pod.owner is None or pod.deleting is not None:
        return []  # foreign ones are never touched
    holder: SlotUid | None = None if permit is None else permit.holder
    if not owner_known:
        return [Due(AT_ONCE, DeletePod(pod.number, pod.uid, "Ownerless", "its page slot is gone"))]
    if holder != pod.owner or not is_main:
        return [
            Due(AT_ONCE, DeletePod(pod.number, pod.uid, "NoPermit", "its page slot holds no permit for it"))
        ]
    return []


def stuck_at(pod: Pod | None, settings: PoolSettings) -> Instant | None:
    """From when on a terminating pod counts as stuck: its permit is out of use until a person helps."""
    if pod is None or pod.deleting is None:
        return None
    return Instant(pod.deleting + settings.grace_ms + settings.stuck_terminating_ms)
