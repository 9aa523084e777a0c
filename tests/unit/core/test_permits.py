"""Permits to countries (DESIGN section 5, "Permits to countries")."""

from pageslots.core.model import Country, GrantedFor
from pageslots.core.permits import Standing, Target, grants, targets, waiting

SG, MY, TH = Country("SG"), Country("MY"), Country("TH")
STARVATION = 50_000


def aims(usable: int, *standings: Standing) -> dict[str, int]:
    return {code: aim.total for code, aim in targets(usable, standings, STARVATION).items()}


def test_needs_come_before_wishes():
    a = Standing(SG, needed=1, wanted=7, slots=7)
    b = Standing(MY, needed=3, wanted=3, slots=3)

    assert targets(5, [a, b], STARVATION) == {MY: Target(3, 3), SG: Target(1, 2)}


def test_needs_are_shared_when_permits_are_short():
    a, b = Standing(SG, needed=10, wanted=10, slots=10), Standing(MY, needed=10, wanted=10, slots=10)

    assert aims(8, a, b) == {SG: 4, MY: 4}


def test_a_starving_country_has_a_target_of_one_from_the_largest():
    a = Standing(SG, needed=20, wanted=20, slots=20, held=8)
    b = Standing(MY, needed=1, wanted=1, slots=1, dispatchable=1, waited_ms=50_001)

    assert aims(8, a, b) == {SG: 7, MY: 1}
    assert aims(8, a, Standing(MY, needed=1, wanted=1, slots=1, dispatchable=1, waited_ms=0)) == {
        SG: 8,
        MY: 0,
    }


def test_with_one_permit_countries_take_turns():
    """The only permit goes to who has waited longer."""
    a = Standing(SG, needed=9, wanted=9, slots=9, held=1, dispatchable=1, waited_ms=3_000)
    b = Standing(MY, needed=1, wanted=1, slots=1, dispatchable=1, waited_ms=51_000)

    assert aims(1, a, b) == {SG: 0, MY: 1}


def test_a_free_permit_goes_to_the_country_furthest_below_what_it_needs():
    a = Standing(SG, needed=4, wanted=4, slots=4, held=3, vacant=1)
    b = Standing(MY, needed=4, wanted=4, slots=4, held=1, vacant=3)
    targeted = {SG: Target(4, 4), MY: Target(4, 4)}

    assert [c for c, _ in grants(3, [a, b], targeted, STARVATION)] == [MY, MY, MY]


def test_equal_ones_are_served_by_waiting_then_by_code():
    a = Standing(SG, needed=1, wanted=1, slots=1, vacant=1, waited_ms=10)
    b = Standing(MY, needed=1, wanted=1, slots=1, vacant=1, waited_ms=10)
    c = Standing(TH, needed=1, wanted=1, slots=1, vacant=1, waited_ms=20)
    targeted = dict.fromkeys([SG, MY, TH], Target(1, 1))

    assert [code for code, _ in grants(3, [a, b, c], targeted, STARVATION)] == [TH, MY, SG]


def test_a_spare_page_never_makes_a_request_wait():
    """SG is 5 below its target with spare pages, MY 1 below with a request: MY first."""
    a = Standing(SG, needed=1, wanted=6, slots=6, held=1, vacant=5)
    b = Standing(MY, needed=1, wanted=1, slots=1, vacant=1, dispatchable=1, waited_ms=10)
    targeted = {SG: Target(1, 6), MY: Target(1, 1)}

    assert grants(2, [a, b], targeted, STARVATION) == [(MY, GrantedFor.NEEDED), (SG, GrantedFor.SPARE)]


def test_a_country_that_cannot_use_a_permit_does_not_block_the_next():
    """Case P8: a free permit never waits beside a waiter."""
    a = Standing(SG, needed=9, wanted=9, slots=9, held=0, vacant=0)
    b = Standing(MY, needed=1, wanted=1, slots=1, vacant=1)
    targeted = {SG: Target(9, 9), MY: Target(1, 1)}

    assert [code for code, _ in grants(5, [a, b], targeted, STARVATION)] == [MY]


def test_starting_slots_are_supply():
    """Case D4: requests that starting slots will serve wait for no further permit."""
    standing = Standing(SG, needed=4, wanted=4, slots=4, held=2, preparing=2, dispatchable=2)

    assert waiting(standing, Target(4, 4)) == 0
    assert waiting(Standing(SG, needed=4, slots=4, held=2, preparing=0, dispatchable=2), Target(4, 4)) == 2
