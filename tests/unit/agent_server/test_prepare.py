"""Making a slot ready: what counts as a failure, when to reopen, when to give up."""

import asyncio
import json

import pytest
from tests.fakes.vtime import run
from tests.unit.agent_server.slots import a_config

from pageslots.wire import ExitCheck, Outcome
from pageslots_agent.ports import LoadFault, Visit
from pageslots_agent.prepare import Failures, Preparation, PreparationFailedError, country_in

TARGET = "https://shop.example/"
CHECK = ExitCheck("https://exit.example/", "SG")


class Hands:
    """Opens and loads as told; `script` has what each visit of the target gives, the last one for ever."""

    def __init__(self, *script, country="SG", opens=True, hangs=False):
        self.script = list(script) or [Visit(TARGET, TARGET, 200)]
        self.country, self.opens, self.hangs = country, opens, hangs
        self.calls = []
        self.is_open = False
        self.starts = 0

    async def open(self, *, other_proxy):
        if not self.is_open:
            self.calls.append("open by another proxy" if other_proxy else "open")
            if not self.opens:
                raise PreparationFailedError(Outcome.BROWSER_CRASH, "no browser")
            self.starts += 1
            self.is_open = True

    async def close_browser(self):
        self.calls.append("close")
        self.is_open = False

    async def load(self, url, *, seconds):
        self.calls.append(url)
        if self.hangs:
            await asyncio.Event().wait()
        if url != TARGET:
            return Visit(url, url, 200)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    async def body_text(self, *, seconds):
        return self.country


def failing(fault=LoadFault.PROXY):
    return Visit(TARGET, TARGET, None, fault=fault, message="why")


def prepare(hands, **config):
    """The result, the failures, and how long it took in virtual time."""
    failures = Failures(lambda: 5)
    config = {"target_url": TARGET, **config}

    async def scenario():
        began = asyncio.get_running_loop().time()
        done = await Preparation(a_config(**config), hands, failures).run()
        return done, asyncio.get_running_loop().time() - began

    done, seconds = run(scenario())
    return done, failures, seconds


def test_a_target_that_loads_makes_a_slot_ready():
    hands = Hands()
    done, failures, _ = prepare(hands, exit_check=CHECK)

    assert done
    assert hands.calls == ["open", CHECK.url, TARGET]
    assert failures.consecutive == 0


def test_without_a_target_an_open_browser_is_enough():
    hands = Hands()
    done, _, _ = prepare(hands, target_url="")

    assert done
    assert hands.calls == ["open"]


def test_after_four_failures_in_a_row_the_browser_is_reopened_and_after_seven_given_up():
    hands = Hands(failing(LoadFault.TIMEOUT))
    done, failures, _ = prepare(hands)

    assert not done
    assert failures.consecutive == 7
    assert hands.calls == ["open", *[TARGET] * 4, "close", "open", *[TARGET] * 3, "close"]
    assert failures.last.outcome is Outcome.SITE_ERROR
    assert failures.last.message == f"target {TARGET}: why"
    assert failures.last.at_ms == 5


def test_a_failed_proxy_is_left_for_another_one():
    hands = Hands(failing(), failing(), failing(), failing(), Visit(TARGET, TARGET, 200))
    done, failures, _ = prepare(hands)

    assert done
    assert hands.calls.count("open by another proxy") == 1
    assert failures.consecutive == 0  # the slot is ready: counted anew


def test_a_wrong_exit_country_is_a_failure_that_names_what_was_seen():
    """Case W10."""
    hands = Hands(country='{"ip": "1.2.3.4", "country": "DE"}')
    done, failures, _ = prepare(hands, exit_check=CHECK)

    assert not done
    assert failures.last.outcome is Outcome.PROXY_ERROR
    assert failures.last.message == "exit check https://exit.example/: the site sees DE, expected SG"
    assert TARGET not in hands.calls


@pytest.mark.parametrize("fault", [LoadFault.DNS, LoadFault.TIMEOUT, LoadFault.TLS, None])
def test_a_dead_site_is_no_reason_not_to_be_ready_for_its_request(fault):
    """Case D21: with the origin of a request as its target."""
    visit = failing(fault) if fault else Visit(TARGET, TARGET, 500)
    hands = Hands(visit)
    done, failures, _ = prepare(hands, target_is_request_origin=True)

    assert done
    assert hands.calls[-1] == "about:blank"
    assert failures.consecutive == 0
    assert failures.last.outcome is Outcome.SITE_ERROR


def test_a_failed_proxy_counts_also_at_the_origin_of_a_request():
    done, failures, _ = prepare(Hands(failing()), target_is_request_origin=True)

    assert not done
    assert failures.last.outcome is Outcome.PROXY_ERROR


def test_a_target_that_refuses_or_is_a_file_is_a_failure():
    for visit, says in [
        (Visit(TARGET, TARGET, 403), "status 403"),
        (Visit(TARGET, TARGET, None, is_download=True), "is a file, not a page"),
    ]:
        done, failures, _ = prepare(Hands(visit))
        assert not done
        assert says in failures.last.message


def test_a_browser_that_does_not_open_counts():
    hands = Hands(opens=False)
    done, failures, _ = prepare(hands)

    assert not done
    assert failures.last.outcome is Outcome.BROWSER_CRASH
    assert failures.consecutive == 7


def test_a_preparation_has_a_deadline_whatever_hangs():
    """Case D6."""
    hands = Hands(hangs=True)
    done, failures, seconds = prepare(hands, preparation_ms=30_000)

    assert not done
    assert seconds == pytest.approx(30)
    assert failures.last.message == "not prepared within 30 s"
    assert hands.calls[-1] == "close"


def test_crashes_of_attempts_add_up_until_one_ends_without():
    failures = Failures(lambda: 1)
    failures.attempt_ended(crashed=True)
    failures.attempt_ended(crashed=True)
    failures.prepared()
    assert failures.consecutive == 2  # a slot whose every attempt crashes is ill, although it prepares well
    failures.attempt_ended(crashed=False)
    assert failures.consecutive == 0


@pytest.mark.parametrize(
    ("answer", "country"),
    [
        ("SG", "SG"),
        (" sg\n", "SG"),
        (json.dumps({"ip": "1.2.3.4", "country": "SG"}), "SG"),
        (json.dumps({"country": "Singapore", "countryCode": "SG"}), "SG"),
        (json.dumps({"country": "Singapore", "country_code": "sg"}), "SG"),
        (json.dumps({"location": {"country": {"iso_code": "x", "cc": "SG"}}}), "SG"),
        ("ip=1.2.3.4\nts=1\nloc=SG\ntls=on", "SG"),
        ("country: SG", "SG"),
        ("Singapore", None),
        ("", None),
        ("[1, 2]", None),
        ("null", None),
        ("<html>blocked</html>", None),
    ],
)
def test_what_exit_checks_answer(answer, country):
    assert country_in(answer) == country
