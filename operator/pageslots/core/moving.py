"""The third part of a plan: slots to countries, as allocation says; a move is a deletion and a creation."""

from collections import Counter
from collections.abc import Iterator

from pageslots.core.actions import CloseSlot, CreateSlot, DeleteSlot, NoteAllocation, NoteDraining
from pageslots.core.allocation import Claim, allocate
from pageslots.core.draft import Draft
from pageslots.core.model import Allocation, Country, DrainReason, Instant
from pageslots.core.slots import Role, SlotView
from pageslots.core.survey import Situation, Survey


def move(draft: Draft, looked: Survey) -> None:
    """Compute the allocation when it is due, and bring the slots nearer to it."""
    settings = draft.index.settings
    if settings.deleted:
        return
    allocation = _current(draft, looked)
    if allocation is None:
        return
    draft.wake(Instant(allocation.at + settings.interval_ms))
    creating = Counter(draft.index.pending.creating.values())
    short: list[Country] = []
    for code, situation in looked.situations.items():
        have = situation.slots.counted + creating[code]
        lack = allocation.slots.get(code, 0) - have
        if lack < 0:
            _give_up(draft, situation, -lack)
        elif lack > 0:
            lack -= _keep(draft, situation, lack)
            short.extend([code] * lack)
    if short:
        for number, code in zip(_free_numbers(draft), short, strict=False):
            draft.emit(CreateSlot(number, code))


def _current(draft: Draft, looked: Survey) -> Allocation | None:
    """The allocation that holds: the last one, or a new one that is due now."""
    index = draft.index
    known = index.memory.allocation
    if known is not None and (index.settings.suspended or not _is_due(draft, looked, known)):
        return known
    settings, memory = index.settings, index.memory
    room = max(0, settings.sample_size - index.queues.unfinished)
    finished = memory.finished_lately(Instant(draft.now - settings.window_ms), room)
    claims = [_claim(s, finished.get(code, 0)) for code, s in looked.situations.items()]
    slots = allocate(
        claims,
        settings.max_page_slots,
        unfinished_weight=settings.unfinished_weight,
        finished_weight=settings.finished_weight,
        min_requests_per_slot=settings.min_requests_per_slot,
        starvation_ms=settings.starvation_ms,
    )
    considered = frozenset(c.country for c in claims if c.unfinished > 0)
    draft.note(NoteAllocation(draft.now, tuple(slots.items()), considered))
    return Allocation(draft.now, slots, considered)


def _claim(situation: Situation, finished: int) -> Claim:
    """A suspended country claims only what it still runs: its slots would do nothing."""
    queues, settings = situation.queues, situation.settings
    return Claim(
        situation.code,
        unfinished=queues.running if settings.suspended else queues.unfinished,
        finished=0 if settings.suspended else finished,
        running=queues.running,
        min_ready=settings.min_ready,
        max_slots=settings.max_slots,
        waited_ms=situation.waited_ms,
    )


def _is_due(draft: Draft, looked: Survey, known: Allocation) -> bool:
    """Every interval; for a first request of a country without a slot; when a starvation wait comes due."""
    settings = draft.index.settings
    if draft.now >= known.at + settings.interval_ms:
        return True
    for code, situation in looked.situations.items():
        if known.slots.get(code, 0) > 0:
            continue
        if situation.settings.suspended:
            continue
        if situation.queues.unfinished > 0 and code not in known.considered and situation.slots.counted == 0:
            return True
        if situation.waited_ms is not None:
            due = draft.now - situation.waited_ms + settings.starvation_ms
            if known.at <= due < draft.now:
                return True
    return False


def _give_up(draft: Draft, situation: Situation, count: int) -> None:
    """The country has `count` slots too many."""
    for view in _cheapest(draft, situation):
        if count == 0:
            return
        count -= 1
        situation.leave(draft, view)
        facts = view.facts
        draft.note(NoteDraining(view.uid, DrainReason.ALLOCATION))
        if view.role is Role.VACANT:
            draft.emit(DeleteSlot(view.uid, facts.slot.seen))
        elif view.role in (Role.FREE, Role.PREPARING) and facts.pod is not None:
            draft.emit(CloseSlot(view.uid, facts.pod.number, facts.pod.uid, DrainReason.ALLOCATION.value))


def _cheapest(draft: Draft, situation: Situation) -> Iterator[SlotView]:
    """The country's slots in the order in which it gives them up: a running one only drains (invariant I6)."""
    for role in (Role.VACANT, Role.ABSENT, Role.LEAVING, Role.FREE, Role.PREPARING, Role.DRAINING, Role.BUSY):
        views = [v for v in situation.slots.of(role).values() if v.counted and v.uid not in draft.taken]
        if role is Role.FREE:
            yield from sorted(views, key=lambda v: (v.idle_since, -v.facts.slot.number))
        elif role in (Role.BUSY, Role.DRAINING):
            yield from sorted(views, key=lambda v: (v.facts.named_since or 0, -v.facts.slot.number))
        else:
            yield from sorted(views, key=lambda v: -v.facts.slot.number)


def _keep(draft: Draft, situation: Situation, count: int) -> int:
    """Take back slots that still drain because the country had too many; tells how many."""
    draining = [
        v
        for v in situation.slots.of(Role.DRAINING).values()
        if v.doomed is DrainReason.ALLOCATION and v.facts.drain is not None and v.uid not in draft.taken
        if v.facts.drain.reason is DrainReason.ALLOCATION and _has_a_place(draft, v)
    ]
    kept = sorted(draining, key=lambda v: v.facts.slot.number)[:count]
    for view in kept:
        draft.taken.add(view.uid)
        draft.kept.add(view.uid)
        draft.note(NoteDraining(view.uid, None))
    return len(kept)


def _has_a_place(draft: Draft, view: SlotView) -> bool:
    slot = view.facts.slot
    return not slot.deleted and slot.number < draft.index.settings.max_page_slots


def _free_numbers(draft: Draft) -> Iterator[int]:
    """Slot numbers that no slot has, lowest first (invariant I5: the names are the cap)."""
    used = {slot.number for slot in draft.index.records.slots.values()}
    used |= draft.index.pending.creating.keys()
    return (n for n in range(draft.index.settings.max_page_slots) if n not in used)
