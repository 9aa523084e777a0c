"""Which request next, on which slot (DESIGN section 5, "Dispatch")."""

from tests.world import S, a_pool, idle, preparing, running

from pageslots.core.dispatch import WarmSlots
from pageslots.core.model import Instant, Site, SiteSettings, SlotUid

MINUTE = 60 * S


def test_every_free_slot_is_filled_in_one_plan():
    world = a_pool("SG").with_slots(idle("SG"), idle("SG"), idle("SG")).with_queued("SG", 5).allocated_as_is()

    assert len(world.plan().starts) == 3


def test_the_slot_that_is_warm_for_the_site_is_taken():
    world = a_pool("SG").with_slots(
        idle("SG", site="other.example"), idle("SG"), idle("SG", site="shop.example")
    )
    request = world.allocated_as_is().add_queued("SG", site="shop.example")

    assert world.plan().starts == [(request.uid, world.slot("SG", 2))]


def test_then_one_that_is_warm_for_none_then_the_longest_idle_of_another():
    def slots(*sites: tuple[str | None, int]) -> WarmSlots:
        return WarmSlots(
            (SlotUid(f"slot-{i}"), None if site is None else Site(site), Instant(since), i)
            for i, (site, since) in enumerate(sites)
        )

    assert slots(("x", 1), (None, 9), (None, 5)).take(Site("shop")) == "slot-1"
    assert slots(("x", 7), ("y", 3)).take(Site("shop")) == "slot-1"


def test_the_longest_waiting_site_is_next():
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG", waiting=10 * S)
    oldest = world.add_queued("SG", waiting=20 * S)

    assert world.allocated_as_is().plan().starts[0][0] == oldest.uid


def test_one_point_of_priority_is_worth_five_minutes():
    world = a_pool("SG").with_slots(idle("SG")).allocated_as_is()
    old = world.add_queued("SG", waiting=6 * MINUTE)
    urgent = world.add_queued("SG", waiting=2 * MINUTE, priority=1)

    assert world.plan().starts[0][0] == urgent.uid
    world.index.drop_request(urgent.uid)
    world.add_queued("SG", waiting=30 * S, priority=1)
    assert world.plan().starts[0][0] == old.uid


def test_inside_a_site_priority_comes_before_age():
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG", site="shop.example", waiting=60 * MINUTE)
    urgent = world.add_queued("SG", site="shop.example", waiting=1 * S, priority=1)

    assert world.allocated_as_is().plan().starts[0][0] == urgent.uid


def test_a_site_cools_down_between_starts():
    world = a_pool("SG", cooldown_ms=2 * S).with_slots(idle("SG"), idle("SG"))
    world.with_queued("SG", 2, site="shop.example").allocated_as_is()

    said = world.accept()
    assert len(said.starts) == 1
    assert world.later(1_999).plan().starts == []
    assert len(world.later(1).plan().starts) == 1


def test_the_plan_wakes_when_the_site_has_cooled_down():
    world = a_pool("SG", cooldown_ms=2 * S).with_slots(idle("SG"), idle("SG"))
    world.with_queued("SG", 2, site="shop.example").allocated_as_is()
    begin = world.now

    world.accept()

    assert world.plan().next_wake == begin + 2 * S


def test_a_cooling_site_blocks_nobody():
    """Case D7: 10,000 requests of one site, then one of another: the second site starts at once."""
    world = a_pool("SG", max_per_site=100).with_slots(*[idle("SG")] * 3)
    world.with_queued("SG", 1_000, site="hot.example", waiting=60 * MINUTE).allocated_as_is()
    hot = [uid for uid, _ in world.accept().starts]
    quiet = world.add_queued("SG", site="quiet.example", waiting=0)

    assert len(hot) == 1
    assert [uid for uid, _ in world.plan().starts] == [quiet.uid]


def test_a_hot_site_does_not_starve_a_quiet_one():
    """Case D24: after one further start of the hot site at most the quiet one is next."""
    world = a_pool("SG", cooldown_ms=0).with_slots(running("SG", site="hot.example", ago=1 * S))
    world.with_queued("SG", 500, site="hot.example", waiting=60 * MINUTE).allocated_as_is()
    quiet = world.add_queued("SG", site="quiet.example", waiting=900)
    world.end(world.slot("SG"))
    world.record(*world.accept().actions)

    world.accept()
    world.with_slots(idle("SG"))
    assert [uid for uid, _ in world.plan().starts] == [quiet.uid]


def test_no_more_attempts_at_a_site_than_it_bears():
    world = a_pool("SG", cooldown_ms=0, max_per_site=2).with_slots(
        running("SG", site="shop.example"), idle("SG"), idle("SG")
    )
    world.with_queued("SG", 5, site="shop.example").allocated_as_is()

    assert len(world.plan().starts) == 1


def test_a_site_of_its_own_limits_obeys_those():
    site = Site("shop.example")
    world = a_pool("SG", cooldown_ms=0, sites={site: SiteSettings(site, max_per_site=1, cooldown_ms=5 * S)})
    world.with_slots(idle("SG"), idle("SG")).with_queued("SG", 2, site=site).allocated_as_is()

    assert len(world.accept().starts) == 1
    assert world.later(60 * S).plan().starts == []


def test_a_suspended_site_starts_nothing():
    site = Site("shop.example")
    world = a_pool("SG", sites={site: SiteSettings(site, suspended=True)}).with_slots(idle("SG"))

    assert world.with_queued("SG", site=site).allocated_as_is().plan().starts == []


def test_a_site_of_unknown_history_waits_one_cooldown_after_a_restart():
    world = a_pool("SG", cooldown_ms=3 * S).with_slots(idle("SG")).with_queued("SG")
    world.index.memory.since = None
    world.accept()

    assert world.later(2_999).plan().starts == []
    assert len(world.later(1).plan().starts) == 1


def test_a_site_of_known_history_goes_on_where_it_was():
    world = a_pool("SG", cooldown_ms=3 * S).with_slots(idle("SG"))
    world.with_queued("SG", site="shop.example", last_started=world.now - 10 * S)
    world.index.memory.since = None

    assert len(world.plan().starts) == 1


def test_a_preparing_slot_takes_nothing():
    assert a_pool("SG").with_slots(preparing("SG")).with_queued("SG").allocated_as_is().plan().starts == []


def test_a_request_waits_for_its_retry_time():
    world = a_pool("SG").with_slots(idle("SG")).allocated_as_is()
    world.with_queued("SG", next_attempt=world.now + 5 * S)

    assert world.plan().starts == []
    assert world.plan().next_wake <= world.now + 5 * S
    assert len(world.later(5 * S).plan().starts) == 1


def test_suspended_stopped_and_deleted_requests_are_not_started():
    world = a_pool("SG").with_slots(*[idle("SG")] * 4).allocated_as_is()
    world.with_queued("SG", suspended=True).with_queued("SG", stop=True).with_queued("SG", deleted=True)

    assert world.plan().starts == []


def test_a_suspended_pool_or_country_starts_nothing():
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG").allocated_as_is()
    assert world.change(suspended=True).plan().starts == []
    assert len(world.change(suspended=False).plan().starts) == 1


def test_a_start_that_failed_for_certain_costs_no_place():
    """Case D3: the loser stays queued and keeps its place."""
    world = a_pool("SG", cooldown_ms=1 * S).with_slots(idle("SG")).allocated_as_is()
    first = world.add_queued("SG", waiting=20 * S, site="a.example")
    world.with_queued("SG", waiting=10 * S, site="b.example")
    [start] = [a for a in world.accept().actions if type(a).__name__ == "StartAttempt"]
    assert start.request == first.uid

    world.index.settle(start)

    assert world.later(1 * S).plan().starts == [(first.uid, world.slot("SG"))]


def test_attempt_numbers_are_never_reused():
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG", attempts=4).allocated_as_is()

    [start] = [a for a in world.plan().actions if type(a).__name__ == "StartAttempt"]
    assert start.number == 5
