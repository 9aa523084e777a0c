"""What closes pages: idleness, a lowered maxConcurrent, a new revision, moves between countries."""

from tests.world import S, World, a_pool, empty, idle, preparing, running

from pageslots.core.actions import CloseSlot, NoteIdleClosing
from pageslots.core.model import Country, CountrySettings, DrainReason, SlotState


def test_an_idle_page_closes_after_idle_seconds():
    world = (
        a_pool("SG", idle_ms=60 * S, interval_ms=3_600 * S).with_slots(idle("SG", ago=0)).allocated_as_is()
    )

    assert world.plan().next_wake <= world.now + 60 * S
    assert world.later(59_999).plan().closed == []
    [deed] = world.later(1).plan().of(CloseSlot)
    assert (deed.slot, deed.reason) == (world.slot("SG"), "Idle")


def test_a_warm_minimum_stays_open():
    warm = CountrySettings(Country("SG"), min_ready=1)
    world = a_pool(warm, idle_ms=60 * S).with_slots(idle("SG", ago=90 * S), idle("SG", ago=80 * S))
    world.allocated_as_is()

    assert world.plan().closed == [world.slot("SG", 0)]


def test_pages_that_will_be_needed_within_a_minute_stay_open():
    world = a_pool("SG", idle_ms=60 * S).with_slots(idle("SG", ago=90 * S), idle("SG", ago=80 * S))
    world.with_queued("SG", next_attempt=world.now + 59 * S).allocated_as_is()

    assert len(world.plan().closed) == 1


def test_each_idle_closing_is_remembered_with_the_demand_of_that_moment():
    world = a_pool("SG", idle_ms=60 * S).with_slots(idle("SG", ago=90 * S), idle("SG", ago=80 * S))
    world.with_queued("SG", next_attempt=world.now + 59 * S).allocated_as_is()

    assert world.plan().of(NoteIdleClosing) == [NoteIdleClosing(Country("SG"), 1)]


def test_after_idling_no_page_is_prepared_again_without_new_demand():
    """Case D19."""
    world = a_pool("SG", idle_ms=60 * S).with_slots(
        running("SG", site="a.example"), idle("SG", ago=90 * S), empty("SG")
    )
    world.allocated_as_is()

    said = world.accept()

    assert said.closed == [world.slot("SG", 1)]
    assert world.plan().granted == []


def eight_permits() -> World:
    """A pool whose maxConcurrent is about to be lowered; nothing else happens for an hour."""
    return a_pool("SG", max_concurrent=8, max_slots=8, idle_ms=3_600 * S, interval_ms=3_600 * S)


def test_with_fewer_permits_allowed_the_ones_above_drain_when_busy():
    """Case P7."""
    world = (
        eight_permits()
        .with_slots(*[running("SG", site=f"{i}.example") for i in range(8)])
        .with_queued("SG", 50)
    )
    world.allocated_as_is().change(max_concurrent=3)

    said = world.accept()

    assert said.draining == [(world.slot("SG", i), DrainReason.SHRINK) for i in range(3, 8)]
    assert (said.closed, said.starts, world.plan().granted) == ([], [], [])


def test_idle_ones_above_close_first_and_only_as_many_as_needed():
    world = (
        eight_permits()
        .with_slots(idle("SG"), idle("SG"), idle("SG"), idle("SG"), idle("SG"))
        .allocated_as_is()
    )
    world.index.drop_slot(world.slot("SG", 0))
    world.index.drop_pod(0, world.index.pods[0].uid, terminated=True)
    world.index.drop_permit(0)
    world.change(max_concurrent=3)

    # permits 1 to 4 are held, one too many: the highest closes
    assert world.plan().closed == ["slot-4"]


def test_raising_it_again_withdraws_the_drains():
    world = (
        eight_permits().with_slots(*[running("SG", site=f"{i}.example") for i in range(8)]).allocated_as_is()
    )
    world.change(max_concurrent=3).accept()

    said = world.change(max_concurrent=8).accept()

    assert said.draining == [(world.slot("SG", i), None) for i in range(3, 8)]
    assert world.plan().draining == []


def test_a_new_revision_replaces_one_slot_at_a_time_idle_ones_first():
    world = a_pool("SG", revision="old", idle_ms=3_600 * S, interval_ms=3_600 * S)
    world.with_slots(running("SG", revision="old"), idle("SG", revision="old"), idle("SG", revision="old"))
    world.allocated_as_is().change(revision="new")

    first = world.accept()

    assert len(first.closed) == 1
    assert world.accept().closed == []


def test_slots_of_an_old_revision_take_requests_until_they_are_chosen():
    world = a_pool("SG", revision="old", interval_ms=3_600 * S, idle_ms=3_600 * S)
    world.with_slots(idle("SG", revision="old"), idle("SG", revision="old")).with_queued("SG", 2)
    world.allocated_as_is().change(revision="new")

    assert len(world.accept().starts) == 2

    said = world.plan()
    assert [reason for _, reason in said.draining] == [DrainReason.ROLLOUT]


def test_a_page_that_is_still_being_prepared_from_the_new_revision_holds_the_rollout():
    """A revision that never becomes ready takes one slot, not all of them."""
    world = a_pool("SG", revision="new", idle_ms=3_600 * S, interval_ms=3_600 * S)
    world.with_slots(preparing("SG", revision="new"), idle("SG", revision="old")).allocated_as_is()

    assert world.plan().closed == []


def test_a_country_gives_up_slots_without_a_page_first_then_the_longest_idle():
    world = a_pool("SG", "MY", idle_ms=3_600 * S).with_slots(
        idle("SG", ago=5 * S), idle("SG", ago=9 * S), empty("SG"), running("SG")
    )

    said = world.with_allocation(SG=2, MY=0).plan()

    assert said.deleted == [world.slot("SG", 2)]
    assert said.closed == [world.slot("SG", 1)]


def test_a_busy_slot_drains_when_its_country_loses_it():
    """Invariant I6."""
    world = a_pool("SG", "MY").with_slots(running("SG", site="a.example"), running("SG", site="b.example"))

    said = world.with_allocation(SG=1, MY=0).accept()

    assert [reason for _, reason in said.draining] == [DrainReason.ALLOCATION]
    assert said.closed == []
    assert world.index.slot_state(said.draining[0][0]) is SlotState.RUNNING


def test_a_slot_that_still_drains_is_taken_back_before_a_new_one_is_made():
    world = a_pool("SG", "MY").with_slots(running("SG", site="a.example"), running("SG", site="b.example"))
    [(slot, _)] = world.with_allocation(SG=1, MY=0).accept().draining

    said = world.with_allocation(SG=2, MY=0).plan()

    assert said.draining == [(slot, None)]
    assert said.created == {}
