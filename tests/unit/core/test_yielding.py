"""Permits that countries give back to others (DESIGN section 5, "Yields")."""

from dataclasses import replace

from tests.world import S, World, a_pool, empty, idle, preparing, running

from pageslots.core.model import Country, CountrySettings, DrainReason, GrantedFor

YIELD = DrainReason.YIELD_PERMIT


def test_an_idle_page_of_another_country_yields_to_a_waiting_request():
    world = a_pool("SG", "MY", max_concurrent=2).with_slots(idle("SG"), idle("SG"), empty("MY"))
    world.with_queued("MY").allocated_as_is()

    assert world.accept().closed == [world.slot("SG", 1)]
    assert world.plan().closed == []  # one waiter, one yield


def test_eight_warm_countries_hold_all_permits_and_exactly_one_yields():
    """Case D23."""
    warm = [
        CountrySettings(Country(code), min_ready=1)
        for code in ["AA", "BB", "CC", "DD", "EE", "FF", "GG", "HH"]
    ]
    world = a_pool(*warm, "II", max_concurrent=8, idle_ms=3_600 * S)
    world.with_slots(*[idle(c.code, granted_for=GrantedFor.SPARE) for c in warm], empty("II"))
    world.with_queued("II").allocated_as_is()

    first = world.accept()

    assert len(first.closed) == 1
    assert world.accept().closed == []
    assert world.later(1 * S).accept().closed == []


def busy_pool(**settings: int) -> World:
    """SG runs on both permits and has more to do; MY has a slot without a page."""
    return (
        a_pool("SG", "MY", max_concurrent=2, **settings)
        .with_slots(
            running("SG", ago=20 * S, site="a.example"),
            running("SG", ago=30 * S, site="b.example"),
            empty("MY"),
        )
        .with_queued("SG", 50)
    )


def test_a_running_slot_takes_no_more_when_another_country_s_request_waits():
    """Case D18: it is asked to drain, never stopped (invariant I6)."""
    world = busy_pool().with_queued("MY", 1, waiting=60 * S).allocated_as_is()

    said = world.accept()

    assert said.draining == [(world.slot("SG", 1), YIELD)]
    assert said.closed == []
    assert world.plan().draining == []


def test_the_slot_that_ends_first_yields_in_the_place_of_the_one_that_was_asked():
    world = busy_pool().with_queued("MY", 1, waiting=60 * S).allocated_as_is()
    world.accept()
    first = world.slot("SG", 0)
    world.later(1 * S).end(first)
    world.record(*world.accept().actions)

    said = world.plan()

    assert said.closed == [first]
    assert (world.slot("SG", 1), None) in said.draining
    assert said.starts == []


def test_a_drain_for_a_yield_is_withdrawn_when_the_waiter_is_gone():
    world = busy_pool().allocated_as_is()
    waiter = world.add_queued("MY", waiting=60 * S)
    world.accept()
    world.index.drop_request(waiter.uid)

    assert world.plan().draining == [(world.slot("SG", 1), None)]


def test_the_drained_slot_closes_after_its_request():
    world = busy_pool().with_queued("MY", 1, waiting=60 * S).allocated_as_is()
    world.accept()
    slot = world.slot("SG", 1)
    world.end(slot)
    world.record(*world.accept().actions)

    said = world.plan()
    assert (said.closed, said.starts) == ([slot], [])


def test_a_request_that_could_not_start_now_makes_nobody_yield():
    """Yields are caused only by requests that could be dispatched this instant if a slot were ready."""
    world = busy_pool().allocated_as_is()
    world.with_queued("MY", next_attempt=world.now + 5 * S, waiting=60 * S)

    assert world.plan().draining == []


def test_a_permit_that_is_on_its_way_is_enough():
    world = a_pool("SG", "MY", max_concurrent=2).with_slots(
        idle("SG"), running("SG", ago=30 * S), empty("MY"), empty("MY")
    )
    world.with_queued("MY", 1).with_queued("SG", 9).allocated_as_is()
    world.index.put_agent(replace(world.agent_of(world.slot("SG")), recycle_due=True))

    said = world.plan()
    assert said.closed == [world.slot("SG", 0)]  # it is recycled anyhow
    assert said.draining == []


def test_a_page_prepared_for_a_needed_request_is_left_alone_until_it_has_run_one():
    """Else two countries could take one permit from each other for ever (case D22)."""
    world = a_pool("SG", "MY", max_concurrent=1).with_slots(preparing("SG"), empty("MY"))
    world.with_queued("SG", waiting=60 * S).with_queued("MY", waiting=90 * S).allocated_as_is()

    said = world.plan()
    assert (said.closed, said.draining) == ([], [])


def test_a_spare_page_yields_while_it_is_still_being_prepared():
    world = a_pool("SG", "MY", max_concurrent=2).with_slots(
        preparing("SG", granted_for=GrantedFor.SPARE), preparing("SG"), empty("MY")
    )
    world.with_queued("SG").with_queued("MY").allocated_as_is()

    assert world.plan().closed == [world.slot("SG", 0)]


def test_equal_demand_shares_the_permits_without_a_single_yield():
    """Case D22: two countries, one busy site each, cooldown 1 s, 8 permits."""
    world = a_pool("SG", "MY", max_concurrent=8)
    world.with_slots(*[running("SG", site="a.example")] * 4, *[running("MY", site="b.example")] * 4)
    world.with_slots(empty("SG"), empty("MY"))
    world.with_queued("SG", 100, site="a.example").with_queued("MY", 100, site="b.example").allocated_as_is()

    said = world.plan()
    assert (said.closed, said.draining) == ([], [])
