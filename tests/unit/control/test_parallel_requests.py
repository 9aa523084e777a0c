"""A parallel request: children, their parent's figures, what is passed on."""

from collections.abc import Iterator

import pytest
from tests.fakes.pool_world import PoolWorld, a_pool, a_request

from pageslots.control.ports import Kind
from pageslots.simulate.courses import Always, AttemptCourse
from pageslots.wire import Outcome

URLS = [f"https://s{i}.example/" for i in range(7)]


@pytest.fixture
def script() -> Always:
    return Always()


@pytest.fixture
def world(script: Always) -> Iterator[PoolWorld]:
    with PoolWorld(script=script) as world:
        yield world


def test_a_parents_urls_are_dealt_to_its_children_and_their_ends_make_its_end(world: PoolWorld) -> None:
    world.put(a_pool(), a_request("p", parallelism=3, startUrls=URLS))
    world.start()
    world.until(world.all_finished)

    dealt = [(world.find(Kind.REQUEST, f"p-{n}") or {})["spec"]["startUrls"] for n in range(3)]
    assert [len(urls) for urls in dealt] == [3, 2, 2]
    assert sorted(url for urls in dealt for url in urls) == URLS
    parent = world.request("p").status
    assert parent.state == "Succeeded"
    assert parent.children is not None
    assert (parent.children.total, parent.children.succeeded) == (3, 3)
    assert parent.pages.done == 3
    assert parent.attempt is None


def test_a_parent_fails_when_a_child_fails_and_names_it(world: PoolWorld, script: Always) -> None:
    world.put(a_pool(), a_request("p", parallelism=2, startUrls=URLS))
    world.start()
    world.until(lambda: world.find(Kind.REQUEST, "p-1") is not None)
    child = world.request("p-1").metadata.uid
    script.attempts[child] = AttemptCourse.failing(Outcome.BAD_REQUEST)
    world.until(world.all_finished)

    assert world.state("p") == "Failed"
    assert world.why("p") == "ChildrenFailed"
    finished = next(c for c in world.request("p").status.conditions if c.type == "Finished")
    assert "p-1 (BadRequest)" in finished.message


def test_stop_and_suspend_are_passed_on(world: PoolWorld, script: Always) -> None:
    script.every_attempt = AttemptCourse(duration_ms=100_000)
    world.put(a_pool(), a_request("p", parallelism=2, startUrls=URLS))
    world.start()
    world.until(lambda: world.states().count("Running") == 3)

    world.edit(Kind.REQUEST, "p", {"spec": {"suspend": True}})
    world.until(lambda: world.state("p-0") == world.state("p-1") == "Queued", within_seconds=5)
    world.edit(Kind.REQUEST, "p", {"spec": {"suspend": False, "stop": True}})
    world.until(world.all_finished, within_seconds=10)
    assert world.states() == ["Stopped"] * 3


def test_a_parent_without_its_pool_waits_and_then_fails(world: PoolWorld) -> None:
    """Case D9, for a parallel request."""
    world.put(a_request("p", parallelism=2, startUrls=URLS, queueTimeoutSeconds=30))
    world.start()
    world.advance(8)
    assert world.why("p") == "NoSuchPool"
    world.until(lambda: world.state("p") == "Failed", within_seconds=40)
    assert world.find(Kind.REQUEST, "p-0") is None


def test_a_parent_whose_operator_dies_while_it_creates_children_gets_each_once(world: PoolWorld) -> None:
    """Case P1, for children: their names are their identity."""
    world.put(a_pool(), a_request("p", parallelism=5, startUrls=URLS))
    first = world.start()
    world.until(lambda: world.find(Kind.REQUEST, "p-1") is not None)
    first.life.die()
    world.start()
    world.until(world.all_finished)

    assert world.states() == ["Succeeded"] * 6
    assert world.request("p").status.children.total == 5  # type: ignore[union-attr]


def test_children_go_with_their_parent(world: PoolWorld) -> None:
    world.put(a_pool(), a_request("p", parallelism=2, startUrls=URLS, ttlSecondsAfterFinished=10))
    world.start()
    world.until(world.all_finished)
    world.advance(15)
    assert not world.all(Kind.REQUEST)


def test_a_deleted_child_counts_as_stopped(world: PoolWorld, script: Always) -> None:
    script.every_attempt = AttemptCourse(duration_ms=30_000)
    world.put(a_pool(), a_request("p", parallelism=2, startUrls=URLS))
    world.start()
    world.until(lambda: world.states().count("Running") == 3)
    world.remove(Kind.REQUEST, "p-0")
    world.until(world.all_finished)
    assert world.state("p") == "Stopped"
