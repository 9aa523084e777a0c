"""What a simulated pool is asked to do: recorded, from a trace, or synthetic, from rates."""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pageslots.wire import Outcome

MAX_ARRIVALS = 1_000_000


class DemandError(ValueError):
    """A trace or a rate that can't be read; the text says where and what was expected."""


@dataclass(frozen=True, slots=True, order=True)
class Arrival:
    """One request: when it comes, for which country and site, how long its attempt takes, how it ends."""

    at_ms: int
    country: str
    site: str
    duration_ms: int
    outcome: Outcome = Outcome.OK


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests of one country per hour."""

    country: str
    per_hour: int


def parse_rates(text: str) -> tuple[Rate, ...]:
    """`SG=120,DE=30`: requests an hour per country. DemandError."""
    rates = []
    for part in text.split(","):
        code, _, number = part.strip().partition("=")
        if not code or not number.isdigit() or int(number) == 0:
            raise DemandError(f"{part.strip()!r}: write COUNTRY=REQUESTS_PER_HOUR, such as SG=120")
        rates.append(Rate(code, int(number)))
    return tuple(rates)


def synthetic(
    rates: Iterable[Rate], *, seconds: int, sites: int, mean_seconds: float, burst: int, seed: int
) -> list[Arrival]:
    """Poisson arrivals per country over `seconds`; attempts take exponential times around `mean_seconds`.

    `burst` requests come together each time (at the same mean rate); the sites of a country are as popular as
    1, 1/2, 1/3 … (Zipf), which is what crawls look like: few sites are most of the work.
    """
    rng = random.Random(seed)  # noqa: S311 -- a simulation, not a secret
    weights = [1 / (n + 1) for n in range(sites)]
    arrivals: list[Arrival] = []
    for rate in rates:
        at = 0.0
        per_second = rate.per_hour / 3_600 / burst
        while (at := at + rng.expovariate(per_second)) < seconds and len(arrivals) < MAX_ARRIVALS:
            for _ in range(burst):
                site = f"site-{rng.choices(range(sites), weights)[0]}.example"
                duration = max(1, round(rng.expovariate(1 / mean_seconds) * 1_000))
                arrivals.append(Arrival(round(at * 1_000), rate.country, site, duration))
    return sorted(arrivals)


def read_trace(path: Path) -> list[Arrival]:
    """A trace: JSON Lines of {atSeconds, country, site, durationSeconds, outcome?}. DemandError, OSError."""
    with path.open(encoding="utf-8") as file:
        return sorted(_lines(path, file))


def _lines(path: Path, lines: Iterable[str]) -> Iterator[Arrival]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            yield Arrival(
                at_ms=round(float(entry["atSeconds"]) * 1_000),
                country=str(entry["country"]),
                site=str(entry.get("site") or "site.example"),
                duration_ms=max(1, round(float(entry["durationSeconds"]) * 1_000)),
                outcome=Outcome(entry.get("outcome", "Ok")),
            )
        except KeyError as error:
            raise DemandError(f"{path}:{number}: {error.args[0]} is missing") from None
        except (TypeError, ValueError) as error:
            raise DemandError(f"{path}:{number}: {error}") from None
