"""Requests that name what does not exist, through the whole of control."""

from collections.abc import Iterator

import pytest
from tests.fakes.pool_world import PoolWorld, a_pool, a_request

from pageslots.control.ports import Kind
from pageslots.simulate.courses import Always, AttemptCourse
from pageslots.simulate.world import What


@pytest.fixture
def script() -> Always:
    return Always()


@pytest.fixture
def world(script: Always) -> Iterator[PoolWorld]:
    with PoolWorld(script=script) as world:
        yield world


def test_a_pool_that_comes_after_its_requests_serves_them(world: PoolWorld) -> None:
    """Case D9: people apply folders in any order."""
    world.put(a_request("early"))
    world.start()
    world.advance(1)
    world.put(a_pool())

    world.until(lambda: world.state("early") == "Succeeded", within_seconds=10)


def test_a_request_without_its_pool_says_so_and_fails_in_bounded_time(world: PoolWorld) -> None:
    """Case D9."""
    world.put(a_request("lost"))
    world.start()
    world.advance(7)
    accepted = next(c for c in world.request("lost").status.conditions if c.type == "Accepted")
    assert (accepted.status, accepted.reason) == ("False", "NoSuchPool")

    world.until(lambda: world.state("lost") == "Failed", within_seconds=600)
    assert world.why("lost") == "NoSuchPool"


def test_a_request_for_an_unknown_country_says_which_there_are(world: PoolWorld) -> None:
    """Case D9."""
    world.put(a_pool(), a_request("strange", "TH", queueTimeoutSeconds=20))
    world.start()
    world.advance(7)
    accepted = next(c for c in world.request("strange").status.conditions if c.type == "Accepted")
    assert accepted.reason == "NoSuchCountry"
    assert "MY, SG" in accepted.message

    world.until(lambda: world.state("strange") == "Failed", within_seconds=20)


def test_a_country_that_is_added_serves_who_waits_for_it(world: PoolWorld) -> None:
    """Case D9."""
    world.put(a_pool(), a_request("strange", "TH"))
    world.start()
    world.advance(30)
    world.put(a_pool(countries=("SG", "MY", "TH")))

    world.until(lambda: world.state("strange") == "Succeeded", within_seconds=20)
    accepted = next(c for c in world.request("strange").status.conditions if c.type == "Accepted")
    assert accepted.status == "True"


def test_a_removed_country_lets_its_running_request_end_and_refuses_the_queued_one(
    world: PoolWorld, script: Always
) -> None:
    script.every_attempt = AttemptCourse(duration_ms=20_000)
    world.put(a_pool(maxConcurrent=1), a_request("running"), a_request("queued"))
    world.start()
    world.until(lambda: world.state("running") == "Running")
    world.put(a_pool(countries=("MY",), maxConcurrent=1))

    world.until(lambda: world.state("running") == "Succeeded", within_seconds=30)
    world.until(lambda: world.why("queued") == "NoSuchCountry", within_seconds=30)
    world.until(lambda: not world.live_pods(), within_seconds=30)
    assert world.happened(What.ATTEMPT_STARTED) == 1


def test_requests_outlive_their_pool(world: PoolWorld, script: Always) -> None:
    """Case U6: slots, pods and permits go; running requests go back to the queue, say why, and fail at last."""
    script.every_attempt = AttemptCourse(duration_ms=60_000)
    world.put(a_pool(maxConcurrent=2), *(a_request(f"r{i}") for i in range(4)))
    world.start()
    world.until(lambda: world.states().count("Running") == 2)

    world.remove(Kind.POOL, "default")
    world.until(lambda: not world.live_pods() and not world.all(Kind.LEASE), within_seconds=60)
    world.advance(10)
    assert not world.all(Kind.SLOT)
    assert world.states() == ["Queued"] * 4
    assert {world.why(f"r{i}") for i in range(4)} == {"NoSuchPool"}
    world.until(world.all_finished, within_seconds=700)
    assert world.states() == ["Failed"] * 4


def test_a_pool_that_is_deleted_and_made_again_goes_on(world: PoolWorld, script: Always) -> None:
    script.every_attempt = AttemptCourse(duration_ms=20_000)
    world.put(a_pool(maxConcurrent=2), *(a_request(f"r{i}") for i in range(3)))
    world.start()
    world.until(lambda: world.states().count("Running") == 2)
    world.remove(Kind.POOL, "default")
    world.advance(0.2)
    world.put(a_pool(maxConcurrent=2))

    world.until(world.all_finished, within_seconds=200)
    assert world.states() == ["Succeeded"] * 3
