"""How pages and attempts end (cases W3, W4 and W11)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageslots.wire import Outcome
from pageslots_agent.outcome import (
    MAX_RETRY_AFTER_MS,
    Next,
    attempt_outcome,
    is_readable,
    judge,
    retry_after_ms,
)
from pageslots_agent.ports import LoadFault, Visit

URL = "https://shop.example/"
WALL_MS = 1_445_412_420_000  # Wed, 21 Oct 2015 07:27:00 GMT


def answer(status: int | None = 200, *, fault: LoadFault | None = None, **more: object) -> Visit:
    return Visit(url=URL, final_url=URL, status=status, fault=fault, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "outcome", "follows"),
    [
        (200, Outcome.OK, Next.DONE),
        (206, Outcome.OK, Next.DONE),
        (304, Outcome.SITE_ERROR, Next.FAIL),
        (400, Outcome.SITE_ERROR, Next.FAIL),
        (401, Outcome.SITE_ERROR, Next.FAIL),
        (403, Outcome.BLOCKED, Next.LEAVE),
        (404, Outcome.NOT_FOUND, Next.DONE),
        (407, Outcome.PROXY_ERROR, Next.LEAVE),
        (408, Outcome.SITE_ERROR, Next.AGAIN),
        (410, Outcome.NOT_FOUND, Next.DONE),
        (429, Outcome.BLOCKED, Next.LEAVE),
        (451, Outcome.SITE_ERROR, Next.FAIL),
        (500, Outcome.SITE_ERROR, Next.AGAIN),
        (503, Outcome.BLOCKED, Next.LEAVE),
        (504, Outcome.SITE_ERROR, Next.AGAIN),
        (None, Outcome.SITE_ERROR, Next.AGAIN),
    ],
)
def test_a_status_decides(status, outcome, follows):
    verdict = judge(answer(status), is_start=True)
    assert (verdict.outcome, verdict.next) == (outcome, follows)


@pytest.mark.parametrize(
    ("fault", "outcome", "follows"),
    [
        (LoadFault.DNS, Outcome.SITE_ERROR, Next.AGAIN),
        (LoadFault.REFUSED, Outcome.SITE_ERROR, Next.AGAIN),
        (LoadFault.TLS, Outcome.SITE_ERROR, Next.AGAIN),
        (LoadFault.TIMEOUT, Outcome.SITE_ERROR, Next.AGAIN),
        (LoadFault.PROXY, Outcome.PROXY_ERROR, Next.LEAVE),
        (LoadFault.REDIRECT_LOOP, Outcome.SITE_ERROR, Next.FAIL),
        (LoadFault.WAIT_FOR, Outcome.SITE_ERROR, Next.AGAIN),
        (LoadFault.BAD_SELECTOR, Outcome.BAD_REQUEST, Next.REFUSE),
        (LoadFault.CRASH, Outcome.BROWSER_CRASH, Next.LEAVE),
        (LoadFault.BROWSER_GONE, Outcome.BROWSER_CRASH, Next.LEAVE),
        (LoadFault.UNRESPONSIVE, Outcome.SITE_ERROR, Next.AGAIN),
        (LoadFault.OTHER, Outcome.SITE_ERROR, Next.AGAIN),
    ],
)
def test_a_fault_decides(fault, outcome, follows):
    verdict = judge(answer(None, fault=fault, message="why"), is_start=True)
    assert (verdict.outcome, verdict.next, verdict.message) == (outcome, follows, "why")


@pytest.mark.parametrize(("is_start", "outcome"), [(True, Outcome.BAD_REQUEST), (False, Outcome.SITE_ERROR)])
def test_a_forbidden_address_fails_without_another_try(is_start, outcome):
    """Case W4: asked for by the user it is an unusable request, linked by a site it is that page's failure."""
    verdict = judge(answer(None, fault=LoadFault.FORBIDDEN_ADDRESS), is_start=is_start)
    assert (verdict.outcome, verdict.next) == (outcome, Next.FAIL)


def test_every_fault_has_a_verdict():
    for fault in LoadFault:
        judge(answer(None, fault=fault), is_start=False)


def test_a_challenge_is_blocked_whatever_its_status():
    verdict = judge(answer(200), is_start=True, challenge="empty")
    assert (verdict.outcome, verdict.rule, verdict.next) == (Outcome.BLOCKED, "empty", Next.LEAVE)


def test_a_missing_page_is_not_found_even_if_its_selector_was_awaited():
    assert judge(answer(404, fault=LoadFault.WAIT_FOR), is_start=True).outcome is Outcome.NOT_FOUND


@pytest.mark.parametrize(
    ("header", "pause_ms"),
    [
        ("120", 120_000),
        (" 5 ", 5_000),
        ("0", 0),
        ("999999999", MAX_RETRY_AFTER_MS),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 60_000),
        ("Wed, 21 Oct 2015 07:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_RETRY_AFTER_MS),
        ("Wednesday, 21-Oct-15 07:28:00 GMT", 60_000),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("", None),
        (None, None),
        ("9" * 5_000, None),
        ("Mon, 99 Foo 2015 07:28:00 GMT", None),
    ],
)
def test_a_pause_asked_for_is_understood_and_bounded(header, pause_ms):
    """Case W11: seconds and dates."""
    assert retry_after_ms(header, wall_ms=WALL_MS) == pause_ms
    headers = {} if header is None else {"retry-after": header}
    verdict = judge(answer(429, headers=headers), is_start=True, wall_ms=WALL_MS)
    assert verdict.retry_after_ms == pause_ms


@given(st.text(max_size=70))
def test_any_retry_after_is_survived(header):
    pause = retry_after_ms(header, wall_ms=WALL_MS)
    assert pause is None or 0 <= pause <= MAX_RETRY_AFTER_MS


@pytest.mark.parametrize(
    ("starts", "outcome"),
    [
        ({Outcome.OK: 1, Outcome.BLOCKED: 9}, Outcome.OK),
        ({Outcome.NOT_FOUND: 3}, Outcome.NOT_FOUND),
        ({Outcome.NOT_FOUND: 3, Outcome.SITE_ERROR: 1}, Outcome.SITE_ERROR),
        ({Outcome.BLOCKED: 1, Outcome.SITE_ERROR: 1}, Outcome.BLOCKED),
        ({Outcome.BLOCKED: 1, Outcome.SITE_ERROR: 2}, Outcome.SITE_ERROR),
        ({Outcome.BAD_REQUEST: 2}, Outcome.BAD_REQUEST),
    ],
)
def test_an_attempt_ends_as_its_start_pages_did(starts, outcome):
    """Case W3: without a start page that succeeded it is never Ok."""
    assert attempt_outcome(starts) is outcome


@pytest.mark.parametrize(
    ("visit", "readable"),
    [
        (answer(200), True),
        (answer(200, fault=LoadFault.WAIT_FOR), True),
        (answer(204), False),
        (answer(404), False),
        (answer(200, is_download=True), False),
        (answer(200, fault=LoadFault.TIMEOUT), False),
        (answer(None), False),
    ],
)
def test_only_a_page_that_succeeded_is_read(visit, readable):
    assert is_readable(visit) is readable
