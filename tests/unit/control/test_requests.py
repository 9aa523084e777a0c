"""From a request to its end, through the whole of control in virtual time."""

from collections.abc import Iterator

import pytest
from tests.fakes.pool_world import PoolWorld, a_pool, a_request

from pageslots.api import PageSlot, PageSlotPool
from pageslots.control.ports import Kind
from pageslots.simulate.courses import Always, AttemptCourse
from pageslots.simulate.world import What
from pageslots.wire import Outcome, PageCounts


@pytest.fixture
def script() -> Always:
    return Always()


@pytest.fixture
def world(script: Always) -> Iterator[PoolWorld]:
    with PoolWorld(script=script) as world:
        yield world


def test_requests_of_two_countries_all_succeed_and_every_permit_comes_back(world: PoolWorld) -> None:
    world.put(a_pool(maxPageSlots=6, maxConcurrent=3))
    world.put(*(a_request(f"r{i}", "SG" if i % 2 else "MY") for i in range(8)))
    world.start()

    world.until(world.all_finished)
    assert world.states() == ["Succeeded"] * 8
    assert len(world.held()) == len(world.live_pods()) == 3

    world.advance(300)  # idle
    assert not world.held()
    assert not world.live_pods()


def test_a_request_that_came_while_the_pool_was_idle_is_served(world: PoolWorld) -> None:
    world.put(a_pool())
    world.start()
    world.advance(500)
    world.put(a_request("late"))

    world.until(lambda: world.state("late") == "Succeeded", within_seconds=20)


def test_statuses_say_what_runs_where(world: PoolWorld, script: Always) -> None:
    script.every_attempt = AttemptCourse(duration_ms=60_000)
    world.put(a_pool(maxConcurrent=1), a_request("first"), a_request("second"))
    world.start()
    world.until(lambda: world.state("first") == "Running")
    world.advance(8)

    first = world.request("first")
    assert first.status.slot_name is not None
    slot = PageSlot.model_validate(world.find(Kind.SLOT, first.status.slot_name))
    assert slot.status.state == "Running"
    assert slot.status.request == "first"
    assert slot.status.pod_uid == world.live_pods()["default-browser-0"].uid == first.status.attempt.pod_uid  # type: ignore[union-attr]
    pool = PageSlotPool.model_validate(world.find(Kind.POOL, "default"))
    assert (pool.status.permits_held, pool.status.running, pool.status.queued) == (1, 1, 1)
    assert world.why("second") == "WaitingForSlot"


def test_counts_of_the_attempt_are_in_the_finished_request(world: PoolWorld, script: Always) -> None:
    script.every_attempt = AttemptCourse(
        counts=PageCounts(done=7, discovered=7), records=(b"{}",) * 7, bytes=123
    )
    world.put(a_pool(), a_request("one"))
    world.start()
    world.until(world.all_finished)

    status = world.request("one").status
    assert (status.pages.done, status.bytes) == (7, 123)
    assert status.result is not None
    assert status.result.records == 7
    assert {c.type: c.status for c in status.conditions} == {
        "Accepted": "True",
        "Dispatched": "True",
        "Finished": "True",
        "Succeeded": "True",
    }


def test_a_failing_site_is_retried_within_its_budget_then_the_request_fails(
    world: PoolWorld, script: Always
) -> None:
    script.every_attempt = AttemptCourse.failing(Outcome.SITE_ERROR)
    world.put(a_pool(preparation={"minRequestsPerSlot": 1}), a_request("broken"))
    world.start()
    world.until(world.all_finished, within_seconds=300)

    assert world.state("broken") == "Failed"
    assert world.why("broken") == "SiteError"
    assert world.happened(What.ATTEMPT_STARTED) == 3  # retries: siteError 2
    assert world.happened(What.CREATED) == 1  # the slot stays


def test_a_running_request_is_stopped(world: PoolWorld, script: Always) -> None:
    script.every_attempt = AttemptCourse(duration_ms=100_000)
    world.put(a_pool(), a_request("long"))
    world.start()
    world.until(lambda: world.state("long") == "Running")

    world.edit(Kind.REQUEST, "long", {"spec": {"stop": True}})
    world.until(lambda: world.state("long") == "Stopped", within_seconds=3)


def test_a_queued_request_is_stopped(world: PoolWorld) -> None:
    world.put(a_pool(suspend=True), a_request("waits"))
    world.start()
    world.advance(10)
    assert world.why("waits") == "PoolSuspended"

    world.edit(Kind.REQUEST, "waits", {"spec": {"stop": True}})
    world.until(lambda: world.state("waits") == "Stopped", within_seconds=3)
    assert world.happened(What.ATTEMPT_STARTED) == 0


def test_a_suspended_request_goes_back_to_the_queue_free_and_goes_on_when_resumed(
    world: PoolWorld, script: Always
) -> None:
    script.every_attempt = AttemptCourse(duration_ms=20_000)
    world.put(a_pool(), a_request("pausing"))
    world.start()
    world.until(lambda: world.state("pausing") == "Running")

    world.edit(Kind.REQUEST, "pausing", {"spec": {"suspend": True}})
    world.until(lambda: world.state("pausing") == "Queued", within_seconds=3)
    world.advance(70)
    assert world.state("pausing") == "Queued"
    assert world.why("pausing") == "Suspended"
    assert not world.request("pausing").status.attempts

    world.edit(Kind.REQUEST, "pausing", {"spec": {"suspend": False}})
    world.until(world.all_finished)
    assert world.state("pausing") == "Succeeded"


def test_the_urgent_request_starts_first(world: PoolWorld, script: Always) -> None:
    script.every_attempt = AttemptCourse(duration_ms=5_000)
    world.put(a_pool(maxConcurrent=1))
    world.put(*(a_request(f"r{i}", priority=100 if i == 3 else 0) for i in range(5)))
    world.start()
    world.until(world.all_finished)

    started = sorted((world.request(f"r{i}").status.first_start_time, i) for i in range(5))
    assert [i for _, i in started] == [3, 0, 1, 2, 4]


def test_a_priority_that_is_raised_while_waiting_counts(world: PoolWorld, script: Always) -> None:
    script.every_attempt = AttemptCourse(duration_ms=5_000)
    world.put(a_pool(maxConcurrent=1), *(a_request(f"r{i}") for i in range(4)))
    world.start()
    world.until(lambda: "Running" in world.states())

    world.edit(Kind.REQUEST, "r3", {"spec": {"priority": 50}})
    world.until(lambda: world.state("r3") == "Running")
    assert world.state("r1") == world.state("r2") == "Queued"


def test_a_finished_request_goes_after_its_ttl(world: PoolWorld) -> None:
    world.put(a_pool(), a_request("short", ttlSecondsAfterFinished=30), a_request("long"))
    world.start()
    world.until(world.all_finished)

    world.advance(28)
    assert world.find(Kind.REQUEST, "short") is not None
    world.advance(5)
    assert world.find(Kind.REQUEST, "short") is None
    assert world.find(Kind.REQUEST, "long") is not None


def test_a_deleted_request_is_forgotten_while_queued_and_stopped_while_running(
    world: PoolWorld, script: Always
) -> None:
    """Case D8: nothing is left behind, the slot serves the next one."""
    script.every_attempt = AttemptCourse(duration_ms=100_000)
    world.put(a_pool(maxConcurrent=1), a_request("running"), a_request("queued"), a_request("next"))
    world.start()
    world.until(lambda: world.state("running") == "Running")

    world.remove(Kind.REQUEST, "queued")
    world.remove(Kind.REQUEST, "running")
    world.until(lambda: world.state("next") == "Running", within_seconds=10)
    assert world.happened(What.CREATED) == 1
    assert world.happened(What.ATTEMPT_ENDED) == 1


def test_a_request_deleted_while_its_slot_starts_leaves_nothing(world: PoolWorld) -> None:
    """Case D8."""
    world.put(a_pool(), a_request("brief"))
    world.start()
    world.until(lambda: world.happened(What.CREATED) > 0)
    world.remove(Kind.REQUEST, "brief")
    world.advance(300)

    assert world.happened(What.ATTEMPT_STARTED) == 0
    assert not world.held()
    assert not world.live_pods()


def test_nothing_is_written_when_nothing_changes(world: PoolWorld) -> None:
    """Case D13: neither while requests wait for hours, nor when all is done."""
    world.put(a_pool(suspend=True), *(a_request(f"r{i}") for i in range(3)))
    world.start()
    world.advance(120)
    before = len(world.recording.events)
    world.advance(3_600)
    assert len(world.recording.events) == before

    world.edit(Kind.POOL, "default", {"spec": {"suspend": False}})
    world.until(world.all_finished)
    world.advance(700)  # idle closings, and the window of allocation
    before = len(world.recording.events)
    world.advance(3_600)
    assert len(world.recording.events) == before
