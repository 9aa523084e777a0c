"""Why a queued request waits: the nearest thing that is missing, as one word and a sentence for people.

From the index, for one request at a time, on demand: nothing is kept for it. The order is that in which a person
could do something about it: what somebody set, then back-offs, then politeness, then slots.
"""

from dataclasses import dataclass
from enum import StrEnum

from pageslots.core import backoff
from pageslots.core.index import Index
from pageslots.core.model import SECOND, Instant, Request


class Waiting(StrEnum):
    """What a queued request waits for."""

    SUSPENDED = "Suspended"
    POOL_SUSPENDED = "PoolSuspended"
    COUNTRY_SUSPENDED = "CountrySuspended"
    SITE_SUSPENDED = "SiteSuspended"
    NO_SUCH_POOL = "NoSuchPool"
    NO_SUCH_COUNTRY = "NoSuchCountry"
    COUNTRY_BACK_OFF = "CountryBackOff"
    RETRY_SCHEDULED = "RetryScheduled"
    SITE_BACK_OFF = "SiteBackOff"
    SITE_LIMIT_REACHED = "SiteLimitReached"
    SITE_COOLING_DOWN = "SiteCoolingDown"
    NO_SLOTS_FOR_COUNTRY = "NoSlotsForCountry"
    WAITING_FOR_SLOT = "WaitingForSlot"


@dataclass(frozen=True, slots=True)
class Why:
    """A reason of the closed set, and a sentence."""

    reason: Waiting
    message: str


def why_waiting(index: Index, request: Request, now: Instant) -> Why:
    """Why this Queued request does not run now."""
    index.refresh(now)
    return (
        _set_by_people(index, request) or _backing_off(index, request, now) or _crowded(index, request, now)
    )


def _set_by_people(index: Index, request: Request) -> Why | None:  # noqa: PLR0911 -- one return per reason
    settings = index.settings
    country = settings.countries.get(request.country)
    site = settings.sites.get(request.site)
    if settings.deleted:
        return Why(Waiting.NO_SUCH_POOL, f'pool "{settings.name}" is gone')
    if country is None:
        return Why(Waiting.NO_SUCH_COUNTRY, f'pool "{settings.name}" has no country {request.country}')
    if request.suspended:
        return Why(Waiting.SUSPENDED, "spec.suspend is true")
    if settings.suspended:
        return Why(Waiting.POOL_SUSPENDED, f'pool "{settings.name}" is suspended')
    if country.suspended:
        return Why(Waiting.COUNTRY_SUSPENDED, f"country {request.country} is suspended in the pool")
    if site is not None and site.suspended:
        return Why(Waiting.SITE_SUSPENDED, f"site {request.site} is suspended in the pool")
    return None


def _seconds(until: Instant, now: Instant) -> int:
    return max(1, -(-(until - now) // SECOND))


def _backing_off(index: Index, request: Request, now: Instant) -> Why | None:
    backoffs = index.memory.backoffs
    of_country = backoffs.get((request.country, None))
    if of_country is not None and backoff.holds_back(of_country):
        failures = f"{of_country.failures} failures in a row of its proxies or browsers"
        if of_country.until > now:
            return Why(
                Waiting.COUNTRY_BACK_OFF, f"{failures}; next try in {_seconds(of_country.until, now)} s"
            )
        return Why(Waiting.COUNTRY_BACK_OFF, f"{failures}; one slot is trying")
    if request.next_attempt is not None and request.next_attempt > now:
        return Why(Waiting.RETRY_SCHEDULED, f"next attempt in {_seconds(request.next_attempt, now)} s")
    of_site = backoffs.get((request.country, request.site))
    if of_site is not None and of_site.until > now:
        wait = _seconds(of_site.until, now)
        times = "once" if of_site.failures == 1 else f"{of_site.failures} times in a row"
        return Why(Waiting.SITE_BACK_OFF, f"{request.site} blocked {times}; next try in {wait} s")
    return None


def _crowded(index: Index, request: Request, now: Instant) -> Why:
    queues = index.queues.countries.get(request.country)
    queue = None if queues is None else queues.queues.get(request.site)
    if queue is not None:
        most, _, _ = index.queues.limits(request.site)
        if queue.running >= most:
            return Why(
                Waiting.SITE_LIMIT_REACHED,
                f"{queue.running} attempts run at {request.site}, maxPerSite {most}",
            )
    if not index.roster.country(request.country).counted:
        return Why(Waiting.NO_SLOTS_FOR_COUNTRY, f"{request.country} has no slot at the moment")
    if queue is not None and queue.eligible > now:
        return Why(
            Waiting.SITE_COOLING_DOWN, f"{request.site} cools down for {_seconds(queue.eligible, now)} s"
        )
    return Why(Waiting.WAITING_FOR_SLOT, f"no slot of {request.country} is free")
