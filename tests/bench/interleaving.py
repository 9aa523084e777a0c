"""Ratios on a machine that others use too: A and B alternate, and each pair is compared on its own."""

import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Batch = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """What the batches of `ours` and `theirs` gave, in order."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Median of ours ÷ theirs, pair by pair."""
        return statistics.median(our / their for our, their in zip(self.ours, self.theirs, strict=True))

    @property
    def our_median(self) -> float:
        """Median of our batches."""
        return statistics.median(self.ours)

    @property
    def their_median(self) -> float:
        """Median of their batches."""
        return statistics.median(self.theirs)


async def interleave(ours: Batch, theirs: Batch, *, rounds: int) -> Pairs:
    """Alternate the two, `rounds` times each, and who begins."""
    our_values: list[float] = []
    their_values: list[float] = []
    for number in range(rounds):
        order = ((ours, our_values), (theirs, their_values))
        for batch, values in order if number % 2 == 0 else reversed(order):
            values.append(await batch())
    return Pairs(tuple(our_values), tuple(their_values))
