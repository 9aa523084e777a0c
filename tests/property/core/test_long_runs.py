"""Pools over hours of virtual time: what always holds (DESIGN section 3), and situations that broke others.

`TinyWorld` itself checks, after every step: a plan is a pure read; nothing is asked for twice; an index kept change by
change plans the same as a rebuilt one; I1 (each pod has its permit), I2 and I3 (nothing is started where something
may still run), I4, I5 (names), I6 (a busy slot is never closed by allocation, idling, yields or a rollout) and I8.
"""

import random
from collections import Counter
from typing import Any

import pytest
from tests.tinyworld import Course, TinyWorld, randomly
from tests.world import S, a_pool

from pageslots.core.model import Country, CountrySettings, Outcome, PoolSettings, Request, RequestState

HOUR = 3_600 * S


def pool(*countries: str | CountrySettings, **settings: Any) -> PoolSettings:
    return a_pool(*countries, **settings).settings


def warm(code: str, pages: int) -> CountrySettings:
    return CountrySettings(Country(code), min_ready=pages)


def test_two_bursts_start_ten_browsers_not_twenty():
    """Case D4: the second burst comes while the slots of the first still start: starting slots are supply."""
    world = TinyWorld(pool("SG", max_concurrent=10))
    for _ in range(10):
        world.ask("SG")
    world.run(2 * S)
    for _ in range(10):
        world.ask("SG")

    world.settle()

    assert (world.seen.most_pods, world.seen.pods_created["SG"]) == (10, 10)
    world.run(HOUR).check_settled()
    assert not world.browsers


def test_one_request_beside_a_thousand_starts_within_the_bound():
    """Case D5, invariant I7: starvation 50 s + interval 60 s + one attempt, start and preparation."""
    world = TinyWorld(pool("SG", "MY", "TH", max_concurrent=4, max_slots=10), rebuilt_every=50)
    for _ in range(1_000):
        world.ask("SG")
    world.run(30 * S)
    request = world.ask("MY")

    world.run(150 * S)

    assert world.seen.waits[request.uid] <= 60 * S


def test_a_country_that_holds_all_permits_gives_one_back_after_a_request():
    """Case D18."""
    world = TinyWorld(pool("SG", "MY", max_concurrent=8), rebuilt_every=50)
    for _ in range(1_000):
        world.ask("SG")
    world.run(30 * S)
    request = world.ask("MY")

    world.run(120 * S)

    assert world.seen.waits[request.uid] <= 60 * S
    assert world.seen.pods_created["MY"] == 1
    assert world.seen.pods_created["SG"] <= 9  # the eight, and one that took the permit over again


def test_idling_and_preparation_never_fight():
    """Case D19: more slots wanted than work; 1,000 s without new demand open no browser again."""
    world = TinyWorld(pool("SG"))
    for number in range(20):
        world.ask("SG", site=f"s{number % 2}.example")
    world.settle()
    opened = world.seen.pods_created["SG"]

    world.run(1_000 * S)

    assert world.seen.pods_created["SG"] == opened
    assert world.seen.deeds["CloseSlot"] == opened


def test_two_countries_of_equal_demand_share_and_nothing_closes():
    """Case D22."""
    world = TinyWorld(pool("SG", "MY", max_concurrent=8), rebuilt_every=50)
    for _ in range(400):
        world.ask("SG", site="a.example")
        world.ask("MY", site="b.example")

    world.run(300 * S)

    assert world.seen.pods_created == Counter(SG=4, MY=4)
    assert world.seen.closings == []
    started = Counter(request.country for _, request, _ in world.seen.starts)
    assert abs(started["SG"] - started["MY"]) <= 1


def test_exactly_one_of_eight_warm_pages_yields():
    """Case D23."""
    world = TinyWorld(
        pool(*[warm(c, 1) for c in ["AA", "BB", "CC", "DD", "EE", "FF", "GG", "HH"]], "II", max_concurrent=8)
    )
    world.run(60 * S)
    request = world.ask("II")

    world.run(50 * S)

    assert [reason for _, _, reason in world.seen.closings] == ["YieldPermit"]
    assert world.seen.waits[request.uid] <= 5 * S


def test_a_quiet_site_starts_next_beside_a_hot_one():
    """Case D24."""
    world = TinyWorld(pool("SG", max_concurrent=2, max_slots=2))
    for _ in range(300):
        world.ask("SG", site="hot.example")
    world.run(60 * S)
    quiet = world.ask("SG", site="quiet.example")
    before = len(world.seen.starts)

    world.run(10 * S)

    assert quiet.uid in [request.uid for _, request, _ in world.seen.starts[before : before + 2]]


def test_a_lowered_cap_drains_and_a_raised_one_fills_again():
    """Case P7, invariant I1: 8 busy, lowered to 3: no new permit until under 3; raised: 8 again."""
    world = TinyWorld(pool("SG"), Course(run_ms=randomly(1, 5_000, 20_000)))
    for _ in range(150):
        world.ask("SG")
    world.run(30 * S)
    assert len(world.browsers) == 8
    granted = world.seen.deeds["TakePermit"]

    world.edit_pool(max_concurrent=3)
    world.run(60 * S)

    assert sorted(world.browsers) == [0, 1, 2]
    assert world.seen.deeds["TakePermit"] == granted
    assert set(world.leases) == {0, 1, 2}
    world.edit_pool(max_concurrent=8)
    world.run(30 * S)
    assert len(world.browsers) == 8


def test_a_permit_goes_on_when_its_waiter_has_gone():
    """Case P8: MY's waiter disappears while the permit is on its way: TH's gets it."""
    world = TinyWorld(pool("SG", "MY", "TH", max_concurrent=1, max_slots=3))
    world.ask("SG")
    world.run(10 * S)
    first, second = world.ask("MY"), world.ask("TH")
    world.run(1)
    world.delete(first.uid)

    world.run(120 * S)

    assert world.requests[second.uid].state is RequestState.SUCCEEDED


def test_with_one_permit_for_six_countries_everybody_has_a_turn():
    """Invariant I7 with P = 1: nobody waits for ever, whatever the others ask for."""
    codes = ["AA", "BB", "CC", "DD", "EE", "FF"]
    world = TinyWorld(pool(*codes, max_concurrent=1, max_slots=6))
    for _ in range(200):
        world.ask("AA")
    for code in codes[1:]:
        world.ask(code)
    bound = 50 * S + 60 * S + 6 * 5 * S

    world.run(bound)

    assert {request.country for _, request, _ in world.seen.starts} == set(codes)


def test_more_countries_than_slots_take_turns():
    codes = ["AA", "BB", "CC", "DD", "EE"]
    world = TinyWorld(pool(*codes, max_concurrent=2, max_slots=2))
    for code in codes:
        for _ in range(100):
            world.ask(code)

    world.run(900 * S)

    assert {request.country for _, request, _ in world.seen.starts} == set(codes)


def test_a_country_whose_pages_never_get_ready_holds_no_permits_for_long():
    """Case D6: the other country flows at full speed."""
    world = TinyWorld(pool("SG", "MY", max_concurrent=2), Course(gives_up=lambda country: country == "SG"))
    for _ in range(20):
        world.ask("SG")
    for _ in range(100):
        world.ask("MY")

    world.run(600 * S)

    assert all(r.state is RequestState.SUCCEEDED for r in world.requests.values() if r.country == "MY")
    assert world.seen.pods_created["SG"] <= 8


def test_twenty_restarts_while_slots_start_double_nothing():
    """Case P2, invariant I10."""
    world = TinyWorld(pool("SG", max_concurrent=6), Course(pod_ms=lambda: 3_000, deed_ms=randomly(3, 0, 900)))
    for _ in range(40):
        world.ask("SG")
    for _ in range(20):
        world.run(700)
        world.restart()

    world.settle()

    assert world.seen.most_pods <= 6
    assert all(request.state is RequestState.SUCCEEDED for request in world.requests.values())
    assert all(request.attempts <= 2 for request in world.requests.values())
    world.run(HOUR).check_settled()


def test_a_new_revision_replaces_all_slots_while_work_goes_on():
    world = TinyWorld(pool("SG", max_concurrent=4, revision="old"), Course(run_ms=randomly(2, 1_000, 4_000)))
    for _ in range(300):
        world.ask("SG")
    world.run(20 * S)

    world.edit_pool(revision="new")
    world.run(120 * S)

    assert {browser.pod.revision for browser in world.browsers.values()} == {"new"}
    assert {r.state for r in world.requests.values()} <= {
        RequestState.SUCCEEDED,
        RequestState.QUEUED,
        RequestState.RUNNING,
    }


class Chaos:
    """Everything that can happen to a pool, at random."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        self.countries = [
            CountrySettings(
                Country(code), min_ready=dice.choice([0, 0, 0, 1]), max_slots=dice.choice([None, None, 3])
            )
            for code in ["AA", "BB", "CC", "DD", "EE"][: dice.randint(1, 5)]
        ]
        self.most_concurrent = 8
        settings = pool(
            *self.countries,
            max_slots=dice.randint(max(3, len(self.countries)), 15),
            max_concurrent=dice.randint(1, self.most_concurrent),
            cooldown_ms=dice.choice([0, 1_000, 5_000]),
            max_per_site=dice.choice([1, 2, 4]),
        )
        course = Course(
            pod_ms=lambda: dice.randint(100, 4_000),
            prepare_ms=lambda: dice.randint(100, 4_000),
            run_ms=lambda _: dice.randint(100, 20_000),
            end=self.end,
            deed_ms=lambda _: dice.choice([0, 1, 5, 50, 500]),
            gives_up=lambda _: dice.random() < 0.05,
        )
        self.world = TinyWorld(settings, course)

    def end(self, _request: Request, _number: int) -> dict[str, Any]:
        """Three of four attempts end well."""
        if self.dice.random() < 0.75:
            return {}
        outcome = self.dice.choice(
            [
                Outcome.BLOCKED,
                Outcome.PROXY_ERROR,
                Outcome.SITE_ERROR,
                Outcome.BROWSER_CRASH,
                Outcome.TIMEOUT,
                Outcome.BAD_REQUEST,
                Outcome.NOT_FOUND,
            ]
        )
        return {"outcome": outcome, "all_tried_blocked": True, "new_ok_pages": self.dice.choice([0, 1])}

    def step(self, number: int) -> None:
        """Some requests, and perhaps an event."""
        dice, world = self.dice, self.world
        for _ in range(dice.choice([0, 0, 1, 3, 8])):
            world.ask(
                dice.choice(self.countries).code,
                site=dice.choice([None, "hot.example", "warm.example"]),
                priority=dice.choice([0, 0, 0, 100, -100]),
            )
        what = dice.random()
        unfinished = world.unfinished()
        if what < 0.04 and world.browsers:
            world.kill_pod(dice.choice(list(world.browsers)), unseen=dice.random() < 0.5)
        elif what < 0.06:
            world.restart()
        elif what < 0.12:
            world.edit_pool(max_concurrent=dice.randint(1, self.most_concurrent))
        elif what < 0.14:
            world.edit_pool(max_page_slots=dice.randint(len(self.countries), 15))
        elif what < 0.18 and unfinished:
            world.edit(dice.choice(unfinished).uid, **dice.choice([{"stop": True}, {"suspended": True}]))
        elif what < 0.22:
            self.resume()
        elif what < 0.24 and unfinished:
            world.delete(dice.choice(unfinished).uid)
        elif what < 0.26:
            world.edit_pool(revision=f"revision-{number}")
        elif what < 0.28:
            world.edit_pool(suspended=not world.settings.suspended)
        world.run(dice.choice([100, 1_000, 5_000, 20_000]))

    def resume(self) -> None:
        """What was suspended goes on."""
        self.world.edit_pool(suspended=False)
        for request in self.world.unfinished():
            if request.suspended:
                self.world.edit(request.uid, suspended=False)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_the_invariants_hold_and_everything_settles(seed):
    """I1 to I6, I8, I10 during, I11 after 100 random events (case P13 in small)."""
    chaos = Chaos(seed)
    for number in range(100):
        chaos.step(number)
    chaos.resume()

    world = chaos.world.settle(6 * HOUR)
    world.run(HOUR)

    world.check_settled()
    assert world.seen.most_pods <= chaos.most_concurrent
    assert len(world.requests) > 50
