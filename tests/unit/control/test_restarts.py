"""Operators that die, are deposed or come back: nothing is lost, doubled or touched."""

from collections.abc import Iterator

import pytest
from tests.fakes.pool_world import PoolWorld, a_pool, a_request
from tests.judging import Judge, unsettled

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


def judged(world: PoolWorld) -> Judge:
    """From here on every event is judged."""
    judge = Judge()
    world.recording.listener = judge.take
    return judge


@pytest.mark.parametrize("calls", range(44))
def test_an_operator_that_dies_in_any_call_loses_and_doubles_nothing(calls: int) -> None:
    """Case P1: each of its first calls in turn is the last one, once before it and once after it."""
    with PoolWorld(script=Always(every_attempt=AttemptCourse(duration_ms=500))) as world:
        judge = judged(world)
        world.put(a_pool(maxPageSlots=2, maxConcurrent=1), a_request("one"), a_request("two", "MY"))
        world.start().life.dies_after(calls)
        world.advance(8)
        world.operator.life.die()
        world.start()
        world.until(world.all_finished)
        world.advance(120)

        assert world.states() == ["Succeeded"] * 2
        assert not judge.found
        assert not unsettled({kind: world.all(kind) for kind in Kind}, world.live_pods())


@pytest.mark.parametrize("restarts", [0, 20])
def test_twenty_restarts_while_slots_start_and_run_touch_no_pod(
    world: PoolWorld, script: Always, restarts: int
) -> None:
    """Cases P2 and I10: as many pods and attempts as without a restart."""
    judge = judged(world)
    script.every_attempt = AttemptCourse(duration_ms=20_000)
    world.put(a_pool(countries=("SG",), maxConcurrent=3, preparation={"minRequestsPerSlot": 1}))
    world.put(*(a_request(f"r{i}") for i in range(6)))
    for _ in range(restarts):
        world.start()
        world.advance(0.7)
        world.operator.life.die()
    world.start()
    world.until(world.all_finished)

    assert world.happened(What.CREATED) == 3
    assert world.happened(What.ATTEMPT_STARTED) == 6
    assert [world.request(f"r{i}").status.attempt.number for i in range(6)] == [1] * 6  # type: ignore[union-attr]
    assert not judge.found


def test_finished_requests_do_not_run_again_after_a_restart(world: PoolWorld) -> None:
    """Case D17."""
    world.put(a_pool(), *(a_request(f"r{i}") for i in range(4)))
    world.start()
    world.until(world.all_finished)
    world.operator.life.die()
    world.start()
    world.advance(120)

    assert world.happened(What.ATTEMPT_STARTED) == 4


def test_an_end_that_came_while_no_operator_lived_is_recorded(world: PoolWorld, script: Always) -> None:
    """Case D11, the other half: the agent keeps the end of an attempt until somebody has written it down."""
    script.every_attempt = AttemptCourse(duration_ms=10_000)
    world.put(a_pool(), a_request("one"))
    world.start()
    world.until(lambda: world.state("one") == "Running")
    world.operator.life.die()
    world.advance(60)
    assert world.state("one") == "Running"
    world.start()

    world.until(lambda: world.state("one") == "Succeeded", within_seconds=5)
    assert world.happened(What.ATTEMPT_STARTED) == 1


def test_a_request_deleted_while_no_operator_lived_is_stopped_on_its_slot(
    world: PoolWorld, script: Always
) -> None:
    """Case D25."""
    script.every_attempt = AttemptCourse(duration_ms=500_000)
    world.put(a_pool(maxConcurrent=1), a_request("doomed"), a_request("next"))
    world.start()
    world.until(lambda: world.state("doomed") == "Running")
    world.operator.life.die()
    world.remove(Kind.REQUEST, "doomed")
    world.advance(5)
    world.start()

    world.until(lambda: world.state("next") == "Running", within_seconds=20)
    assert world.happened(What.CREATED) == 1


def test_an_operator_that_dies_after_a_drain_leaves_a_slot_that_closes(
    world: PoolWorld, script: Always
) -> None:
    """Case D25: nobody goes on trying to start something on a drained slot."""
    world.put(a_pool(maxConcurrent=1, preparation={"idleSeconds": 10}), a_request("one"))
    operator = world.start()
    world.until(world.all_finished)
    drains: list[int] = []
    real = world.pods.live_agent

    def dying(namespace: str, name: str, uid: str) -> object:
        agent = real(namespace, name, uid)
        if agent.arbiter.phase == "Drained" and not drains:
            drains.append(1)
            operator.life.die()
        return agent

    world.pods.live_agent = dying  # type: ignore[method-assign, assignment]
    world.until(lambda: drains or not world.live_pods(), within_seconds=60)
    world.start()
    world.put(a_request("two"))
    world.until(world.all_finished, within_seconds=60)


@pytest.mark.parametrize("before", [0.0, 0.02, 0.3, 1.1, 2.4])
def test_a_paused_leader_that_comes_back_changes_nothing(script: Always, before: float) -> None:
    """Case P4: its late updates fail by precondition, its late creates land on their names."""
    with PoolWorld(script=script) as world:
        judge = judged(world)
        world.put(a_pool(maxPageSlots=4, maxConcurrent=2), *(a_request(f"r{i}") for i in range(8)))
        old = world.start()
        world.advance(before)
        old.life.pause()
        world.advance(0.3)
        world.start()
        world.advance(20)
        world.depose(old)
        old.life.resume()
        world.until(world.all_finished)

        assert world.states() == ["Succeeded"] * 8
        assert world.happened(What.ATTEMPT_STARTED) == 8
        assert not judge.found


def test_a_deposed_operator_ends_by_itself(world: PoolWorld) -> None:
    world.put(a_pool(), a_request("one"))
    old = world.start()
    world.advance(0.5)
    world.depose(old)
    world.advance(5)
    assert not old.alive
