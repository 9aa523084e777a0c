"""Figures per country for status, table and metrics: the same that decisions rest on."""

from dataclasses import dataclass

from pageslots.core.derived import Derived
from pageslots.core.draft import Draft
from pageslots.core.model import Country, Instant, SlotState
from pageslots.core.slots import Role
from pageslots.core.survey import Situation, survey


@dataclass(frozen=True, slots=True)
class CountryCounts:
    """One country. `queued` counts what waits for a start, `dispatchable` what could start this instant."""

    country: Country
    unfinished: int
    running: int
    queued: int
    dispatchable: int
    demand: int
    needed: int
    wanted: int
    target: int
    allocated: int
    slots: int
    ready: int
    preparing: int
    closing: int
    permits: int
    backs_off: bool
    oldest_queued: Instant | None


def counts(index: Derived, now: Instant) -> dict[Country, CountryCounts]:
    """The figures of every country of the pool."""
    index.refresh(now)
    looked = survey(Draft(index, now))
    allocation = index.memory.allocation
    slots = {} if allocation is None else allocation.slots
    return {
        code: _count(situation, looked.aims[code].total, slots.get(code, 0))
        for code, situation in looked.situations.items()
    }


def _count(situation: Situation, target: int, allocated: int) -> CountryCounts:
    queues, slots = situation.queues, situation.slots
    states = [view.state for role in Role for view in slots.of(role).values()]
    return CountryCounts(
        country=situation.code,
        unfinished=queues.unfinished,
        running=queues.running,
        queued=queues.waiting,
        dispatchable=situation.dispatchable,
        demand=situation.demand,
        needed=situation.needed,
        wanted=situation.wanted,
        target=target,
        allocated=allocated,
        slots=len(states),
        ready=states.count(SlotState.READY),
        preparing=states.count(SlotState.PREPARING),
        closing=states.count(SlotState.CLOSING),
        permits=sum(view.facts.number is not None for role in Role for view in slots.of(role).values()),
        backs_off=situation.backs_off,
        oldest_queued=queues.oldest(),
    )
