"""Why a queued request waits: one word and a sentence (invariant I11)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.world import NOON, S, World, a_pool, idle, running

from pageslots.core.model import BackOff, Country, CountrySettings, Instant, Site, SiteSettings
from pageslots.core.waiting import Waiting, why_waiting

SG, SHOP = Country("SG"), Site("shop.example")


def why(world: World) -> Waiting:
    request = next(world.queued())
    found = why_waiting(world.index, request, world.now)
    assert found.message
    return found.reason


@pytest.mark.parametrize(
    ("pool", "request_", "reason"),
    [
        ({}, {"suspended": True}, Waiting.SUSPENDED),
        ({"suspended": True}, {}, Waiting.POOL_SUSPENDED),
        ({"deleted": True}, {}, Waiting.NO_SUCH_POOL),
        ({"countries": {}}, {}, Waiting.NO_SUCH_COUNTRY),
        ({"countries": {SG: CountrySettings(SG, suspended=True)}}, {}, Waiting.COUNTRY_SUSPENDED),
        ({"sites": {SHOP: SiteSettings(SHOP, suspended=True)}}, {}, Waiting.SITE_SUSPENDED),
        ({}, {"next_attempt": Instant(NOON + 9 * S)}, Waiting.RETRY_SCHEDULED),
    ],
)
def test_what_somebody_set_is_named(pool: dict[str, Any], request_: dict[str, Any], reason: Waiting):
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG", site=SHOP, **request_).allocated_as_is()

    assert why(world.change(**pool)) is reason


def test_back_offs_are_named():
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG", site=SHOP).allocated_as_is()
    site = BackOff(SG, SHOP, Instant(world.now + 60 * S), 2)
    world.index.memory.backoffs[(SG, SHOP)] = site
    assert why(world) is Waiting.SITE_BACK_OFF
    world.index.memory.backoffs[(SG, None)] = replace(site, site=None)
    assert why(world) is Waiting.COUNTRY_BACK_OFF


def test_politeness_is_named():
    world = a_pool("SG", max_per_site=1, cooldown_ms=9 * S)
    world.with_slots(running("SG", site=SHOP, ago=1 * S)).with_queued("SG", site=SHOP).allocated_as_is()
    assert why(world) is Waiting.SITE_LIMIT_REACHED
    assert why(world.change(max_per_site=2)) is Waiting.SITE_COOLING_DOWN


def test_want_of_slots_is_named():
    assert why(a_pool("SG").with_queued("SG")) is Waiting.NO_SLOTS_FOR_COUNTRY
    assert why(a_pool("SG").with_slots(running("SG")).with_queued("SG")) is Waiting.WAITING_FOR_SLOT
