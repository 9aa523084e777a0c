"""I1 to I11 over long runs in which everything goes wrong.

`PAGESLOTS_LONG=1` looks for new trouble with other seeds each time and for much longer; without it the same runs are
made every time, so that a change that breaks a law fails at once and nothing else does.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.property.control.machine import Drive

LONG = bool(os.environ.get("PAGESLOTS_LONG"))


def how(examples: int, *, steps: int, seeded: bool = not LONG, shrink: bool = True) -> settings:
    phases = (Phase.explicit, Phase.generate, *((Phase.shrink,) if shrink else ()))
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=seeded,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


@pytest.mark.timeout(3_600 if LONG else 240)
def test_no_invariant_breaks_whatever_goes_wrong():
    """Cases P1 to P13, D1 to D25 as far as one pool in virtual time has them."""
    Drive.reached.clear()
    run_state_machine_as_test(Drive, settings=how(2_000 if LONG else 25, steps=60 if LONG else 30))

    reached = Drive.reached
    assert reached["pods"] > 100
    assert reached["attempts"] > 100
    assert sum(count for what, count in reached.items() if what.startswith("died ")) > 3
    assert reached["a take-over"] > 3
    assert reached["a cap below what is held"] > 0
    assert reached["a deleted pool"] > 0
