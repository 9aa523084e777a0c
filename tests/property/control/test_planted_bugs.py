"""The proof that the stateful test notices broken code: bugs are planted, and it has to tell what they break."""

import pytest
from hypothesis.stateful import run_state_machine_as_test
from tests.property.control.machine import Drive
from tests.property.control.planted import BUGS, Bug
from tests.property.control.test_everything_goes_wrong import LONG, how


@pytest.mark.timeout(1_800 if LONG else 240)
@pytest.mark.parametrize("bug", [b for b in BUGS if LONG or not b.rare], ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Bug, monkeypatch: pytest.MonkeyPatch):
    bug.plant(monkeypatch)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 -- whatever it is, its words are looked at
        run_state_machine_as_test(
            Drive, settings=how(2_000 if LONG else 120, steps=30, seeded=True, shrink=False)
        )
    told = _words(caught.value)
    assert any(word in told for word in bug.caught_by), told


def _words(error: BaseException) -> str:
    """All that an error and those in it say."""
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    cause = [error.__cause__] if error.__cause__ is not None else []
    return "\n".join([str(error), *(_words(e) for e in (*inner, *cause))])
