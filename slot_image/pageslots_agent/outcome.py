"""How a page ended, and what follows from it: the table of DESIGN section 9 as one pure function.

From: what loading it gave (`Visit`) and, for pages that could be read, what they showed (`challenges`).
For: the crawl, which retries, records or ends the attempt as the verdict says.

What the table leaves open is decided here:

| answer                                     | outcome     | again?                                          |
|--------------------------------------------|-------------|-------------------------------------------------|
| 2xx                                        | Ok          |                                                 |
| 403, 429, 503                              | Blocked     | on another slot                                 |
| 404, 410                                   | NotFound    | no                                              |
| 407                                        | ProxyError  | through another proxy                           |
| 408, 425, other 5xx                        | SiteError   | yes                                             |
| other 4xx, 1xx, 3xx that did not redirect  | SiteError   | no: the same question gets the same answer      |
| redirect loop                              | SiteError   | no                                              |
| forbidden address                          | SiteError   | no (a start page: BadRequest)                   |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum

from pageslots.wire import Outcome
from pageslots_agent.ports import LoadFault, Visit

MAX_RETRY_AFTER_MS = 3_600_000
"""A site may ask for a pause of at most this long; longer ones are cut."""


class Next(Enum):
    """What the crawl does after a page."""

    DONE = "done"  # record it
    AGAIN = "again"  # put it back, up to `pageRetries` times, then record it as failed
    LEAVE = "leave"  # put it back (a few times) and end the attempt: slot, proxy or browser are spent
    FAIL = "fail"  # record it as failed
    REFUSE = "refuse"  # end the attempt as BadRequest


@dataclass(frozen=True, slots=True)
class Verdict:
    """A page's outcome, the rule that said so, one line for people, and what follows."""

    outcome: Outcome
    rule: str
    next: Next
    message: str = ""
    retry_after_ms: int | None = None


_FAULTS: Mapping[LoadFault, tuple[Outcome, Next]] = {
    LoadFault.DNS: (Outcome.SITE_ERROR, Next.AGAIN),
    LoadFault.REFUSED: (Outcome.SITE_ERROR, Next.AGAIN),
    LoadFault.TLS: (Outcome.SITE_ERROR, Next.AGAIN),
    LoadFault.TIMEOUT: (Outcome.SITE_ERROR, Next.AGAIN),
    LoadFault.PROXY: (Outcome.PROXY_ERROR, Next.LEAVE),
    LoadFault.REDIRECT_LOOP: (Outcome.SITE_ERROR, Next.FAIL),
    LoadFault.FORBIDDEN_ADDRESS: (Outcome.SITE_ERROR, Next.FAIL),
    LoadFault.WAIT_FOR: (Outcome.SITE_ERROR, Next.AGAIN),
    LoadFault.BAD_SELECTOR: (Outcome.BAD_REQUEST, Next.REFUSE),
    LoadFault.CRASH: (Outcome.BROWSER_CRASH, Next.LEAVE),
    LoadFault.BROWSER_GONE: (Outcome.BROWSER_CRASH, Next.LEAVE),
    LoadFault.UNRESPONSIVE: (Outcome.SITE_ERROR, Next.AGAIN),
    LoadFault.OTHER: (Outcome.SITE_ERROR, Next.AGAIN),
}

_STATUSES: Mapping[int, tuple[Outcome, Next]] = {
    403: (Outcome.BLOCKED, Next.LEAVE),
    404: (Outcome.NOT_FOUND, Next.DONE),
    407: (Outcome.PROXY_ERROR, Next.LEAVE),
    408: (Outcome.SITE_ERROR, Next.AGAIN),
    410: (Outcome.NOT_FOUND, Next.DONE),
    425: (Outcome.SITE_ERROR, Next.AGAIN),
    429: (Outcome.BLOCKED, Next.LEAVE),
    503: (Outcome.BLOCKED, Next.LEAVE),
}


def judge(visit: Visit, *, is_start: bool, challenge: str | None = None, wall_ms: int = 0) -> Verdict:
    """The verdict on a visited page. `challenge`: the rule by which its content is no content."""
    if challenge is not None:
        return Verdict(Outcome.BLOCKED, challenge, Next.LEAVE, "the page is a challenge")
    if visit.fault is not None and not (visit.fault is LoadFault.WAIT_FOR and _is_error(visit.status)):
        return judge_fault(visit.fault, visit.message, is_start=is_start)
    if visit.status is None:
        return Verdict(Outcome.SITE_ERROR, "no-answer", Next.AGAIN, visit.message or "no HTTP answer")
    return _judge_status(visit.status, visit.headers, wall_ms)


def judge_fault(fault: LoadFault, message: str, *, is_start: bool) -> Verdict:
    """The verdict on a page that did not load, or could not be read."""
    outcome, follows = _FAULTS[fault]
    if fault is LoadFault.FORBIDDEN_ADDRESS and is_start:
        outcome = Outcome.BAD_REQUEST
    return Verdict(outcome, f"fault-{fault.value}", follows, message or f"{fault.value}")


def is_readable(visit: Visit) -> bool:
    """Whether there is a page whose content decides and is wanted: loaded, with success, and no file."""
    if visit.fault not in (None, LoadFault.WAIT_FOR) or visit.is_download or visit.status is None:
        return False
    return 200 <= visit.status < 300 and visit.status not in (204, 205)


def retry_after_ms(value: str | None, *, wall_ms: int) -> int | None:
    """A Retry-After header (RFC 9110 section 10.2.3) as a bounded pause: seconds, or a date; None if
    unusable.
    """
    if not value or len(value) > 64:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(int(value) * 1_000, MAX_RETRY_AFTER_MS)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:  # "-0000": UTC by RFC 5322; HTTP dates are always GMT
        moment = moment.replace(tzinfo=UTC)
    return min(max(0, int(moment.timestamp() * 1_000) - wall_ms), MAX_RETRY_AFTER_MS)


def attempt_outcome(start_outcomes: Mapping[Outcome, int]) -> Outcome:
    """How an attempt ended whose pages are all done, from how its start pages ended.

    Ok when one succeeded; NotFound when there was nothing at any of them; otherwise what failed most of the
    others, the earlier in this order when equal: Blocked, ProxyError, BrowserCrash, SiteError, BadRequest.
    """
    if start_outcomes.get(Outcome.OK):
        return Outcome.OK
    failures = (
        Outcome.BLOCKED,
        Outcome.PROXY_ERROR,
        Outcome.BROWSER_CRASH,
        Outcome.SITE_ERROR,
        Outcome.BAD_REQUEST,
    )
    worst = max(failures, key=lambda outcome: start_outcomes.get(outcome, 0))
    if start_outcomes.get(worst):
        return worst
    return Outcome.NOT_FOUND


def _is_error(status: int | None) -> bool:
    return status is not None and status >= 400


def _judge_status(status: int, headers: Mapping[str, str], wall_ms: int) -> Verdict:
    if 200 <= status < 300:
        return Verdict(Outcome.OK, "", Next.DONE)
    default = (Outcome.SITE_ERROR, Next.AGAIN if status >= 500 else Next.FAIL)
    outcome, follows = _STATUSES.get(status, default)
    pause = None
    if outcome is Outcome.BLOCKED:
        pause = retry_after_ms(headers.get("retry-after"), wall_ms=wall_ms)
    return Verdict(outcome, f"http-{status}", follows, f"HTTP {status}", pause)
