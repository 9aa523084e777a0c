"""How many browsers a country should have (DESIGN section 5, "Preparation")."""

from collections import Counter
from fractions import Fraction

import pytest
from tests.world import S, World, a_pool

from pageslots.core import preparation
from pageslots.core.actions import CreateSlot
from pageslots.core.model import IdleClosings, Slot, SlotUid, Version

THIRD = Fraction(1, 3)


def the_documented_pool(max_concurrent: int) -> World:
    world = a_pool("AA", "BB", "CC", "DD", "EE", "FF", max_slots=20, max_concurrent=max_concurrent)
    for country, unfinished, finished in zip(
        world.settings.countries, [2, 2, 1, 1, 0, 0], [8, 6, 3, 1, 4, 0], strict=True
    ):
        world.with_queued(country, unfinished).with_finished(country, finished)
    return world


@pytest.mark.parametrize(("max_concurrent", "started"), [(17, [6, 6, 3, 2, 0, 0]), (8, [3, 3, 1, 1, 0, 0])])
def test_the_documented_example_holds_through_plan_and_index(max_concurrent, started):
    """20 slots, "1/3": the example of DESIGN section 5."""
    world = the_documented_pool(max_concurrent)

    said = world.accept()
    assert list(said.allocated.values()) == [7, 6, 3, 2, 2, 0]
    for deed in said.of(CreateSlot):
        uid = SlotUid(f"slot-{deed.number}")
        world.index.put_slot(Slot(uid, uid, deed.number, deed.country, Version("1")))
        world.index.settle(deed)

    granted = Counter(world.index.slots[uid].country for uid in world.accept().granted)
    assert [granted[country] for country in world.settings.countries] == started


@pytest.mark.parametrize(
    ("requests", "per_slot", "slots"),
    [
        (1, THIRD, 3),
        (2, THIRD, 6),
        (0, THIRD, 0),
        (5, Fraction(2), 3),
        (1, Fraction(10), 1),
        (7, Fraction(3, 2), 5),
    ],
)
def test_demand_is_divided_in_exact_fractions_and_rounded_up(requests, per_slot, slots):
    assert preparation.wanted(100, requests, 0, per_slot, None) == slots


def test_no_more_than_the_slots_and_no_less_than_the_warm_minimum():
    assert preparation.wanted(4, 9, 0, THIRD, None) == 4
    assert preparation.wanted(4, 0, 2, THIRD, None) == 2
    assert preparation.wanted(1, 0, 2, THIRD, None) == 1


def test_each_idle_closing_lowers_what_is_wanted_but_never_below_need():
    assert preparation.wanted(9, 2, 0, THIRD, IdleClosings(1, 2)) == 5
    assert preparation.wanted(9, 2, 0, THIRD, IdleClosings(7, 2)) == 2
    assert preparation.wanted(9, 2, 3, THIRD, IdleClosings(7, 2)) == 3


def test_idle_closings_are_forgotten_when_demand_exceeds_what_it_was():
    assert preparation.wanted(9, 3, 0, THIRD, IdleClosings(7, 2)) == 9


def test_the_planner_forgets_idle_closings_for_good():
    """Demand rises to 3 and falls to 2 again: the closings at demand 2 count no longer."""
    world = a_pool("SG").allocated_as_is()
    world.index.memory.idle_closings["SG"] = IdleClosings(3, 2)
    world.with_queued("SG", 3, waiting=1 * S)

    world.accept()

    assert world.index.memory.idle_closings == {}
