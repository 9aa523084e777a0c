"""Laws of the rules (DESIGN section 5), for every input that a pool can produce."""

from fractions import Fraction
from heapq import heapify

from hypothesis import given
from hypothesis import strategies as st
from tests.reach import assert_reaches

from pageslots.core import backoff, preparation
from pageslots.core.allocation import Claim, allocate, bounded_shares, slots_for
from pageslots.core.dispatch import PRIORITY_MS, queue_key
from pageslots.core.heaps import Timers, in_order
from pageslots.core.model import Country, IdleClosings, Instant, RequestUid
from pageslots.core.permits import Standing, Target, grants, targets, waiting
from pageslots.core.shares import largest_remainder

CODES = [Country(a + b) for a in "ABCDEFG" for b in "AB"]
STARVATION = 50_000


def weights(largest: int = 40) -> st.SearchStrategy[dict[Country, int]]:
    """Weights of some countries, often equal, often 0."""
    return st.dictionaries(
        st.sampled_from(CODES), st.one_of(st.integers(0, 4), st.integers(0, largest)), max_size=10
    )


def has_equal_remainders(drawn: dict[Country, int]) -> bool:
    whole = sum(drawn.values())
    remainders = [7 * weight % whole for weight in drawn.values() if whole and 7 * weight % whole]
    return len(remainders) != len(set(remainders))


def test_weights_reach_equal_remainders_and_none_at_all():
    assert_reaches(weights(), has_equal_remainders, share=0.1)
    assert_reaches(weights(), lambda drawn: drawn and not any(drawn.values()), share=0.01)


# --- largest remainder


@given(weights(), st.integers(0, 500))
def test_shares_add_up(drawn, total):
    """To the total, or to 0 when nobody weighs anything."""
    assert sum(largest_remainder(total, drawn).values()) == (total if any(drawn.values()) else 0)


@given(weights(), st.integers(0, 500))
def test_a_share_is_its_exact_portion_rounded_down_or_up(drawn, total):
    whole = sum(drawn.values())
    for country, share in largest_remainder(total, drawn).items():
        assert whole == 0 or 0 <= share - total * drawn[country] // whole <= 1


@given(weights(), st.integers(0, 500))
def test_a_larger_weight_never_gets_less(drawn, total):
    shares = largest_remainder(total, drawn)
    for a in drawn:
        for b in drawn:
            if drawn[a] > drawn[b]:
                assert shares[a] >= shares[b]


@given(weights(), st.integers(0, 500), st.randoms())
def test_the_order_of_the_input_does_not_matter(drawn, total, dice):
    shuffled = list(drawn.items())
    dice.shuffle(shuffled)
    assert largest_remainder(total, dict(shuffled)) == largest_remainder(total, drawn)


# --- allocation


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[Claim], int, Fraction]:
    """Claims, slots, and minRequestsPerSlot; Σ minReady ≤ slots, as admission demands."""
    total = draw(st.integers(0, 30))
    left = total
    claims = []
    for code in draw(st.lists(st.sampled_from(CODES), unique=True, max_size=8)):
        min_ready = draw(st.sampled_from([0, 0, 0, 1, 2]))
        min_ready = min(min_ready, left)
        left -= min_ready
        unfinished = draw(st.sampled_from([0, 0, 1, 2, 5, 40, 1_000]))
        claims.append(
            Claim(
                code,
                unfinished=unfinished,
                finished=draw(st.sampled_from([0, 0, 3, 50])),
                running=min(unfinished, draw(st.sampled_from([0, 0, 1]))),
                min_ready=min_ready,
                max_slots=draw(st.sampled_from([None, None, max(1, min_ready), max(3, min_ready)])),
                waited_ms=None
                if unfinished == 0
                else draw(st.sampled_from([None, 0, 10_000, STARVATION + 1, 90_000])),
            )
        )
    return claims, total, draw(st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(10)]))


def allocated(drawn: tuple[list[Claim], int, Fraction]) -> dict[Country, int]:
    claims, total, per_slot = drawn
    return allocate(
        claims,
        total,
        unfinished_weight=30,
        finished_weight=10,
        min_requests_per_slot=per_slot,
        starvation_ms=STARVATION,
    )


def starves(drawn: tuple[list[Claim], int, Fraction]) -> bool:
    return any((claim.waited_ms or 0) > STARVATION for claim in drawn[0])


def has_fewer_slots_than_countries(drawn: tuple[list[Claim], int, Fraction]) -> bool:
    return 0 < drawn[1] < sum(claim.unfinished > 0 for claim in drawn[0])


def is_cut_by_a_maximum(drawn: tuple[list[Claim], int, Fraction]) -> bool:
    slots = allocated(drawn)
    return any(claim.max_slots is not None and slots[claim.country] == claim.max_slots for claim in drawn[0])


def test_pools_reach_starvation_scarcity_and_bounds():
    assert_reaches(pools(), starves, share=0.2)
    assert_reaches(pools(), has_fewer_slots_than_countries, share=0.03)
    assert_reaches(pools(), is_cut_by_a_maximum, share=0.1)


@given(pools())
def test_an_allocation_never_exceeds_the_slots(drawn):
    """Invariant I5."""
    assert sum(allocated(drawn).values()) <= drawn[1]


@given(pools())
def test_an_allocation_keeps_within_each_country_s_bounds(drawn):
    """A warm minimum gives way only to countries that starve or run something."""
    slots = allocated(drawn)
    fed = sum(slots[c.country] == 1 for c in drawn[0])
    for claim in drawn[0]:
        assert 0 <= slots[claim.country] <= (drawn[1] if claim.max_slots is None else claim.max_slots)
        assert slots[claim.country] >= claim.min_ready - fed


@given(pools())
def test_all_slots_are_used_while_a_country_without_a_maximum_asks(drawn):
    claims, total, _ = drawn
    if any(claim.max_slots is None and claim.unfinished + claim.finished > 0 for claim in claims):
        assert sum(allocated(drawn).values()) == total


@given(pools())
def test_the_longest_starving_country_has_a_slot(drawn):
    """Invariant I7's first step: if there is a slot at all, who has waited longest is not left without one."""
    claims, total, _ = drawn
    hungry = [c for c in claims if c.waited_ms is not None and c.waited_ms > STARVATION and c.max_slots != 0]
    if hungry and total > 0:
        longest = max(c.waited_ms or 0 for c in hungry)
        slots = allocated(drawn)
        assert any(slots[c.country] > 0 for c in hungry if c.waited_ms == longest)


@given(pools())
def test_nobody_borrows_more_than_it_can_use_nor_from_who_can_use_it(drawn):
    """Without the last step: whoever has less than by share could use it no more; lenders keep what they can use."""
    claims = [Claim(c.country, c.unfinished, c.finished, 0, c.min_ready, c.max_slots) for c in drawn[0]]
    total, per_slot = drawn[1], drawn[2]
    shares = bounded_shares(
        total,
        {c.country: 30 * c.unfinished + 10 * c.finished for c in claims},
        {c.country: min(c.min_ready, total) for c in claims},
        {c.country: total if c.max_slots is None else min(total, c.max_slots) for c in claims},
    )
    slots = allocated((claims, total, per_slot))
    for claim in claims:
        usable = slots_for(claim.unfinished, per_slot)
        if slots[claim.country] > shares[claim.country]:
            assert slots[claim.country] <= min(claim.unfinished, usable)
        if slots[claim.country] < shares[claim.country]:
            assert slots[claim.country] >= max(claim.min_ready, usable)


@given(pools(), st.randoms())
def test_the_order_of_countries_does_not_matter_to_allocation(drawn, dice):
    claims, total, per_slot = drawn
    shuffled = list(claims)
    dice.shuffle(shuffled)
    assert allocated((shuffled, total, per_slot)) == allocated(drawn)


# --- preparation


@given(
    st.integers(0, 20),
    st.integers(0, 30),
    st.integers(0, 3),
    st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(7, 2)]),
    st.one_of(st.none(), st.builds(IdleClosings, st.integers(1, 9), st.integers(0, 30))),
)
def test_what_is_wanted_lies_between_need_and_slots(slots, demand, min_ready, per_slot, closings):
    want = preparation.wanted(slots, demand, min_ready, per_slot, closings)

    assert want <= slots
    assert want >= min(slots, min_ready)
    if per_slot <= 1 or (closings is not None and not preparation.forgotten(closings, demand)):
        assert want >= preparation.needed(slots, demand) or per_slot > 1
    # idling that closes down to `kept` never makes preparation want more than what it left
    assert preparation.kept(slots, demand, min_ready) >= preparation.needed(slots, demand)


@given(st.integers(1, 20), st.integers(0, 30), st.integers(0, 3), st.integers(1, 30))
def test_after_enough_idle_closings_nothing_beyond_what_is_kept_is_wanted(slots, demand, min_ready, closed):
    """Case D19 as a law: as many closings as there were spare pages leave no wish for another."""
    per_slot = Fraction(1, 3)
    kept = preparation.kept(slots, demand, min_ready)
    spare = preparation.wanted(slots, demand, min_ready, per_slot, None) - kept
    closings = IdleClosings(max(closed, spare), demand)
    if spare > 0:
        assert preparation.wanted(slots, demand, min_ready, per_slot, closings) == kept


# --- permits


@st.composite
def standings(draw: st.DrawFn) -> tuple[int, list[Standing]]:
    """P and what countries need, want and hold; together they hold at most P."""
    usable = draw(st.integers(0, 12))
    left = usable
    found = []
    for code in draw(st.lists(st.sampled_from(CODES), unique=True, max_size=7)):
        slots = draw(st.integers(0, 8))
        needed = draw(st.integers(0, slots))
        held = draw(st.integers(0, min(slots, left)))
        left -= held
        dispatchable = draw(st.integers(0, needed))
        found.append(
            Standing(
                code,
                needed=needed,
                wanted=draw(st.integers(needed, slots)),
                slots=slots,
                held=held,
                vacant=slots - held,
                preparing=draw(st.integers(0, held)),
                dispatchable=dispatchable,
                waited_ms=draw(st.sampled_from([0, 1_000, STARVATION + 1, 200_000]))
                if dispatchable
                else None,
            )
        )
    return usable, found


def has_a_starving_country(drawn: tuple[int, list[Standing]]) -> bool:
    usable, found = drawn
    need = largest_remainder(min(usable, sum(s.needed for s in found)), {s.country: s.needed for s in found})
    return any(s.waited > STARVATION and need[s.country] == 0 for s in found)


def test_standings_reach_starvation_and_scarcity():
    assert_reaches(standings(), has_a_starving_country, share=0.05)
    assert_reaches(standings(), lambda d: sum(s.needed for s in d[1]) > d[0] > 0, share=0.2)


@given(standings())
def test_targets_add_up_to_p_at_most_and_wish_for_no_more_than_slots(drawn):
    usable, found = drawn
    aims = targets(usable, found, STARVATION)

    assert sum(aim.total for aim in aims.values()) <= usable
    for standing in found:
        assert 0 <= aims[standing.country].needed <= aims[standing.country].total <= standing.slots


@given(standings())
def test_permits_are_spared_only_when_nobody_wants_them(drawn):
    usable, found = drawn
    aims = targets(usable, found, STARVATION)
    assert sum(aim.total for aim in aims.values()) == min(usable, sum(s.wanted for s in found))


@given(standings())
def test_the_longest_starving_country_has_a_target(drawn):
    """Invariant I7."""
    usable, found = drawn
    hungry = [s for s in found if s.waited > STARVATION and s.slots > 0]
    if usable and hungry:
        aims = targets(usable, found, STARVATION)
        longest = max(s.waited for s in hungry)
        assert any(aims[s.country].total > 0 for s in hungry if s.waited == longest)


@given(standings(), st.integers(0, 12))
def test_grants_go_to_slots_that_are_there_and_never_beyond_a_target(drawn, free):
    """Case P8: no permit stays free beside a country that could take it."""
    usable, found = drawn
    aims = targets(usable, found, STARVATION)
    given_to = [code for code, _ in grants(free, found, aims, STARVATION)]

    assert len(given_to) <= free
    for standing in found:
        got = given_to.count(standing.country)
        assert got <= max(0, min(standing.vacant, aims[standing.country].total - standing.held))
        could = min(standing.vacant, aims[standing.country].total - standing.held)
        assert len(given_to) == free or got >= could


@given(standings())
def test_what_waits_is_entitled_and_has_nothing_on_the_way(drawn):
    usable, found = drawn
    aims = targets(usable, found, STARVATION)
    for standing in found:
        count = waiting(standing, aims[standing.country])
        assert 0 <= count <= standing.dispatchable
        assert count == 0 or standing.held < aims[standing.country].needed


@given(standings())
def test_when_something_waits_for_want_of_permits_somebody_is_over_its_target(drawn):
    """A yield always finds who yields: targets add up to P."""
    usable, found = drawn
    aims = targets(usable, found, STARVATION)
    asked = sum(waiting(s, aims[s.country]) for s in found)
    held = sum(s.held for s in found)
    over = sum(max(0, s.held - aims[s.country].total) for s in found)
    assert asked <= (usable - held) + over


@given(standings())
def test_at_its_targets_a_pool_rests(drawn):
    """No oscillation (case D22): when everybody holds its target, nothing is granted and nothing waits."""
    usable, found = drawn
    aims = targets(usable, found, STARVATION)
    calm = [
        Standing(
            s.country,
            s.needed,
            s.wanted,
            s.slots,
            aims[s.country].total,
            s.slots,
            0,
            s.dispatchable,
            s.waited_ms,
        )
        for s in found
    ]
    again = targets(usable, calm, STARVATION)
    assert again == aims
    assert grants(usable, calm, aims, STARVATION) == []
    assert all(waiting(s, Target(aims[s.country].needed, aims[s.country].total)) == 0 for s in calm)


# --- dispatch, back-off, heaps


@given(
    st.integers(-100, 100),
    st.integers(0, 10**9),
    st.integers(-100, 100),
    st.integers(0, 10**9),
    st.integers(0, 10**7),
)
def test_the_order_of_two_queues_never_changes_with_time(p1, since1, p2, since2, later):
    """The stored key orders as (priority x 300 s + waited) does, at any instant."""
    now = max(since1, since2) + later
    first = queue_key((-p1, Instant(since1), RequestUid("a")), Instant(since1))
    second = queue_key((-p2, Instant(since2), RequestUid("b")), Instant(since2))
    urgency1 = p1 * PRIORITY_MS + now - since1
    urgency2 = p2 * PRIORITY_MS + now - since2
    if urgency1 != urgency2:
        assert (first < second) == (urgency1 > urgency2)


@given(st.integers(0, 10_000))
def test_back_offs_grow_and_are_bounded(failures):
    assert backoff.wait_ms(failures) <= backoff.wait_ms(failures + 1) <= backoff.LONGEST_MS


@given(st.lists(st.integers()))
def test_a_heap_is_read_in_order_without_changing_it(values):

    heapify(values)
    before = list(values)
    assert list(in_order(values)) == sorted(values)
    assert values == before


@given(st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 50)))), st.integers(0, 50))
def test_timers_tell_what_is_due_and_what_comes_next(changes, now):
    timers: Timers[int] = Timers()
    truth: dict[int, int] = {}
    for key, at in changes:
        timers.set(key, None if at is None else Instant(at))
        if at is None:
            truth.pop(key, None)
        else:
            truth[key] = at

    assert sorted(timers.due(Instant(now))) == sorted(k for k, at in truth.items() if at <= now)
    assert timers.next_after(Instant(now)) == min((at for at in truth.values() if at > now), default=None)
