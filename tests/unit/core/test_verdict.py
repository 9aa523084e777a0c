"""What the end of an attempt means for its request (DESIGN section 9)."""

from dataclasses import replace
from typing import Any

import pytest

from pageslots.api.reasons import RequestReason
from pageslots.core.actions import FinishRequest, RequeueRequest
from pageslots.core.model import (
    AttemptId,
    Country,
    Instant,
    Outcome,
    PodUid,
    Report,
    Request,
    RequestState,
    RequestUid,
    RunningAttempt,
    Site,
    SlotUid,
    Version,
)
from pageslots.core.verdict import judge, lost

NOW = Instant(1_000_000)
REQUEST = Request(
    RequestUid("r"),
    "r",
    Country("SG"),
    Site("shop.example"),
    created=Instant(0),
    seen=Version("7"),
    state=RequestState.RUNNING,
    attempt=RunningAttempt(AttemptId("r-1"), 1, SlotUid("slot"), PodUid("pod"), Instant(10)),
    attempts=1,
    first_started=Instant(10),
)


def ended(outcome: Outcome, **more: Any) -> Report:
    return Report(AttemptId("r-1"), RequestUid("r"), ended=True, outcome=outcome, **more)


def verdict(outcome: Outcome, request: Request = REQUEST, **more: Any) -> FinishRequest | RequeueRequest:
    return judge(request, ended(outcome, **more), NOW)


def state(made: FinishRequest | RequeueRequest) -> tuple[RequestState, str]:
    assert isinstance(made, FinishRequest)
    return made.state, made.reason


def test_all_pages_done_is_success():
    made = verdict(Outcome.OK, done=3, start_pages_ok=1, new_ok_pages=3)
    assert state(made) == (RequestState.SUCCEEDED, "AllPagesDone")


def test_without_a_good_start_page_it_never_succeeds():
    """Case W3."""
    made = verdict(Outcome.OK, done=3, start_pages_ok=0, new_ok_pages=3)
    assert state(made) == (RequestState.FAILED, "NoStartPageSucceeded")


def test_ten_percent_failed_pages_are_borne_and_eleven_are_not():
    assert state(verdict(Outcome.OK, done=90, failed=10, start_pages_ok=1))[0] is RequestState.SUCCEEDED
    made = verdict(Outcome.OK, done=89, failed=11, start_pages_ok=1)
    assert state(made) == (RequestState.FAILED, "TooManyFailedPages")


def test_the_message_of_a_success_names_the_failed_page():
    """Case W3: one dead page among 500."""
    made = verdict(Outcome.OK, done=499, failed=1, start_pages_ok=1, message="https://shop.example/x: 500")
    assert "https://shop.example/x: 500" in made.message


@pytest.mark.parametrize(
    ("outcome", "reason"), [(Outcome.NOT_FOUND, "NotFound"), (Outcome.BAD_REQUEST, "BadRequest")]
)
def test_some_ends_are_not_retried(outcome, reason):
    assert state(verdict(outcome)) == (RequestState.FAILED, reason)


@pytest.mark.parametrize(
    ("outcome", "budget"),
    [
        (Outcome.BLOCKED, 3),
        (Outcome.PROXY_ERROR, 5),
        (Outcome.SITE_ERROR, 2),
        (Outcome.BROWSER_CRASH, 2),
        (Outcome.SLOT_LOST, 5),
        (Outcome.TIMEOUT, 2),
    ],
)
def test_a_budget_is_the_number_of_retries_in_a_row(outcome, budget):
    last = replace(REQUEST, since_progress={outcome: budget - 1})
    over = replace(REQUEST, since_progress={outcome: budget})

    assert isinstance(verdict(outcome, last, all_tried_blocked=True), RequeueRequest)
    assert state(verdict(outcome, over, all_tried_blocked=True)) == (RequestState.FAILED, outcome.value)


def test_crashes_and_out_of_memory_share_a_budget():
    """Case W2."""
    over = replace(REQUEST, since_progress={Outcome.BROWSER_CRASH: 1, Outcome.OUT_OF_MEMORY: 1})
    assert state(verdict(Outcome.OUT_OF_MEMORY, over)) == (RequestState.FAILED, "OutOfMemory")


def test_progress_makes_an_attempt_free():
    over = replace(REQUEST, since_progress={Outcome.BROWSER_CRASH: 9})
    made = verdict(Outcome.BROWSER_CRASH, over, new_ok_pages=1)
    assert isinstance(made, RequeueRequest)
    assert made.progressed


def test_a_block_of_some_pages_only_spends_nothing():
    over = replace(REQUEST, since_progress={Outcome.BLOCKED: 9})
    made = verdict(Outcome.BLOCKED, over, all_tried_blocked=False)
    assert isinstance(made, RequeueRequest)
    assert not made.charged


def test_only_the_request_itself_pauses_after_a_site_error():
    """Case D21: 5, 10, 20 … seconds, bounded."""
    pauses = []
    for spent in (0, 1, 2, 9):
        request = replace(
            REQUEST,
            since_progress={Outcome.SITE_ERROR: spent},
            budgets=replace(REQUEST.budgets, site_error=99),
        )
        made = verdict(Outcome.SITE_ERROR, request)
        assert isinstance(made, RequeueRequest)
        pauses.append(made.next_attempt - NOW)
    assert pauses == [5_000, 10_000, 20_000, 300_000]


def test_a_lost_slot_is_retried_at_once():
    made = lost(REQUEST, NOW, out_of_memory=False, message="its node is gone")
    assert isinstance(made, RequeueRequest)
    assert (made.outcome, made.next_attempt) == (Outcome.SLOT_LOST, None)
    assert lost(REQUEST, NOW, out_of_memory=True, message="").outcome is Outcome.OUT_OF_MEMORY


def test_stop_ends_it_and_suspend_sends_it_back():
    assert state(verdict(Outcome.STOPPED, replace(REQUEST, stop=True))) == (RequestState.STOPPED, "Stopped")
    made = verdict(Outcome.STOPPED, replace(REQUEST, suspended=True), suspended=True)
    assert isinstance(made, RequeueRequest)
    assert made.outcome is None


def test_a_request_that_is_to_stop_is_not_tried_again():
    stopping = replace(REQUEST, stop=True)
    assert state(verdict(Outcome.SITE_ERROR, stopping)) == (RequestState.STOPPED, "Stopped")
    assert state(lost(stopping, NOW, out_of_memory=False, message=""))[0] is RequestState.STOPPED


def test_the_deadline_of_the_request_is_its_end():
    assert state(verdict(Outcome.STOPPED, deadline=True)) == (RequestState.FAILED, "DeadlineExceeded")
    assert state(verdict(Outcome.TIMEOUT, deadline=True)) == (RequestState.FAILED, "DeadlineExceeded")


def test_running_out_of_the_attempt_s_time_is_free_when_it_progressed():
    made = verdict(Outcome.TIMEOUT, replace(REQUEST, since_progress={Outcome.TIMEOUT: 2}), new_ok_pages=4)
    assert isinstance(made, RequeueRequest)
    assert (made.progressed, made.next_attempt) == (True, None)


def test_when_the_pool_goes_running_requests_go_back_with_that_reason():
    """Case U6."""
    made = judge(REQUEST, ended(Outcome.STOPPED, suspended=True), NOW, pool_gone=True)
    assert isinstance(made, RequeueRequest)
    assert made.message.startswith("NoSuchPool")


def test_reasons_are_words_that_the_api_knows():

    for outcome in Outcome:
        for request in (
            REQUEST,
            replace(REQUEST, since_progress=dict.fromkeys(Outcome, 99)),
            replace(REQUEST, stop=True),
        ):
            made = verdict(outcome, request, all_tried_blocked=True)
            if isinstance(made, FinishRequest):
                assert made.reason in set(RequestReason)
