"""How many of a country's slots should have a browser (DESIGN section 5, "Preparation").

From demand; for `permits`. Idling lowers what is wanted, so that idling and preparation can't fight.
"""

from fractions import Fraction

from pageslots.core.allocation import slots_for
from pageslots.core.model import IdleClosings


def needed(slots: int, demand: int) -> int:
    """How many slots have, or will have within a minute, something to run."""
    return min(slots, demand)


def kept(slots: int, demand: int, min_ready: int) -> int:
    """How many pages idling never goes below."""
    return min(slots, max(min_ready, demand))


def wanted(
    slots: int,
    demand: int,
    min_ready: int,
    min_requests_per_slot: Fraction,
    closings: IdleClosings | None,
) -> int:
    """How many slots should have a page: needed ones, and spare ones that demand is worth."""
    want = min(slots, max(min_ready, slots_for(demand, min_requests_per_slot)))
    if closings is None or forgotten(closings, demand):
        return want
    return max(want - closings.count, kept(slots, demand, min_ready))


def forgotten(closings: IdleClosings, demand: int) -> bool:
    """Whether demand has risen above what it was when slots were closed for idleness."""
    return demand > closings.demand
