"""Splitting a whole number in proportion: the largest-remainder method.

Rounding each share on its own doesn't add up (four equal countries would share 10 as 12). Used by
`allocation` for slots and by `permits` for permits (DESIGN section 5).
"""

from collections.abc import Mapping

from pageslots.core.model import Country


def largest_remainder(total: int, weights: Mapping[Country, int]) -> dict[Country, int]:
    """Split `total` in proportion to `weights` (integers ≥ 0).

    The result adds up to `total`, or to 0 when every weight is 0. Equal remainders go to the larger
    weight, then to the code that sorts first: the same input gives the same split on every replica.
    """
    whole = sum(weights.values())
    if whole == 0 or total <= 0:
        return dict.fromkeys(weights, 0)
    if total == whole:
        return dict(weights)
    shares = {country: total * weight // whole for country, weight in weights.items()}
    left = total - sum(shares.values())
    if left:
        order = sorted(weights, key=lambda c: (-(total * weights[c] % whole), -weights[c], c))
        for country in order[:left]:
            shares[country] += 1
    return shares
