"""Who gets nothing new for how long (DESIGN section 5, "Back-off").

From how attempts and preparations ended; for `plan`. A country backs off after its proxies or browsers failed, a
(country, site) after it blocked. The first failure in a row costs no more than the cooldown: another slot, with
another exit, tries at once.
"""

from pageslots.core.actions import NoteBackOff
from pageslots.core.model import SECOND, BackOff, Country, Instant, Outcome, Report, Site

FIRST_MS = 60 * SECOND
LONGEST_MS = 600 * SECOND
LONGEST_RETRY_AFTER_MS = 3_600 * SECOND
"""A site may ask for more patience than our own back-off, but not for ever."""


def wait_ms(failures: int) -> int:
    """How long after that many failures in a row: 0, 60, 120, 240, 480, 600, 600 … seconds."""
    if failures < 2:
        return 0
    return min(LONGEST_MS, FIRST_MS << min(failures - 2, 10))


def is_wave(known: BackOff | None, begun: Instant) -> bool:
    """Whether what began then failed for a reason that is already counted: several at once are one failure."""
    return known is not None and begun < known.since


def site_after(
    known: BackOff | None,
    report: Report,
    *,
    country: Country,
    site: Site,
    begun: Instant,
    cooldown_ms: int,
    now: Instant,
) -> NoteBackOff | None:
    """What the end of an attempt means for its (country, site); None: nothing changes."""
    if report.outcome is Outcome.BLOCKED:
        patience = min(report.retry_after_ms or 0, LONGEST_RETRY_AFTER_MS)
        if known is not None and is_wave(known, begun):
            until = Instant(max(known.until, now + patience))
            return (
                None
                if until == known.until
                else NoteBackOff(country, site, until, known.failures, since=known.since)
            )
        failures = 1 + (known.failures if known is not None else 0)
        wait = max(cooldown_ms, wait_ms(failures), patience)
        return NoteBackOff(country, site, Instant(now + wait), failures, since=now)
    if known is not None and report.new_ok_pages > 0:
        return NoteBackOff(country, site, None, 0)
    return None


def country_failed(
    known: BackOff | None, *, country: Country, begun: Instant, gave_up: bool, now: Instant
) -> NoteBackOff | None:
    """A proxy failed in an attempt, or (`gave_up`) a slot could not be prepared again and again."""
    if is_wave(known, begun):
        return None
    failures = 1 + (known.failures if known is not None else 0)
    if gave_up:
        failures = max(2, failures)
    return NoteBackOff(country, None, Instant(now + wait_ms(failures)), failures, since=now)


def country_recovered(known: BackOff | None, *, country: Country) -> NoteBackOff | None:
    """An attempt got a page through, or a probe slot is ready."""
    return None if known is None else NoteBackOff(country, None, None, 0)


def holds_back(known: BackOff | None) -> bool:
    """Whether this is a back-off (or its probing) and not just one failure remembered."""
    return known is not None and known.failures >= 2
