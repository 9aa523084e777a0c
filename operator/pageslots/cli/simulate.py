"""`pageslots simulate`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from pageslots.api import ManifestErrors, PageSlotPool, load_manifests
from pageslots.cli.options import PATH
from pageslots.cli.problems import UsageProblem
from pageslots.local.store import LocalStore
from pageslots.simulate.courses import PodCourse
from pageslots.simulate.demand import Arrival, DemandError, parse_rates, read_trace, synthetic
from pageslots.simulate.simulation import Figures
from pageslots.simulate.simulation import simulate as run_simulation

HELP = """Ask how many slots and browsers a workload needs, in virtual time.

The pool of the manifests works through a demand with the real planner; only browsers and time are simulated. The
demand is a trace (JSON Lines of atSeconds, country, site, durationSeconds and, if it fails, outcome) or comes from
rates.

\b
Examples:
  pageslots simulate pool.yaml --arrivals SG=120,DE=60 --attempt-seconds 30
  pageslots simulate pool.yaml --arrivals SG=600 --burst 50 --sweep 4,8,16
  pageslots simulate pool.yaml --trace yesterday.jsonl --json
"""


@click.command(help=HELP)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--trace", type=PATH, metavar="FILE", help="Recorded demand.")
@click.option("--arrivals", metavar="RATES", help="Requests an hour: SG=120,DE=60.")
@click.option("--seconds", type=click.IntRange(1, 7 * 86_400), default=3_600, show_default=True, metavar="N",
              help="How long requests keep coming.")  # fmt: skip
@click.option("--attempt-seconds", type=click.FloatRange(0.1, 3_600), default=10.0, show_default=True, metavar="N",
              help="Mean time of an attempt.")  # fmt: skip
@click.option("--sites", type=click.IntRange(1, 10_000), default=20, show_default=True, metavar="N",
              help="Sites of each country.")  # fmt: skip
@click.option("--burst", type=click.IntRange(1, 10_000), default=1, show_default=True, metavar="N",
              help="Requests that come together.")  # fmt: skip
@click.option("--start-seconds", type=click.FloatRange(0, 600), default=2.0, show_default=True, metavar="N",
              help="From a browser's start to its ready page.")  # fmt: skip
@click.option("--sweep", metavar="N,N", help="Try these values of maxConcurrent.")
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Another one: another day.")
@click.option("--json", "as_json", is_flag=True, help="Figures as JSON.")
def simulate(
    files: tuple[str, ...],
    trace: Path | None,
    arrivals: str | None,
    seconds: int,
    attempt_seconds: float,
    sites: int,
    burst: int,
    start_seconds: float,
    sweep: str | None,
    seed: int,
    *,
    as_json: bool,
) -> None:
    """Ask how many slots and browsers a workload needs."""
    pool = _pool(files)
    if (trace is None) == (arrivals is None):
        raise UsageProblem("give either --trace FILE or --arrivals RATES, such as --arrivals SG=120")
    try:
        if trace is not None:
            demand = read_trace(trace)
        else:
            demand = synthetic(
                parse_rates(arrivals or ""),
                seconds=seconds,
                sites=sites,
                mean_seconds=attempt_seconds,
                burst=burst,
                seed=seed,
            )
    except DemandError as error:
        raise UsageProblem(str(error)) from None
    except OSError as error:
        raise UsageProblem(f"{trace}: {error.strerror}") from None
    _check(pool, demand)
    course = PodCourse(start_ms=round(start_seconds * 500), prepare_ms=round(start_seconds * 500))
    figures = [
        run_simulation(
            variant, demand, new_store=lambda clock: LocalStore(clock=clock, seed=seed), pods=course
        )
        for variant in _variants(pool, sweep)
    ]
    if as_json:
        click.echo(json.dumps([asdict(f) for f in figures], indent=1))
        return
    _show(Console(), figures)


def _pool(files: Sequence[str]) -> PageSlotPool:
    try:
        pools = load_manifests(files).pools
    except ManifestErrors as errors:
        raise UsageProblem("\n".join(str(error) for error in errors.errors)) from None
    if len(pools) != 1:
        raise UsageProblem(f"the files have {len(pools)} pools; a simulation is about one")
    return pools[0]


def _check(pool: PageSlotPool, demand: Sequence[Arrival]) -> None:
    if not demand:
        raise UsageProblem("no request comes: raise the rate or --seconds")
    known = {country.code for country in pool.spec.countries}
    unknown = sorted({arrival.country for arrival in demand} - known)
    if unknown:
        raise UsageProblem(
            f'pool "{pool.name}" has no country {", ".join(unknown)}; it has {", ".join(sorted(known))}'
        )


def _variants(pool: PageSlotPool, sweep: str | None) -> list[PageSlotPool]:
    if sweep is None:
        return [pool]
    values = [part.strip() for part in sweep.split(",")]
    if not all(value.isdigit() and 0 < int(value) <= 5_000 for value in values):
        raise UsageProblem(f"--sweep {sweep}: write numbers such as 4,8,16")
    return [
        pool.model_copy(update={"spec": pool.spec.model_copy(update={"max_concurrent": int(value)})})
        for value in values
    ]


def _show(console: Console, figures: Sequence[Figures]) -> None:
    table = Table(title="What the pool needs, and how long requests wait", title_justify="left")
    for name in (
        "maxConcurrent",
        "wait p50",
        "p95",
        "max",
        "browsers mean",
        "most",
        "starts",
        "slots",
        "busy",
        "left",
    ):
        table.add_column(name, justify="right")
    for f in figures:
        table.add_row(
            str(f.max_concurrent),
            f"{f.wait_p50:.1f} s",
            f"{f.wait_p95:.1f} s",
            f"{f.wait_max:.1f} s",
            f"{f.browsers_mean:.1f}",
            str(f.browsers_max),
            str(f.browser_starts),
            f"{f.slots_max}/{f.max_page_slots}",
            f"{f.utilisation:.0%}",
            str(f.unfinished),
        )
    console.print(table)
    if len(figures) == 1:
        countries = Table(title="By country", title_justify="left")
        for name in ("country", "requests", "succeeded", "failed", "wait p50", "p95", "max"):
            countries.add_column(name, justify="left" if name == "country" else "right")
        for c in figures[0].countries:
            waits = (f"{wait:.1f} s" for wait in (c.wait_p50, c.wait_p95, c.wait_max))
            countries.add_row(c.country, str(c.requests), str(c.finished), str(c.failed), *waits)
        console.print(countries)
