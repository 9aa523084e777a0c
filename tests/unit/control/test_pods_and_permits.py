"""What goes wrong with pods, permits and lists, through the whole of control."""

from collections.abc import Iterator

import pytest
from tests.fakes.faults import Fault
from tests.fakes.orders import an_order
from tests.fakes.pool_world import NAMESPACE, PoolWorld, a_pool, a_request
from tests.judging import Judge

from pageslots.control.ports import Kind, PodPhase
from pageslots.simulate.courses import Always, AttemptCourse, PodCourse
from pageslots.simulate.world import What

ONE = {"preparation": {"minRequestsPerSlot": 1, "idleSeconds": 30}}


@pytest.fixture
def script() -> Always:
    return Always()


@pytest.fixture
def world(script: Always) -> Iterator[PoolWorld]:
    with PoolWorld(script=script) as world:
        judge = Judge(staleness_ms=2_000, delay_ms=1_000)
        world.recording.listener = judge.take
        yield world
        assert not judge.found


def busy_world(world: PoolWorld, script: Always, **spec: object) -> str:
    """One slot runs a long request; the name of its pod."""
    script.every_attempt = AttemptCourse(duration_ms=60_000)
    world.put(a_pool(**{"maxConcurrent": 1, **ONE, **spec}), a_request("one", retries={"slotLost": 3}))
    world.start()
    world.until(lambda: world.state("one") == "Running")
    return "default-browser-0"


@pytest.mark.parametrize("verb", ["sync", "pod.sync"])
@pytest.mark.parametrize("fault", [Fault.EMPTY, Fault.STALE])
def test_an_incomplete_list_creates_and_deletes_nothing(
    world: PoolWorld, script: Always, verb: str, fault: Fault
) -> None:
    """Cases P3 and D15: at the start of an operator, and in the middle of its life."""
    busy_world(world, script)
    world.faults.on(verb, fault, times=5)
    world.operator.life.die()
    world.start()
    world.advance(20)
    world.faults.on(verb, fault, times=5)
    world.pods.interrupt_watches()
    for feed in world.store._feeds.values():
        feed.interrupt()
    world.until(world.all_finished)

    assert world.states() == ["Succeeded"]
    assert world.happened(What.CREATED) == world.happened(What.ATTEMPT_STARTED) == 1


def test_lists_that_fail_are_asked_for_again(world: PoolWorld) -> None:
    """Case P3."""
    world.put(a_pool(), a_request("one"))
    world.faults.on("get", Fault.ERROR, times=10)
    world.faults.on("pod.get", Fault.ERROR, times=3)
    world.start()
    world.until(world.all_finished)
    assert world.states() == ["Succeeded"]


def test_a_deletion_that_no_watch_told_is_noticed(world: PoolWorld) -> None:
    """Case D15: a gap in the watch, with a deletion in it."""
    world.put(a_pool(suspend=True), a_request("gone"), a_request("stays"))
    world.start()
    world.advance(1)
    world.faults.on("event", Fault.GAP, name="CrawlRequest")
    world.remove(Kind.REQUEST, "gone")
    world.advance(5)
    pool = next(iter(world.controller.pools.values()))
    assert [request.name for request in pool.index.requests.values()] == ["stays"]


@pytest.mark.parametrize("out_of_memory", [False, True])
def test_a_pod_that_ends_by_itself_is_deleted_and_its_permit_comes_back(
    world: PoolWorld, script: Always, out_of_memory: bool
) -> None:
    """Case P5: Failed, Evicted, Completed; the request goes on elsewhere."""
    name = busy_world(world, script)

    async def evict() -> None:
        world.pods.crash(NAMESPACE, name, message="Evicted", out_of_memory=out_of_memory)

    world.do(evict())
    world.until(lambda: world.happened(What.CREATED) == 2, within_seconds=5)
    world.until(world.all_finished)
    assert world.state("one") == "Succeeded"
    outcomes = {str(a.outcome): a.count for a in world.request("one").status.attempts}
    assert outcomes == {"OutOfMemory" if out_of_memory else "SlotLost": 1, "Ok": 1}


def test_a_pod_that_vanishes_keeps_its_permit_until_nothing_of_it_can_run(
    world: PoolWorld, script: Always
) -> None:
    """Cases D1 and D16: the attempt is lost only 15 s later (grace 10 + 5), then retried once."""
    name = busy_world(world, script)

    async def vanish() -> None:
        world.pods.vanish(NAMESPACE, name)

    world.do(vanish())
    world.advance(14)
    assert world.state("one") == "Running"
    assert len(world.held()) == 1
    world.until(lambda: world.happened(What.ATTEMPT_STARTED) == 2, within_seconds=10)
    world.until(world.all_finished)
    assert world.state("one") == "Succeeded"


def test_a_pod_that_never_ends_keeps_its_permit_and_its_request(world: PoolWorld, script: Always) -> None:
    """Case P6: nothing is forced; the others go on with what is left."""
    script.every_attempt = AttemptCourse(duration_ms=10_000_000, progresses=False)
    deadlines = {"stuckTerminatingSeconds": 20, "staleSeconds": 30}
    world.put(a_pool(maxConcurrent=2, deadlines=deadlines, **ONE), a_request("one"))
    world.start()
    world.until(lambda: world.state("one") == "Running")
    name = "default-browser-0"
    world.pods.stuck.add(f"{NAMESPACE}/{name}")
    script.every_attempt = AttemptCourse(duration_ms=5_000)
    world.until(lambda: world.live_pods()[name].deleting, within_seconds=120)
    world.put(a_request("two", "MY"))
    world.until(lambda: world.state("two") == "Succeeded", within_seconds=60)
    world.advance(100)

    assert world.state("one") == "Running"
    assert "default-permit-0" in world.held()
    assert world.happened(What.ATTEMPT_STARTED) == 2


def test_a_lowered_cap_drains_and_a_raised_one_is_used(world: PoolWorld, script: Always) -> None:
    """Case P7: 4 → 2 with 4 busy; busy ones finish, no new permit until under 2."""
    script.every_attempt = AttemptCourse(duration_ms=20_000)
    world.put(a_pool(maxConcurrent=4, countries=("SG",), **ONE), *(a_request(f"r{i}") for i in range(12)))
    world.start()
    world.until(lambda: world.states().count("Running") == 4)
    world.put(a_pool(maxConcurrent=2, countries=("SG",), **ONE))
    world.advance(1)
    assert world.states().count("Running") == 4
    world.until(lambda: len(world.live_pods()) == 2, within_seconds=40)
    world.advance(10)
    assert world.states().count("Running") == 2
    world.put(a_pool(maxConcurrent=4, countries=("SG",), **ONE))
    world.until(lambda: world.states().count("Running") == 4, within_seconds=20)
    world.until(world.all_finished, within_seconds=200)
    assert world.happened(What.ATTEMPT_STARTED) == 12


@pytest.mark.parametrize("holder", [None, "somebody else", {"no": "string"}])
def test_an_edited_permit_is_recovered(world: PoolWorld, script: Always, holder: object) -> None:
    """Case P9: fail closed; the request ends on some slot, and no second pod of that name appears."""
    busy_world(world, script)
    world.edit(Kind.LEASE, "default-permit-0", {"spec": {"holderIdentity": holder}}, by="hand")
    world.advance(40)
    assert len(world.live_pods()) <= 1
    if not isinstance(holder, dict):  # nobody but a person can make sense of the other
        world.until(world.all_finished, within_seconds=300)
        assert world.state("one") == "Succeeded"


def test_a_deleted_permit_is_recovered(world: PoolWorld, script: Always) -> None:
    """Case P9."""
    busy_world(world, script)
    world.remove(Kind.LEASE, "default-permit-0", by="hand")
    world.until(world.all_finished, within_seconds=300)
    assert world.state("one") == "Succeeded"


def test_a_foreign_pod_of_our_name_is_left_alone_and_its_permit_unused(world: PoolWorld) -> None:
    """Case P10."""

    async def intrude() -> None:
        order = an_order(0)
        await world.pods.create(
            order.__class__(**{**_fields(order), "name": "default-browser-0", "pool": "default"})
        )
        world.pods.alter(NAMESPACE, "default-browser-0", owner_uid=None)

    world.do(intrude())
    uid = world.live_pods()["default-browser-0"].uid
    world.put(a_pool(maxConcurrent=2, **ONE), *(a_request(f"r{i}") for i in range(4)))
    world.start()
    world.until(world.all_finished)

    assert world.live_pods()["default-browser-0"].uid == uid
    assert world.live_pods()["default-browser-0"].deleting is None
    assert "default-permit-0" not in world.held()


def _fields(order: object) -> dict[str, object]:
    return {name: getattr(order, name) for name in order.__dataclass_fields__}  # type: ignore[attr-defined]


def test_a_pod_of_our_name_that_appears_between_look_and_create_poisons_the_permit(world: PoolWorld) -> None:
    """Case P10: told once, the request goes on with another permit."""
    world.put(a_pool(maxConcurrent=2, **ONE), a_request("one"))
    real = world.pods.create
    intruded: list[int] = []

    async def create(order):
        if not intruded:
            intruded.append(order.number)
            await real(order)
            world.pods.alter(NAMESPACE, order.name, owner_uid=None)
        return await real(order)

    world.pods.create = create  # type: ignore[method-assign]
    world.start()
    world.until(world.all_finished)
    assert world.state("one") == "Succeeded"
    assert len(world.told("permit.poisoned")) == 1
    world.advance(200)
    assert len(world.live_pods()) == 1


def test_pods_without_a_node_wait_then_back_off_to_one(world: PoolWorld, script: Always) -> None:
    """Case P11: the autoscaler gets its time; then one pod is the probe for all."""
    script.every_pod = PodCourse(schedule_ms=None, message="0/3 nodes have room")
    world.put(
        a_pool(maxConcurrent=4, deadlines={"unschedulableSeconds": 30}, **ONE),
        *(a_request(f"r{i}") for i in range(4)),
    )
    world.start()
    world.advance(25)
    assert len(world.live_pods()) == 4
    world.advance(60)
    assert len(world.live_pods()) == 1

    script.every_pod = PodCourse()

    async def room() -> None:
        world.pods._schedule(next(iter(world.pods._pods.values())))

    world.do(room())
    world.until(world.all_finished)
    assert world.states() == ["Succeeded"] * 4


def test_a_quota_is_pushed_back_on_without_a_hot_loop(world: PoolWorld) -> None:
    """Case P12: pauses grow; when there is room the pods come."""
    world.put(a_pool(maxConcurrent=1, **ONE), a_request("one"))
    world.faults.on("pod.create", Fault.FORBIDDEN, times=None)
    world.start()
    world.advance(120)
    assert 5 <= world.faults.calls["pod.create"] <= 40
    world.faults.heal()
    world.until(world.all_finished)
    assert world.state("one") == "Succeeded"


def test_a_pod_replaced_by_one_of_the_same_name_is_another_pod(world: PoolWorld, script: Always) -> None:
    """Case D12: the attempt of the old UID is lost, never credited to the new pod."""
    name = busy_world(world, script)
    old = world.live_pods()[name].uid

    async def replace() -> None:
        pod = world.pods._pods[f"{NAMESPACE}/{name}"]
        world.pods.crash(NAMESPACE, name)
        world.pods.vanish(NAMESPACE, name)
        await world.pods.create(pod.order)

    world.do(replace())
    world.until(world.all_finished)
    attempt = world.request("one").status.attempt
    assert attempt is not None
    assert (attempt.number, attempt.pod_uid != old) == (2, True)
    assert world.state("one") == "Succeeded"


def test_a_slot_that_closes_while_it_is_chosen_gives_the_request_back(
    world: PoolWorld, script: Always
) -> None:
    """Cases D1, D2 and D20: the agent decides; the loser of the race costs nothing and is served elsewhere."""
    world.put(a_pool(maxConcurrent=2, **ONE), a_request("first"))
    world.start()
    world.until(world.all_finished)
    pod = next(iter(world.pods._pods.values()))
    assert pod.agent is not None
    pod.agent.arbiter.shut_down()  # SIGTERM has come, and nobody has heard of it yet
    world.put(a_request("second"))
    world.until(world.all_finished, within_seconds=60)

    assert world.state("second") == "Succeeded"
    assert {str(a.outcome) for a in world.request("second").status.attempts} == {"Ok"}


def test_an_agent_that_hangs_is_found_and_its_request_goes_on(world: PoolWorld, script: Always) -> None:
    """No progress for staleSeconds: the pod is deleted, the attempt lost, the next one succeeds."""
    script.every_attempt = AttemptCourse(duration_ms=10_000_000, progresses=False)
    world.put(a_pool(maxConcurrent=1, deadlines={"staleSeconds": 30}, **ONE), a_request("one"))
    world.start()
    world.until(lambda: world.state("one") == "Running")
    script.every_attempt = AttemptCourse()
    world.until(world.all_finished, within_seconds=60)
    assert world.state("one") == "Succeeded"
    assert [f["reason"] for f in world.told("pod.delete")] == ["Stale"]


def test_a_result_whose_write_fails_is_written_once(world: PoolWorld, script: Always) -> None:
    """Case D11: no second run; the answer of the write is lost, then the write itself fails."""
    busy_world(world, script)
    for fault in (Fault.ERROR, Fault.LOST, Fault.THROTTLED):
        world.faults.on("patch", fault, name="one")
    world.until(world.all_finished)
    world.advance(30)
    assert world.state("one") == "Succeeded"
    assert world.happened(What.ATTEMPT_STARTED) == 1


def test_a_lost_answer_to_pod_create_makes_no_second_pod(world: PoolWorld) -> None:
    """Case P1: the result of the create is unknown; the name tells."""
    world.put(a_pool(maxConcurrent=1, **ONE), a_request("one"))
    world.faults.on("pod.create", Fault.LOST, times=1)
    world.start()
    world.until(world.all_finished)
    assert world.happened(What.CREATED) == 1
    assert all(pod.phase is PodPhase.RUNNING for pod in world.live_pods().values())
