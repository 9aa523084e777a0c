"""The fourth part of a plan: free permits to countries, and permits that countries give back to others."""

from heapq import heappop, heappush

from pageslots.core import permits
from pageslots.core.actions import CloseSlot, DeletePod, NoteDraining, NoteUnschedulable, TakePermit
from pageslots.core.draft import Draft
from pageslots.core.model import Country, DrainReason, GrantedFor, Instant
from pageslots.core.pointing import Pointer
from pageslots.core.slots import Role, SlotView
from pageslots.core.survey import Situation, Survey


def grant(draft: Draft, looked: Survey) -> None:
    """Give the free permits out."""
    index = draft.index
    free = looked.usable - index.numbers.held
    if free <= 0:
        return
    standings = [s.standing() for s in looked.situations.values()]
    given = permits.grants(free, standings, looked.aims, index.settings.starvation_ms)
    if not given:
        return
    numbers = index.numbers.free()
    pointer = Pointer(draft)
    vacant: dict[Country, list[SlotView]] = {}
    for code, granted_for in given:
        situation = looked.situations[code]
        if code not in vacant:
            views = (v for v in situation.slots.of(Role.VACANT).values() if v.uid not in draft.taken)
            vacant[code] = sorted(views, key=lambda v: -v.facts.slot.number)
        number = next(numbers, None)
        if number is None:
            return
        if not vacant[code]:
            continue
        slot = vacant[code].pop()
        permit = index.records.permits.get(number)
        draft.taken.add(slot.uid)
        situation.granted += 1
        draft.emit(
            TakePermit(
                number,
                slot.uid,
                None if permit is None else permit.seen,
                granted_for,
                pointer.of(code, granted_for),
            )
        )


def settle_yields(draft: Draft, looked: Survey) -> None:
    """As many slots yield as requests wait that could start this instant and have no permit on the way."""
    situations = looked.situations
    _make_room_for_probes(draft, looked)
    yielding = _still_yielding(draft, looked)
    asked = sum(
        permits.waiting(s.standing(), looked.aims[code])
        for code, s in situations.items()
        if s.dispatchable > s.started
    )
    if not asked and not yielding:
        return
    granted = sum(s.granted for s in situations.values())
    free = max(0, looked.usable - draft.index.numbers.held - granted)
    missing = asked - free - (_on_the_way(draft) - len(yielding))
    for view in yielding[max(0, missing) :]:
        _go_on(draft, situations[view.country], view)
    _yield(draft, looked, missing - len(yielding))


def _make_room_for_probes(draft: Draft, looked: Survey) -> None:
    """A probe that found no free permit, or no free slot, takes the place of an idle page of its own country.

    Those pages stay while the country backs off, but take nothing before a probe is ready.
    """
    free = looked.usable - draft.index.numbers.held - sum(s.granted for s in looked.situations.values())
    for situation in looked.situations.values():
        slots = situation.slots
        if not (situation.backs_off and situation.dispatchable and situation.may_grow and situation.free):
            continue
        if situation.granted or slots.on_the_way or (free > 0 and slots.of(Role.VACANT)):
            continue
        idle = min(situation.free.values(), key=lambda v: (v.idle_since, -v.facts.slot.number))
        _give_back(draft, situation, idle)


def _still_yielding(draft: Draft, looked: Survey) -> list[SlotView]:
    """Running slots that drain for a yield, the longest running first.

    One whose country is below its target again goes on: its permit would come back to the same country.
    """
    yielding = []
    for situation in looked.situations.values():
        views = [
            v
            for v in situation.slots.of(Role.DRAINING).values()
            if v.doomed is DrainReason.YIELD_PERMIT and v.uid not in draft.taken
        ]
        for view in sorted(views, key=lambda v: (v.facts.named_since or 0, v.facts.slot.number)):
            if situation.held < looked.aims[situation.code].total:
                _go_on(draft, situation, view)
            else:
                yielding.append(view)
    return sorted(yielding, key=lambda v: (v.facts.named_since or 0, v.facts.slot.number))


def _go_on(draft: Draft, situation: Situation, view: SlotView) -> None:
    """A draining slot does not drain any more."""
    draft.taken.add(view.uid)
    draft.kept.add(view.uid)
    situation.left -= 1
    draft.note(NoteDraining(view.uid, None))


def _on_the_way(draft: Draft) -> int:
    """Permits that come back: of slots that close or drain (also by this plan), and those that are nobody's."""
    roster = draft.index.roster
    leaving = sum(slots.on_the_way for slots in roster.countries.values())
    return leaving + len(draft.leaving) - len(draft.kept) + draft.index.numbers.ownerless


def _yield(draft: Draft, looked: Survey, count: int) -> None:
    """The country furthest over its target gives back first."""
    if count <= 0:
        return
    standings = [s.standing() for s in looked.situations.values()]
    over = permits.surplus_order(standings, looked.aims)
    while over and count > 0:
        surplus, code = heappop(over)
        view = _cheapest(draft, looked.situations[code])
        if view is None:
            continue
        _give_back(draft, looked.situations[code], view)
        count -= 1
        if surplus + 1 < 0:
            heappush(over, (surplus + 1, code))


def _give_back(draft: Draft, situation: Situation, view: SlotView) -> None:
    situation.leave(draft, view)
    draft.note(NoteDraining(view.uid, DrainReason.YIELD_PERMIT))
    pod = view.facts.pod
    if view.role in (Role.FREE, Role.PREPARING) and pod is not None:
        draft.emit(CloseSlot(view.uid, pod.number, pod.uid, DrainReason.YIELD_PERMIT.value))


def swap_yields(draft: Draft, looked: Survey) -> None:
    """A slot that has become free yields in the place of one that drains for a yield and still runs.

    Which of several running slots ends next can't be known when one is asked to yield; this makes it the next one
    to end indeed.
    """
    for situation in looked.situations.values():
        draining = [
            v for v in situation.slots.of(Role.DRAINING).values() if v.doomed is DrainReason.YIELD_PERMIT
        ]
        if not draining or not situation.free:
            continue
        draining.sort(key=lambda v: v.facts.slot.number)
        free = sorted(situation.free.values(), key=lambda v: (v.idle_since, v.facts.slot.number))
        for kept, closed in zip(draining, free, strict=False):
            _go_on(draft, situation, kept)
            _give_back(draft, situation, closed)


def _cheapest(draft: Draft, situation: Situation) -> SlotView | None:
    """The slot of the country that yields: an idle or a spare one, else the running one that began first.

    A page that was prepared for a needed request is left alone until it has run one, as long as the country has
    requests that no running slot serves: else two countries could take one permit from each other for ever.
    """
    unserved = situation.demand - situation.queues.running - situation.started

    def protected(view: SlotView) -> bool:
        return view.facts.granted_for is GrantedFor.NEEDED and view.ran == 0 and unserved > 0

    idle = [v for v in situation.free.values() if v.uid not in draft.taken and not protected(v)]
    if idle:
        return min(idle, key=lambda v: (v.idle_since, -v.facts.slot.number))
    preparing = [
        v
        for v in situation.slots.of(Role.PREPARING).values()
        if v.uid not in draft.taken and not protected(v) and v.facts.pod is not None
    ]
    if preparing:
        return max(preparing, key=lambda v: (v.facts.pod.created if v.facts.pod else 0, v.facts.slot.number))
    busy = [v for v in situation.slots.of(Role.BUSY).values() if v.uid not in draft.taken]
    return min(busy, key=lambda v: (v.facts.named_since or 0, v.facts.slot.number), default=None)


def judge_unscheduled(draft: Draft, looked: Survey) -> None:
    """Pods that no node takes: after a while one goes on trying for all, and P is what has been scheduled + 1."""
    index, settings = draft.index, draft.index.settings
    pending = sorted(index.roster.unscheduled.values(), key=_pending_since)
    lowered = index.memory.usable is not None
    if not pending:
        if lowered:
            draft.note(NoteUnschedulable(None))
        return
    overdue = [v for v in pending if _pending_since(v)[0] + settings.unschedulable_ms <= draft.now]
    for view in pending:
        draft.wake(Instant(_pending_since(view)[0] + settings.unschedulable_ms))
    if not overdue:
        return
    if not lowered:
        scheduled = sum(pod.scheduled is not None for pod in index.records.pods.values())
        draft.note(NoteUnschedulable(scheduled + 1))
    for view in (overdue if lowered else pending)[1:]:
        pod = view.facts.pod
        assert pod is not None
        situation = looked.situations.get(view.country)
        if situation is not None:
            situation.leave(draft, view)
        draft.emit(DeletePod(pod.number, pod.uid, "Unschedulable", pod.message))


def _pending_since(view: SlotView) -> tuple[Instant, int]:
    pod = view.facts.pod
    assert pod is not None
    return pod.created, pod.number
