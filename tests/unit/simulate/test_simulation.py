"""The simulator: what it measures is what happened, and bad input is told."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pageslots.api import PageSlotPool
from pageslots.cli.simulate import simulate as command
from pageslots.local.store import LocalStore
from pageslots.simulate.demand import Arrival, DemandError, parse_rates, read_trace, synthetic
from pageslots.simulate.simulation import simulate
from pageslots.wire import Outcome


def a_pool(cap: int, **spec) -> PageSlotPool:
    return PageSlotPool.model_validate(
        {
            "metadata": {"name": "default", "namespace": "default"},
            "spec": {
                "maxConcurrent": cap,
                "countries": [{"code": "SG", "direct": True}, {"code": "DE", "direct": True}],
                **spec,
            },
        }
    )


def run(pool: PageSlotPool, arrivals: list[Arrival]):
    return simulate(pool, arrivals, new_store=lambda clock: LocalStore(clock=clock, seed=1))


def arrivals(
    count: int, *, country: str = "SG", every_ms: int = 0, duration_ms: int = 10_000
) -> list[Arrival]:
    return [Arrival(n * every_ms, country, f"site-{n}.example", duration_ms) for n in range(count)]


def test_a_burst_under_a_cap_of_one_runs_one_after_the_other():
    figures = run(a_pool(1), arrivals(5))

    assert (figures.unfinished, figures.browsers_max) == (0, 1)
    assert figures.wait_max >= 4 * 10
    assert figures.countries[0].finished == 5


def test_the_cap_holds_and_a_larger_one_shortens_the_wait():
    demand = sorted(arrivals(30, every_ms=500) + arrivals(30, country="DE", every_ms=500))

    narrow, wide = run(a_pool(2), demand), run(a_pool(12), demand)

    assert narrow.browsers_max == 2
    assert wide.browsers_max <= 12
    assert wide.wait_p95 < narrow.wait_p95
    assert narrow.unfinished == wide.unfinished == 0


def test_a_failing_request_is_counted_as_failed():
    figures = run(a_pool(2), [Arrival(0, "SG", "a.example", 1_000, Outcome.NOT_FOUND)])

    assert (figures.countries[0].failed, figures.countries[0].finished) == (1, 0)


def test_the_same_seed_gives_the_same_figures():
    demand = synthetic(parse_rates("SG=400,DE=100"), seconds=600, sites=5, mean_seconds=5, burst=3, seed=7)

    assert run(a_pool(4), demand) == run(a_pool(4), demand)


def test_rates_are_kept_on_average():
    demand = synthetic(parse_rates("SG=3600"), seconds=3_600, sites=10, mean_seconds=2, burst=1, seed=3)

    assert 3_300 < len(demand) < 3_900
    assert 1_800 < sum(a.duration_ms for a in demand) / len(demand) < 2_200


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"country": "SG", "durationSeconds": 1}', "atSeconds is missing"),
        ('{"atSeconds": "soon", "country": "SG", "durationSeconds": 1}', "soon"),
        ("{", "Expecting"),
        ('{"atSeconds": 1, "country": "SG", "durationSeconds": 1, "outcome": "Fine"}', "Fine"),
    ],
)
def test_a_bad_line_of_a_trace_is_named(tmp_path: Path, line: str, says: str):
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"atSeconds": 0, "country": "SG", "durationSeconds": 1}\n' + line + "\n")

    with pytest.raises(DemandError, match=r"trace\.jsonl:2: ") as error:
        read_trace(trace)
    assert says in str(error.value)


def test_the_command_sweeps_and_prints_json(tmp_path: Path):
    manifest = tmp_path / "pool.yaml"
    manifest.write_text(
        json.dumps(
            {
                "apiVersion": "pageslots.dev/v1alpha1",
                "kind": "PageSlotPool",
                "metadata": {"name": "default"},
                "spec": {"countries": [{"code": "SG", "direct": True}]},
            }
        )
    )
    arguments = [str(manifest), "--arrivals", "SG=600", "--seconds", "300", "--sweep", "1,4", "--json"]

    done = CliRunner().invoke(command, arguments)

    assert done.exit_code == 0, done.output
    assert [f["max_concurrent"] for f in json.loads(done.output)] == [1, 4]
    table = CliRunner().invoke(command, arguments[:-3])
    assert "What the pool needs" in table.output
    for bad, says in (
        (["--arrivals", "SG"], "COUNTRY=REQUESTS_PER_HOUR"),
        (["--arrivals", "FR=10"], "has no country FR"),
        ([], "either --trace"),
        (["--arrivals", "SG=10", "--sweep", "many"], "write numbers"),
        (["--trace", str(tmp_path / "none.jsonl")], "No such file"),
    ):
        refused = CliRunner().invoke(command, [str(manifest), *bad])
        assert refused.exit_code != 0
        assert says in f"{refused.output}{refused.exception}"
