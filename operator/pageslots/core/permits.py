"""Which country may have how many browsers, who gets a free permit, who gives one back (DESIGN section 5).

From needs and wants per country; for `plan`. Nothing about the order is stored: it follows from who is
furthest from its target and who has waited longest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from pageslots.core.model import Country, GrantedFor
from pageslots.core.shares import largest_remainder


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one country stands.

    `held`: permits of its slots that are not on their way out. `vacant`: slots that could take a permit
    now (0 while the country backs off). `dispatchable`: requests that could start this instant if a slot
    were ready. `preparing`: held slots whose page isn't ready yet: supply for those requests.
    `waited_ms`: of its longest dispatchable request; None: there is none.
    """

    country: Country
    needed: int = 0
    wanted: int = 0
    slots: int = 0
    held: int = 0
    vacant: int = 0
    preparing: int = 0
    dispatchable: int = 0
    waited_ms: int | None = None

    @property
    def waited(self) -> int:
        """For comparing: -1 without a dispatchable request."""
        return -1 if self.waited_ms is None else self.waited_ms


@dataclass(frozen=True, slots=True)
class Target:
    """How many permits a country should hold: `needed` of them for requests, `total` in all."""

    needed: int
    total: int


def targets(usable: int, standings: Iterable[Standing], starvation_ms: int) -> dict[Country, Target]:
    """Targets per country; they add up to at most `usable` (P)."""
    by_code = {s.country: s for s in sorted(standings, key=lambda s: s.country)}
    needs = {code: s.needed for code, s in by_code.items()}
    spares = {code: max(0, s.wanted - s.needed) for code, s in by_code.items()}
    usable = max(0, usable)
    need = largest_remainder(min(usable, sum(needs.values())), needs)
    spare = largest_remainder(min(usable - sum(need.values()), sum(spares.values())), spares)
    _feed_the_starving(need, spare, by_code, starvation_ms)
    return {code: Target(need[code], need[code] + spare[code]) for code in by_code}


def _feed_the_starving(
    need: dict[Country, int],
    spare: dict[Country, int],
    standings: Mapping[Country, Standing],
    starvation_ms: int,
) -> None:
    """A target of at least 1 for who has waited too long, longest first, taken from the largest target.

    The only permit of a country goes to another that has waited longer: with fewer permits than
    countries they take turns.
    """
    starving = [
        s
        for code, s in standings.items()
        if s.waited > starvation_ms and s.slots > 0 and need[code] + spare[code] == 0
    ]
    fed: set[Country] = set()
    for claimer in sorted(starving, key=lambda s: (-s.waited, s.country)):
        lenders = [
            s
            for code, s in standings.items()
            if code not in fed
            and (
                need[code] + spare[code] > 1 or (need[code] + spare[code] == 1 and s.waited < claimer.waited)
            )
        ]
        if not lenders:
            return
        lender = min(lenders, key=lambda s: (-need[s.country] - spare[s.country], s.waited, s.country))
        given = spare if spare[lender.country] else need
        given[lender.country] -= 1
        need[claimer.country] = 1
        fed.add(claimer.country)


def grants(
    free: int, standings: Iterable[Standing], aims: Mapping[Country, Target], starvation_ms: int
) -> list[tuple[Country, GrantedFor]]:
    """Who gets the free permits, in order; each goes to a slot that is there to take it.

    Starving countries first, longest waiter first; then those furthest below what they need; then those
    furthest below their target. Within each: longest waited, then code. Needs go before spares because
    a spare page of one country must not make another's request wait (invariant I7).
    """
    line = [
        (_place(s, aims[s.country], s.held, starvation_ms), s.held, s.vacant, s)
        for s in standings
        if s.vacant > 0 and s.held < aims[s.country].total
    ]
    queue = [(place, s.country, held, vacant, s) for place, held, vacant, s in line]
    heapify(queue)
    given: list[tuple[Country, GrantedFor]] = []
    while queue and len(given) < free:
        _, code, held, vacant, standing = heappop(queue)
        aim = aims[code]
        given.append((code, GrantedFor.NEEDED if held < aim.needed else GrantedFor.SPARE))
        held, vacant = held + 1, vacant - 1
        if vacant > 0 and held < aim.total:
            place = _place(standing, aim, held, starvation_ms)
            heappush(queue, (place, code, held, vacant, standing))
    return given


def _place(standing: Standing, aim: Target, held: int, starvation_ms: int) -> tuple[int, int, int]:
    if held == 0 and aim.needed > 0 and standing.waited > starvation_ms:
        return (0, -standing.waited, 0)
    if held < aim.needed:
        return (1, held - aim.needed, -standing.waited)
    return (2, held - aim.total, -standing.waited)


def waiting(standing: Standing, aim: Target) -> int:
    """Requests that could start this instant, are entitled to a permit and have none on the way to them."""
    return max(0, min(standing.dispatchable - standing.preparing, aim.needed - standing.held))


def surplus_order(standings: Iterable[Standing], aims: Mapping[Country, Target]) -> list[tuple[int, Country]]:
    """A heap of the countries over their target, furthest first: (minus surplus, code)."""
    over = [(aims[s.country].total - s.held, s.country) for s in standings if s.held > aims[s.country].total]
    heapify(over)
    return over
