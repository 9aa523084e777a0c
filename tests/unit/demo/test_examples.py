import csv
from pathlib import Path

import pytest

from pageslots.api import load_manifests
from pageslots.demo.catalogue import STORES
from pageslots.demo.examples import NAMES, example, write_examples
from pageslots.demo.shop import PORT_BASE

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_the_demos_own(name):
    renew = "renew it: python -m pageslots.demo.examples examples"
    assert (EXAMPLES / name).read_text(encoding="utf-8") == example(name), renew


def test_the_examples_are_valid_manifests(tmp_path):
    write_examples(tmp_path)

    loaded = load_manifests([tmp_path / name for name in ("pool.yaml", "shop.yaml", "failures.yaml")])

    [pool] = loaded.pools
    assert pool.metadata.name == "default"
    assert [country.code for country in pool.spec.countries] == list(STORES)
    assert len(loaded.requests) == 12 + 10
    assert {request.spec.country for request in loaded.requests} == set(STORES)


def test_each_request_crawls_its_own_countrys_site(tmp_path):
    ports = dict(zip(STORES, range(PORT_BASE, PORT_BASE + 3), strict=True))
    paths = write_examples(tmp_path)

    for request in load_manifests(paths[:3]).requests:
        urls = request.spec.start_urls or _urls(tmp_path / "products.csv")
        start = f"http://127.0.0.1:{ports[request.spec.country]}/"
        assert all(url.startswith(start) for url in urls), request.metadata.name


def test_the_ports_follow_the_port_base(tmp_path):
    write_examples(tmp_path, port_base=40_000)

    texts = "".join((tmp_path / name).read_text(encoding="utf-8") for name in NAMES)

    assert "127.0.0.1:1808" not in texts
    assert {f"127.0.0.1:{port}" for port in (40_000, 40_001, 40_002)} <= set(
        texts.replace("/", '"').split('"')
    )
    assert all(url.startswith("http://127.0.0.1:40001/") for url in _urls(tmp_path / "products.csv"))


def test_a_failing_request_has_a_politeness_key_of_its_own(tmp_path):
    """Otherwise the back-off of the one that is blocked would hold up the shop's others (case D21)."""
    failures = load_manifests([write_examples(tmp_path)[2]]).requests

    sites = [request.spec.site for request in failures]

    assert None not in sites
    assert len(set(sites)) == len(failures)


def _urls(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row["url"] for row in csv.DictReader(file)]
