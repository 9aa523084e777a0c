"""Each invariant's check finds a bug that breaks the invariant: a check that can't fail proves nothing."""

from collections.abc import Callable

import pytest
from tests.property.core.test_long_runs import Chaos
from tests.tinyworld import Course, TinyWorld, randomly
from tests.world import S, a_pool

from pageslots.core import allocation, granting, moving, permits, sweeps
from pageslots.core.actions import CloseSlot, NoteDraining
from pageslots.core.draft import Draft
from pageslots.core.gathering import Gatherer
from pageslots.core.model import DrainReason
from pageslots.core.numbers import Numbers
from pageslots.core.queues import Queues
from pageslots.core.roster import Roster
from pageslots.core.slots import Role

Patch = pytest.MonkeyPatch


def chaos(seeds: range = range(4)) -> None:
    """What `test_long_runs` does, a little shorter."""
    for seed in seeds:
        run = Chaos(seed)
        for number in range(60):
            run.step(number)
        run.resume()
        run.world.settle(6 * 3_600 * S)
        run.world.run(3_600 * S)
        run.world.check_settled()


def two_countries(seconds: int = 240) -> TinyWorld:
    world = TinyWorld(a_pool("SG", "MY", max_concurrent=4).settings, Course(run_ms=randomly(5, 500, 9_000)))
    for _ in range(200):
        world.ask("SG")
    world.run(20 * S)
    world.ask("MY")
    return world.run(seconds * S)


def test_i1_i2_a_number_that_is_not_free_is_granted(monkeypatch: Patch):
    monkeypatch.setattr(Numbers, "free", lambda self: iter(range(self._settings.max_concurrent)))
    monkeypatch.setattr(Numbers, "held", 0)
    with pytest.raises(AssertionError):
        two_countries()


def test_i2_i3_a_vanished_pod_counts_as_dead_at_once(monkeypatch: Patch):
    real = sweeps.end_of
    early = lambda gone_at, *, terminated, settings: real(gone_at, terminated=True, settings=settings)  # noqa: E731
    monkeypatch.setattr(sweeps, "end_of", early)
    monkeypatch.setattr("pageslots.core.runs.end_of", early)
    with pytest.raises(AssertionError, match=r"I2|I3|at once again"):
        chaos(range(8))


def test_i3_a_slot_that_a_request_names_is_taken_for_free(monkeypatch: Patch):
    monkeypatch.setattr(Gatherer, "_named", lambda *_: (None, None))
    with pytest.raises(AssertionError):
        two_countries()


def test_i5_slot_names_are_given_twice(monkeypatch: Patch):
    monkeypatch.setattr(
        moving, "_free_numbers", lambda draft: iter(range(draft.index.settings.max_page_slots))
    )
    with pytest.raises(AssertionError):
        chaos()


def test_i6_a_running_slot_is_closed_for_a_yield(monkeypatch: Patch):
    def close_busy(draft, situation, view):
        situation.leave(draft, view)
        draft.note(NoteDraining(view.uid, DrainReason.YIELD_PERMIT))
        pod = view.facts.pod
        draft.emit(CloseSlot(view.uid, pod.number, pod.uid, "YieldPermit"))

    monkeypatch.setattr(granting, "_give_back", close_busy)
    with pytest.raises(AssertionError, match="although"):
        two_countries()


@pytest.mark.parametrize("where", [allocation, permits])
def test_i7_starving_countries_get_nothing(monkeypatch: Patch, where: object):
    monkeypatch.setattr(where, "_feed_the_starving", lambda *_: None)
    codes = ["AA", "BB", "CC", "DD", "EE", "FF"]
    # permits: one for six countries; slots: two for six countries
    few = {"max_concurrent": 1, "max_slots": 6} if where is permits else {"max_concurrent": 2, "max_slots": 2}
    world = TinyWorld(a_pool(*codes, **few).settings)
    for _ in range(200):
        for code in codes[:2]:
            world.ask(code)
    for code in codes[2:]:
        world.ask(code)

    world.run(300 * S)

    assert {request.country for _, request, _ in world.seen.starts} < set(codes)


def test_i8_sites_have_no_cooldown(monkeypatch: Patch):
    real = Queues.limits
    monkeypatch.setattr(Queues, "limits", lambda self, site: (real(self, site)[0], 0, False))
    with pytest.raises(AssertionError, match="I8"):
        chaos()


def test_i8_sites_bear_any_number_of_attempts(monkeypatch: Patch):
    real = Queues.limits
    monkeypatch.setattr(Queues, "limits", lambda self, site: (99, *real(self, site)[1:]))
    with pytest.raises(AssertionError, match="I8"):
        chaos()


def test_i11_permits_of_vanished_pods_are_never_freed(monkeypatch: Patch):
    monkeypatch.setattr(sweeps, "_free_after", lambda *_: [])
    with pytest.raises(AssertionError, match=r"I11|not settled"):
        chaos()


def test_p8_a_free_permit_waits_beside_a_waiter(monkeypatch: Patch):
    monkeypatch.setattr(permits, "grants", lambda *_: [])
    with pytest.raises(AssertionError, match="not settled"):
        chaos(range(1))


@pytest.mark.parametrize(
    "forgets",
    [
        lambda patch: patch.setattr(Queues, "touch", lambda *_: None),
        lambda patch: patch.setattr(Roster, "touch", lambda *_: None),
        lambda patch: patch.setattr(Numbers, "touch", lambda *_: None),
    ],
    ids=["queues", "roster", "numbers"],
)
def test_the_law_of_the_index_something_is_not_kept_in_step(
    monkeypatch: Patch, forgets: Callable[[Patch], None]
):
    forgets(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        chaos()


def test_idempotency_a_deed_is_asked_for_although_it_is_under_way(monkeypatch: Patch):
    def emit(self, deed):
        self._actions.append(deed)
        return True

    monkeypatch.setattr(Draft, "emit", emit)
    with pytest.raises(AssertionError, match="at once again"):
        two_countries()


def test_d19_idling_is_not_remembered(monkeypatch: Patch):
    monkeypatch.setattr("pageslots.core.preparation.forgotten", lambda *_: True)
    world = TinyWorld(a_pool("SG", idle_ms=30 * S).settings, Course(run_ms=lambda _: 900 * S))
    world.ask("SG")
    world.run(600 * S)

    assert world.seen.pods_created["SG"] > 3


def test_d19_without_that_bug_nothing_is_opened_twice():
    world = TinyWorld(a_pool("SG", idle_ms=30 * S).settings, Course(run_ms=lambda _: 900 * S))
    world.ask("SG")
    world.run(600 * S)

    assert world.seen.pods_created["SG"] == 3
    assert world.index.roster.country("SG").held == 1
    assert len(world.index.roster.country("SG").of(Role.BUSY)) == 1
