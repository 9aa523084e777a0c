"""What the benchmarks are made of does what it says: pairs alternate, pages weigh what their source says."""

import asyncio

import pytest
from tests.bench import typical_site
from tests.bench.__main__ import main, names
from tests.bench.counting_pipe import CountingPipe
from tests.bench.interleaving import interleave
from tests.bench.report import at_least, at_most


def test_batches_alternate_and_pairs_are_compared_one_by_one():
    """A machine that gets slower half-way must not change the ratio."""
    order: list[str] = []
    speed = iter((2.0, 1.0, 2.0, 4.0, 20.0, 10.0))

    async def batch(who):
        order.append(who)
        return next(speed)

    pairs = asyncio.run(interleave(lambda: batch("ours"), lambda: batch("theirs"), rounds=3))

    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert pairs.ratio == 2.0


@pytest.mark.parametrize(("row", "ok"), [(at_most("a", 3, "", 3), True), (at_most("a", 3.01, "", 3), False)])
def test_a_goal_is_reached_at_its_edge(row, ok):
    assert row["ok"] is ok


def test_a_figure_below_a_least_goal_is_missed():
    assert at_least("a", 0.89, "", 0.9)["ok"] is False


def test_the_typical_pages_weigh_what_the_source_says():
    """The parts add up to the medians in the docstring of `typical_site`, and the HTML is exactly as long."""
    assert sum(typical_site.HOME_IMAGES) == 1_058
    assert sum(typical_site.INNER_IMAGES) == 442
    assert sum(typical_site.SCRIPTS) == 719
    assert sum(typical_site.STYLES) == 85
    assert sum(typical_site.FONTS) == 139
    assert len(typical_site._page("home")) == 22 * 1024
    assert len(typical_site._page("7")) == 21 * 1024


def test_the_pipe_counts_every_byte_both_ways():
    async def go():
        async def echo(reader, writer):
            writer.write(await reader.readexactly(5) * 3)
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server, CountingPipe(server.sockets[0].getsockname()[1]) as pipe:
            port = int(pipe.url("").rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello")
            assert await reader.read() == b"hello" * 3
            writer.close()
            return pipe.bytes

    assert asyncio.run(go()) == 20


def test_a_name_that_is_not_known_starts_nothing(capsys):
    assert main(["no_such_thing"]) == 2
    assert "slot_start" in capsys.readouterr().err
    assert "slot_start" in names()
