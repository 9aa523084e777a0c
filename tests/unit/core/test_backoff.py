"""Back-off (DESIGN section 5)."""

from dataclasses import replace

import pytest
from tests.world import S, World, a_pool, empty, idle, preparing, running

from pageslots.core import backoff
from pageslots.core.actions import NoteBackOff
from pageslots.core.model import (
    AgentPhase,
    AttemptId,
    BackOff,
    Country,
    Instant,
    Outcome,
    Report,
    RequestUid,
    Site,
)

SG, SHOP = Country("SG"), Site("shop.example")
NOW = Instant(1_000_000)


def blocked(
    known: BackOff | None, *, begun: int = NOW - 10, retry_after_ms: int | None = None
) -> NoteBackOff | None:
    report = Report(
        AttemptId("a"), RequestUid("r"), ended=True, outcome=Outcome.BLOCKED, retry_after_ms=retry_after_ms
    )
    return backoff.site_after(
        known, report, country=SG, site=SHOP, begun=Instant(begun), cooldown_ms=1 * S, now=NOW
    )


def test_waits_double_from_the_second_failure_in_a_row_and_are_bounded():
    assert [backoff.wait_ms(n) // S for n in range(1, 9)] == [0, 60, 120, 240, 480, 600, 600, 600]
    assert backoff.wait_ms(10_000) == 600 * S


def test_the_first_block_costs_the_cooldown_only():
    assert blocked(None) == NoteBackOff(SG, SHOP, Instant(NOW + 1 * S), 1, since=NOW)


def test_the_second_block_in_a_row_costs_a_minute():
    known = BackOff(SG, SHOP, Instant(NOW - 100), 1, since=Instant(NOW - 1 * S))

    assert blocked(known) == NoteBackOff(SG, SHOP, Instant(NOW + 60 * S), 2, since=NOW)


def test_attempts_that_ran_side_by_side_count_once():
    known = BackOff(SG, SHOP, Instant(NOW + 900), 1, since=Instant(NOW - 5))

    assert blocked(known) is None


def test_retry_after_is_honoured_and_bounded():
    """Case W11."""
    assert blocked(None, retry_after_ms=90 * S).until == NOW + 90 * S
    assert blocked(None, retry_after_ms=10**9).until == NOW + 3_600 * S


def test_a_good_page_ends_it():
    known = BackOff(SG, SHOP, Instant(NOW - 100), 3)
    report = Report(AttemptId("a"), RequestUid("r"), ended=True, outcome=Outcome.OK, new_ok_pages=1)

    note = backoff.site_after(known, report, country=SG, site=SHOP, begun=NOW, cooldown_ms=0, now=NOW)
    assert note == NoteBackOff(SG, SHOP, None, 0)


def test_giving_up_on_a_preparation_backs_off_at_once():
    note = backoff.country_failed(None, country=SG, begun=NOW, gave_up=True, now=NOW)
    assert note == NoteBackOff(SG, None, Instant(NOW + 60 * S), 2, since=NOW)


def test_one_proxy_error_is_remembered_and_costs_nothing():
    """Case W9: one dead proxy; the country goes on."""
    note = backoff.country_failed(None, country=SG, begun=NOW, gave_up=False, now=NOW)
    assert note == NoteBackOff(SG, None, NOW, 1, since=NOW)
    assert not backoff.holds_back(BackOff(SG, None, NOW, 1))


def given_up(world: World) -> None:
    """The agent of slot 0 gives up."""
    slot = world.slot("SG")
    world.index.put_agent(replace(world.agent_of(slot), phase=AgentPhase.GAVE_UP, consecutive_failures=7))


def test_a_slot_that_gave_up_closes_and_its_country_gets_no_new_permit():
    """Case D6: the hanging country backs off; the others go on."""
    world = a_pool("SG", "MY").with_slots(preparing("SG"), empty("SG"), idle("MY"))
    world.with_queued("SG", 3).with_queued("MY", 1).allocated_as_is()
    given_up(world)

    said = world.accept()

    assert said.closed == [world.slot("SG")]
    assert [slot for _, slot in said.starts] == [world.slot("MY")]
    assert said.granted == []
    assert world.later(59 * S).plan().granted == []


def test_after_the_back_off_one_probe_slot_is_started_for_no_request():
    world = a_pool("SG").with_slots(empty("SG"), empty("SG"), empty("SG"))
    world.with_queued("SG", 3).allocated_as_is()
    world.index.memory.backoffs[(SG, None)] = BackOff(
        SG, None, Instant(world.now + 60 * S), 2, since=world.now
    )
    assert world.plan().next_wake <= world.now + 60 * S

    world.later(60 * S)
    probes = [a for a in world.accept().actions if type(a).__name__ == "TakePermit"]

    assert len(probes) == 1
    assert probes[0].prepare_for is None
    assert world.plan().granted == []


def test_a_ready_probe_ends_the_back_off():
    world = a_pool("SG").with_slots(idle("SG", ago=1 * S)).with_queued("SG", 1).allocated_as_is()
    at = Instant(world.now - 61 * S)
    world.index.memory.backoffs[(SG, None)] = BackOff(SG, None, Instant(at + 60 * S), 2, since=at)

    said = world.accept()

    assert len(said.starts) == 1
    assert world.index.backoffs() == ()


def test_ready_pages_of_a_country_that_backs_off_stay_but_take_nothing():
    world = a_pool("SG").with_slots(idle("SG", ago=500 * S)).with_queued("SG", 1).allocated_as_is()
    world.index.memory.backoffs[(SG, None)] = BackOff(
        SG, None, Instant(world.now + 60 * S), 2, since=world.now
    )

    said = world.plan()
    assert (said.starts, said.closed) == ([], [])


@pytest.mark.parametrize("outcome", [Outcome.BLOCKED, Outcome.PROXY_ERROR, Outcome.BROWSER_CRASH])
def test_after_such_an_end_the_slot_closes_and_takes_nothing(outcome):
    """Section 9: a new exit, or a new process, is due."""
    world = a_pool("SG").with_slots(running("SG")).with_queued("SG", 3).allocated_as_is()
    world.end(world.slot("SG"), outcome)
    world.record(*world.accept().actions)

    said = world.plan()

    assert said.starts == []
    assert said.closed == [world.slot("SG")]


@pytest.mark.parametrize("outcome", [Outcome.SITE_ERROR, Outcome.NOT_FOUND, Outcome.BAD_REQUEST])
def test_after_such_an_end_the_slot_stays(outcome):
    world = a_pool("SG").with_slots(running("SG")).with_queued("SG", 3).allocated_as_is()
    world.end(world.slot("SG"), outcome)
    world.record(*world.accept().actions)

    said = world.plan()

    assert [slot for _, slot in said.starts] == [world.slot("SG")]
    assert said.closed == []


def test_back_offs_are_read_back_after_a_restart_but_not_later():
    world = a_pool("SG")
    world.index.memory.since = None
    known = BackOff(SG, SHOP, Instant(world.now + 60 * S), 3)

    world.index.put_backoff(known)
    world.accept()
    world.index.put_backoff(replace(known, failures=1))

    assert world.index.backoffs() == (known,)


@pytest.mark.parametrize(("permits", "spare_slots"), [(2, 1), (8, 0)], ids=["no permit", "no slot"])
def test_a_probe_takes_the_place_of_an_idle_page_when_there_is_no_other(permits, spare_slots):
    """Those pages take nothing before the probe is ready: without this nothing would ever happen again."""
    world = a_pool("SG", max_concurrent=permits, idle_ms=3_600 * S, interval_ms=3_600 * S)
    world.with_slots(idle("SG", ago=200 * S), idle("SG", ago=190 * S), *[empty("SG")] * spare_slots)
    world.with_queued("SG", 5).allocated_as_is()
    at = Instant(world.now - 61 * S)
    world.index.memory.backoffs[(SG, None)] = BackOff(SG, None, Instant(at + 60 * S), 2, since=at)

    said = world.accept()

    assert said.closed == [world.slot("SG", 0)]
    assert said.starts == []
    assert world.later(1 * S).accept().closed == []
