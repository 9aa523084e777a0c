"""Proof that a generator gets to the cases that a property is about."""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

Drawn = TypeVar("Drawn")


def assert_reaches(
    strategy: SearchStrategy[Drawn], is_case: Callable[[Drawn], object], *, share: float, draws: int = 300
) -> None:
    """Draw values, count those for which `is_case` holds, and fail when they are less than `share` of all."""
    seen = hits = 0

    @settings(
        max_examples=draws,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value: Drawn) -> None:
        nonlocal seen, hits
        seen += 1
        hits += bool(is_case(value))

    draw()
    name = getattr(is_case, "__name__", str(is_case))
    assert hits >= share * seen, f"{name}: only {hits} of {seen} drawn values, expected {share:.0%}"
