"""The second part of a plan: requests onto ready slots."""

from collections.abc import Iterator
from heapq import heappop, heappush

from pageslots.core.actions import StartAttempt
from pageslots.core.dispatch import QueueKey, WarmSlots, queue_key
from pageslots.core.draft import Draft
from pageslots.core.model import Instant
from pageslots.core.queues import SiteQueue, Waiter
from pageslots.core.slots import SlotView
from pageslots.core.survey import Situation, Survey


def start(draft: Draft, looked: Survey) -> None:
    """Fill every free ready slot for which its country has a request that may start now."""
    for situation in looked.situations.values():
        if situation.runnable and situation.dispatchable and situation.free:
            _fill(draft, situation)


def _fill(draft: Draft, situation: Situation) -> None:
    free = situation.free
    warm = WarmSlots(
        (uid, view.warm_site, view.idle_since, view.facts.slot.number)
        for uid, view in free.items()
        if uid not in draft.taken
    )
    for queue, waiter in _in_turn(draft, situation):
        if not len(warm):
            return
        view = free[warm.take(queue.site)]
        if _start(draft, waiter, view):
            situation.started += 1
        del free[view.uid]


def _start(draft: Draft, waiter: Waiter, view: SlotView) -> bool:
    request, pod = draft.index.records.requests[waiter.uid], view.facts.pod
    assert pod is not None
    draft.taken.add(view.uid)
    return draft.emit(StartAttempt(request.uid, request.seen, view.uid, pod.uid, request.attempts + 1))


def _in_turn(draft: Draft, situation: Situation) -> Iterator[tuple[SiteQueue, Waiter]]:
    """The requests that may start now, in the order of DESIGN section 5.

    A queue without a cooldown may give several: after each it stands where its start of this instant puts it.
    """
    line = situation.queues.in_line()
    again: list[tuple[QueueKey, int, SiteQueue, Iterator[Waiter], Waiter]] = []
    upcoming = next(line, None)
    turns: dict[int, int] = {}
    while upcoming is not None or again:
        if again and (upcoming is None or again[0][0] < upcoming[0]):
            _, _, queue, heads, waiter = heappop(again)
        else:
            assert upcoming is not None
            queue = upcoming[1]
            heads = (w for w in queue.heads() if _may_start(draft, w))
            first = next(heads, None)
            upcoming = next(line, None)
            if first is None:
                continue
            waiter = first
        yield queue, waiter
        turn = turns[id(queue)] = turns.get(id(queue), 0) + 1
        following = next(heads, None) if turn < queue.dispatchable else None
        if following is not None:
            key = queue_key(following.place, Instant(max(following.since, draft.now)))
            heappush(again, (key, id(queue), queue, heads, following))


def _may_start(draft: Draft, waiter: Waiter) -> bool:
    if waiter.uid in draft.ended:
        return False
    return draft.index.pending.get("Verdict", waiter.uid) is None
