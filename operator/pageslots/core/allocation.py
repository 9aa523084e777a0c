"""How many page slots each country gets (DESIGN section 5, "Allocation").

From what each country has to do and has done lately; for `plan`, every interval. Judged on the
allocation computed here, never on the slots that happen to exist, so that it can't chase itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush

from pageslots.core.model import Country
from pageslots.core.shares import largest_remainder


@dataclass(frozen=True, slots=True)
class Claim:
    """What one country brings forward. `waited_ms`: of its longest dispatchable request; None: there is none."""

    country: Country
    unfinished: int = 0
    finished: int = 0
    running: int = 0
    min_ready: int = 0
    max_slots: int | None = None
    waited_ms: int | None = None


def slots_for(requests: int, min_requests_per_slot: Fraction) -> int:
    """⌈requests ÷ minRequestsPerSlot⌉: how many slots that many requests are worth."""
    return -(-requests * min_requests_per_slot.denominator // min_requests_per_slot.numerator)


def allocate(
    claims: Iterable[Claim],
    total: int,
    *,
    unfinished_weight: int,
    finished_weight: int,
    min_requests_per_slot: Fraction,
    starvation_ms: int,
) -> dict[Country, int]:
    """Slots per country; adds up to at most `total`.

    In four steps: shares by score; bounds; borrowing by countries that could use more, from those
    that can't use what they have; one slot for every country that starves or has something running.
    """
    by_code = {claim.country: claim for claim in sorted(claims, key=lambda c: c.country)}
    scores = {
        code: unfinished_weight * claim.unfinished + finished_weight * claim.finished
        for code, claim in by_code.items()
    }
    slots = bounded_shares(total, scores, *_bounds(by_code, total))
    _borrow(slots, by_code, min_requests_per_slot)
    _feed_the_starving(slots, by_code, starvation_ms)
    return slots


def _bounds(claims: Mapping[Country, Claim], total: int) -> tuple[dict[Country, int], dict[Country, int]]:
    """MinReady and maxSlots. Minimums that exceed the total together (refused at admission) are cut in order."""
    lowest: dict[Country, int] = {}
    highest: dict[Country, int] = {}
    left = total
    for code, claim in claims.items():
        highest[code] = total if claim.max_slots is None else min(total, claim.max_slots)
        lowest[code] = min(claim.min_ready, highest[code], left)
        left -= lowest[code]
    return lowest, highest


def bounded_shares(
    total: int,
    scores: Mapping[Country, int],
    lowest: Mapping[Country, int],
    highest: Mapping[Country, int],
) -> dict[Country, int]:
    """Shares by score within bounds (Σ lowest ≤ total, lowest ≤ highest).

    Where bounds cut off more than they add, the cut ones are settled first and what they leave is
    shared again; where they add more, those at their minimum are. Each round settles a country.
    """
    settled: dict[Country, int] = {}
    open_scores = dict(scores)
    while open_scores:
        shares = largest_remainder(total - sum(settled.values()), open_scores)
        low = {c: lowest[c] for c, share in shares.items() if share < lowest[c]}
        high = {c: highest[c] for c, share in shares.items() if share > highest[c]}
        if not low and not high:
            settled |= shares
            break
        added = sum(bound - shares[c] for c, bound in low.items())
        cut = sum(shares[c] - bound for c, bound in high.items())
        now_settled = (low if added >= cut else {}) | (high if cut >= added else {})
        settled |= now_settled
        open_scores = {c: score for c, score in open_scores.items() if c not in now_settled}
    return {c: settled[c] for c in scores}


def _borrow(
    slots: dict[Country, int], claims: Mapping[Country, Claim], min_requests_per_slot: Fraction
) -> None:
    """Slots go from where they can't be used to where they can, one by one, largest need first."""
    wanting: list[tuple[int, Country]] = []
    spare: list[tuple[int, Country]] = []
    for code, claim in claims.items():
        usable = slots_for(claim.unfinished, min_requests_per_slot)
        enough = min(claim.unfinished, usable)
        if claim.max_slots is not None:
            enough = min(enough, claim.max_slots)
        if slots[code] < enough:
            wanting.append((slots[code] - enough, code))
        elif slots[code] > max(claim.min_ready, usable):
            spare.append((max(claim.min_ready, usable) - slots[code], code))
    heapify(wanting)
    heapify(spare)
    while wanting and spare:
        lack, borrower = heappop(wanting)
        surplus, lender = heappop(spare)
        slots[borrower] += 1
        slots[lender] -= 1
        if lack + 1 < 0:
            heappush(wanting, (lack + 1, borrower))
        if surplus + 1 < 0:
            heappush(spare, (surplus + 1, lender))


def _feed_the_starving(
    slots: dict[Country, int], claims: Mapping[Country, Claim], starvation_ms: int
) -> None:
    """One slot for each country with none that starves or has a request running, longest waiter first.

    A lender keeps one unless it was served more recently than the borrower: with fewer slots than
    countries they take turns. A country with only running requests never takes a last slot (its own drains).
    """

    def waited(code: Country) -> int:
        waited_ms = claims[code].waited_ms
        return -1 if waited_ms is None else waited_ms

    starving = [
        code
        for code, claim in claims.items()
        if slots[code] == 0 and claim.max_slots != 0 and (waited(code) > starvation_ms or claim.running > 0)
    ]
    fed: set[Country] = set()
    for code in sorted(starving, key=lambda c: (-waited(c), c)):
        lenders = [
            c
            for c, n in slots.items()
            if c not in fed and (n > 1 or (n == 1 and waited(c) < waited(code) > starvation_ms))
        ]
        if not lenders:
            continue
        lender = min(lenders, key=lambda c: (-slots[c], waited(c), c))
        slots[lender] -= 1
        slots[code] = 1
        fed.add(code)
