"""Who may use a slot: refusals, their codes, and what is remembered."""

from dataclasses import replace

import pytest
from tests.unit.agent_server.slots import POD, a_drain, a_spec, a_stop

from pageslots.wire import AttemptReport, AttemptState, Outcome, Phase, RefusalCode
from pageslots_agent.arbiter import KNOWN_ENDED, Admission, Arbiter, RefusedError


def a_ready_arbiter():
    arbiter = Arbiter(POD)
    arbiter.prepared()
    return arbiter


def a_report(spec, outcome=Outcome.OK):
    return AttemptReport(spec.id, spec.request_uid, AttemptState.ENDED, outcome)


def refusal(call, *arguments):
    with pytest.raises(RefusedError) as refused:
        call(*arguments)
    return refused.value.status, refused.value.refusal.code


def test_a_second_attempt_is_refused_while_one_runs():
    arbiter = a_ready_arbiter()
    assert arbiter.admit(a_spec("a")) is Admission.START

    assert refusal(arbiter.admit, a_spec("b")) == (409, RefusalCode.BUSY)


def test_a_call_for_another_pod_is_refused_and_teaches_no_epoch():
    """Case D12."""
    arbiter = a_ready_arbiter()

    assert refusal(arbiter.admit, a_spec(pod_uid="pod-0", epoch=99)) == (409, RefusalCode.OTHER_POD)
    assert refusal(arbiter.drain, a_drain(pod_uid="pod-0")) == (409, RefusalCode.OTHER_POD)
    assert arbiter.epoch == 0


def test_a_deposed_operator_is_refused():
    """Case D20: a lower epoch than one seen, for every order."""
    arbiter = a_ready_arbiter()
    arbiter.admit(a_spec("a", epoch=7))

    assert refusal(arbiter.admit, a_spec("a", epoch=6)) == (409, RefusalCode.OLD_EPOCH)
    assert refusal(arbiter.check_stop, "a", a_stop(epoch=6)) == (409, RefusalCode.OLD_EPOCH)
    assert refusal(arbiter.drain, a_drain(epoch=6)) == (409, RefusalCode.OLD_EPOCH)
    assert arbiter.check_stop("a", a_stop(epoch=8))
    assert refusal(arbiter.check_stop, "a", a_stop(epoch=7)) == (409, RefusalCode.OLD_EPOCH)


def test_the_same_attempt_again_is_the_same_attempt():
    arbiter, spec = a_ready_arbiter(), a_spec("a")
    arbiter.admit(spec)

    assert arbiter.admit(spec) is Admission.KNOWN
    arbiter.end(a_report(spec), browser_usable=True)
    assert arbiter.admit(spec) is Admission.KNOWN
    arbiter.acknowledge("a")
    assert arbiter.admit(spec) is Admission.KNOWN  # a late repetition must not run it a second time
    assert arbiter.ended("a") == a_report(spec)


def test_a_preparing_slot_takes_no_attempt():
    assert refusal(Arbiter(POD).admit, a_spec()) == (409, RefusalCode.NOT_READY)


def test_a_drained_slot_takes_nothing_for_ever():
    arbiter = a_ready_arbiter()
    arbiter.drain(a_drain())

    assert refusal(arbiter.admit, a_spec()) == (410, RefusalCode.DRAINED)
    for move in (arbiter.prepared, arbiter.browser_lost, arbiter.gave_up):
        move()
        assert arbiter.phase is Phase.DRAINED
    arbiter.drain(a_drain())  # again: no effect, no refusal


def test_a_busy_slot_is_not_drained():
    """Case D2: idle closing and dispatch hit the same slot, exactly one wins."""
    arbiter = a_ready_arbiter()
    arbiter.admit(a_spec("a"))

    assert refusal(arbiter.drain, a_drain()) == (409, RefusalCode.BUSY)
    assert arbiter.phase is Phase.RUNNING


def test_only_an_ended_attempt_is_acknowledged():
    arbiter, spec = a_ready_arbiter(), a_spec("a")
    assert refusal(arbiter.acknowledge, "a") == (404, RefusalCode.NO_SUCH_ATTEMPT)
    arbiter.admit(spec)
    assert refusal(arbiter.acknowledge, "a") == (409, RefusalCode.BUSY)
    arbiter.end(a_report(spec), browser_usable=True)
    assert arbiter.unacknowledged == a_report(spec)

    arbiter.acknowledge("a")
    arbiter.acknowledge("a")

    assert arbiter.unacknowledged is None


def test_the_next_attempt_acknowledges_the_one_before():
    arbiter, spec = a_ready_arbiter(), a_spec("a")
    arbiter.admit(spec)
    arbiter.end(a_report(spec), browser_usable=True)

    arbiter.admit(a_spec("b"))

    assert arbiter.unacknowledged is None


def test_an_ended_attempt_is_not_stopped_and_an_unknown_one_is_not_known():
    arbiter, spec = a_ready_arbiter(), a_spec("a")
    arbiter.admit(spec)
    arbiter.end(a_report(spec), browser_usable=False)

    assert arbiter.phase is Phase.PREPARING
    assert not arbiter.check_stop("a", a_stop())
    assert refusal(arbiter.check_stop, "b", a_stop()) == (404, RefusalCode.NO_SUCH_ATTEMPT)


def test_the_memory_of_ended_attempts_is_bounded():
    arbiter = a_ready_arbiter()
    for number in range(KNOWN_ENDED + 1):
        spec = a_spec(f"a-{number}")
        arbiter.admit(spec)
        arbiter.end(a_report(spec), browser_usable=True)

    assert arbiter.ended("a-0") is None
    assert arbiter.ended("a-1") is not None


def test_a_closing_agent_lets_its_attempt_end_and_takes_no_other():
    arbiter, spec = a_ready_arbiter(), a_spec("a")
    arbiter.admit(spec)
    arbiter.shut_down()

    assert refusal(arbiter.admit, a_spec("b")) == (410, RefusalCode.DRAINED)
    assert arbiter.admit(replace(spec)) is Admission.KNOWN
    arbiter.end(a_report(spec), browser_usable=True)

    assert arbiter.phase is Phase.DRAINED
    assert arbiter.unacknowledged == a_report(spec)
