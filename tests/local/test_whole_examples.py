"""The examples, as a user runs them: results equal to what the shop serves, failures named, nothing left."""

import asyncio
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.local.whole import Watching, most_at_once, records

from pageslots.api import load_manifests
from pageslots.demo.catalogue import PRODUCTS, expected_product
from pageslots.demo.examples import write_examples
from pageslots.demo.shop import ShopSite
from pageslots.local.session import RunOptions, RunResult, run_local

pytestmark = [pytest.mark.browser, pytest.mark.timeout(150)]

PORTS = 18_281
CAP = 4


def in_shop(folder: Path, *names: str, port_base: int) -> tuple[RunResult, Watching]:
    async def go() -> tuple[RunResult, Watching]:
        async with ShopSite(port_base=port_base):
            paths = [p for p in write_examples(folder / "manifests", port_base=port_base) if p.name in names]
            view = Watching()
            options = RunOptions(output=folder / "out", output_given=True, recording=folder / "events.jsonl")
            return await run_local(load_manifests(paths), options, view), view

    doing: Coroutine[Any, Any, tuple[RunResult, Watching]] = go()
    return asyncio.run(doing)


def test_all_examples_succeed_with_what_the_shop_serves(tmp_path):
    result, view = in_shop(tmp_path, "pool.yaml", "shop.yaml", port_base=PORTS)

    assert (result.exit_code, result.failed, result.unfinished) == (0, 0, 0)
    assert result.succeeded == len(result.requests) >= 12
    assert most_at_once(tmp_path / "events.jsonl") <= CAP
    assert any("no proxy for" in notice for notice in view.notices)
    pages = records(tmp_path / "out", "sg-catalogue")
    products = {
        match[1]: record
        for record in pages
        if (match := re.search(r"/product/([a-z-]+)$", record["finalUrl"]))
    }
    assert products.keys() == set(PRODUCTS)
    for sku, record in products.items():
        expected = expected_product("SG", sku)
        assert record["data"] == {
            "sku": sku,
            "name": expected.name,
            "listPrice": expected.list_price,
            "stock": record["data"]["stock"],
        }
        assert (str(expected.stock) if expected.stock else "Sold out") in record["data"]["stock"]


def test_each_designed_failure_is_named_with_its_reason(tmp_path):
    """Cases W1, W2, W3: never Succeeded, and the reason says what happened."""
    result, _ = in_shop(tmp_path, "pool.yaml", "failures.yaml", port_base=PORTS + 10)

    assert result.exit_code == 1
    assert {row.name: (row.state, row.reason) for row in result.requests} == {
        "fails-not-found": ("Failed", "NotFound"),
        "fails-forbidden": ("Failed", "Blocked"),
        "fails-challenge": ("Failed", "Blocked"),
        "fails-broken": ("Failed", "SiteError"),
        "fails-crash": ("Failed", "BrowserCrash"),
        "fails-endless-script": ("Failed", "SiteError"),
        "fails-wait": ("Failed", "SiteError"),
        "fails-selector": ("Failed", "BadRequest"),
        "fails-deadline": ("Failed", "DeadlineExceeded"),
        "fails-too-many-pages": ("Failed", "TooManyFailedPages"),
    }
    assert most_at_once(tmp_path / "events.jsonl") <= CAP
