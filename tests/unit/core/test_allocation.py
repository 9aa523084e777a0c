"""Slots to countries (DESIGN section 5, "Allocation")."""

from fractions import Fraction

from pageslots.core.allocation import Claim, allocate
from pageslots.core.model import Country

SG, MY, TH = Country("SG"), Country("MY"), Country("TH")
THIRD = Fraction(1, 3)


def shares(*claims: Claim, total: int, per_slot: Fraction = THIRD) -> dict[str, int]:
    return allocate(
        claims,
        total,
        unfinished_weight=30,
        finished_weight=10,
        min_requests_per_slot=per_slot,
        starvation_ms=50_000,
    )


def test_the_documented_example_shares_7_6_3_2_2_0():
    """The example that DESIGN section 5 promises to users."""
    unfinished, finished = [2, 2, 1, 1, 0, 0], [8, 6, 3, 1, 4, 0]
    claims = [
        Claim(Country(code), unfinished=u, finished=f)
        for code, u, f in zip("ABCDEF", unfinished, finished, strict=True)
    ]

    assert list(shares(*claims, total=20).values()) == [7, 6, 3, 2, 2, 0]


def test_without_any_demand_nobody_gets_a_slot_but_the_warm_minimum():
    assert shares(Claim(SG), Claim(MY, min_ready=2), total=10) == {SG: 0, MY: 2}


def test_what_max_slots_cuts_off_is_shared_again():
    claims = [Claim(SG, unfinished=80, max_slots=2), Claim(MY, unfinished=10), Claim(TH, unfinished=10)]

    assert shares(*claims, total=10) == {SG: 2, MY: 4, TH: 4}


def test_a_minimum_is_taken_from_the_others():
    claims = [Claim(SG, unfinished=98), Claim(MY, unfinished=1, min_ready=4)]

    assert shares(*claims, total=10) == {SG: 6, MY: 4}


def test_minimums_beyond_the_total_are_cut_in_the_order_of_codes():
    """Admission refuses such a pool; an index must not exceed the total all the same (invariant I5)."""
    assert shares(Claim(SG, min_ready=3), Claim(MY, min_ready=3), total=4) == {SG: 1, MY: 3}


def test_a_country_borrows_from_one_that_has_more_than_it_can_use():
    """SG finished 200 and has one request left: worth 3 slots. MY has five requests and a small share."""
    claims = [Claim(SG, unfinished=1, finished=200), Claim(MY, unfinished=5)]

    # by score 9 : 1, then MY borrows up to its 5 requests while SG keeps the 3 it could use
    assert shares(*claims, total=10) == {SG: 5, MY: 5}


def test_nobody_borrows_from_a_country_that_could_use_its_slots():
    """1 request fewer than one slot's worth of surplus."""
    claims = [Claim(SG, unfinished=1_000), Claim(MY, unfinished=1)]

    assert shares(*claims, total=10) == {SG: 10, MY: 0}


def test_a_starving_country_gets_one_from_the_largest():
    """Case D5: 1,000 requests there, 1 here."""
    claims = [Claim(SG, unfinished=1_000), Claim(MY, unfinished=1, waited_ms=50_001)]

    assert shares(*claims, total=10) == {SG: 9, MY: 1}


def test_a_country_is_not_starving_before_its_time():
    claims = [Claim(SG, unfinished=1_000), Claim(MY, unfinished=1, waited_ms=50_000)]

    assert shares(*claims, total=10)[MY] == 0


def test_a_country_with_a_running_request_keeps_a_slot_for_it():
    claims = [Claim(SG, unfinished=1_000), Claim(MY, unfinished=1, running=1)]

    assert shares(*claims, total=10) == {SG: 9, MY: 1}


def test_with_fewer_slots_than_countries_the_longest_waiter_takes_its_turn():
    """SG and MY have the two slots; TH has waited longer than both."""
    claims = [
        Claim(SG, unfinished=10, waited_ms=2_000, running=1),
        Claim(MY, unfinished=10, waited_ms=1_000, running=1),
        Claim(TH, unfinished=1, waited_ms=60_000),
    ]

    # MY was served last, so it gives; its running request drains: it does not take the slot back at once
    assert shares(*claims, total=2) == {SG: 1, MY: 0, TH: 1}


def test_the_longest_starving_is_served_first():
    claims = [
        Claim(SG, unfinished=1_000, waited_ms=65_000),
        Claim(MY, unfinished=1, waited_ms=60_000),
        Claim(TH, unfinished=1, waited_ms=70_000),
    ]

    assert shares(*claims, total=2) == {SG: 1, MY: 0, TH: 1}
