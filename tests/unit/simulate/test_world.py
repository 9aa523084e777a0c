"""Simulated pods and agents: they obey the arbiter, take the time that the script says, and log it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.fakes.orders import an_order

from pageslots.control.ports import (
    AgentClient,
    AgentRefusedError,
    AgentUnreachableError,
    NotFoundError,
    PodPhase,
    PodView,
)
from pageslots.simulate.courses import Always, AttemptCourse, PodCourse
from pageslots.simulate.virtual import START_MS, run
from pageslots.simulate.world import SimulatedRuntime, What
from pageslots.wire import (
    AgentStatus,
    AttemptSpec,
    AttemptState,
    DrainOrder,
    Outcome,
    Phase,
    RefusalCode,
    StopOrder,
    StopReason,
)

NAME = ("default", "shop-browser-0")


def a_spec(pod: PodView, number: int = 1, *, request: str = "crawl", epoch: int = 1) -> AttemptSpec:
    return AttemptSpec(
        id=f"{request}-{number}",
        number=number,
        request=f"default/{request}",
        request_uid=request,
        pod_uid=pod.uid,
        epoch=epoch,
        country="SG",
        site="shop.example",
        start_urls=("https://shop.example/",),
    )


class Scene:
    """One ready slot in a fresh world."""

    def __init__(self, script: Always | None = None) -> None:
        self.world = SimulatedRuntime(script)
        self.pod: PodView
        self.agent: AgentClient

    async def begin(self) -> None:
        await self.world.create(an_order())
        await asyncio.sleep(0.5)
        self.pod = await self.world.get(*NAME)
        self.agent = self.world.agent(self.pod)

    async def ready(self) -> AgentStatus:
        status = await self.agent.status(after=0, wait_seconds=0)
        while status.phase is not Phase.READY:
            status = await self.agent.status(after=status.rev, wait_seconds=25)
        return status

    async def refusal(self, call: Awaitable[object]) -> RefusalCode:
        with pytest.raises(AgentRefusedError) as refused:
            await call
        return refused.value.refusal.code

    def told(self, *what: What) -> list[tuple[int, What]]:
        """What was logged, with milliseconds since the start."""
        return [
            (line.at_ms - START_MS, line.what) for line in self.world.log if not what or line.what in what
        ]


def play(scenario: Callable[[Scene], Awaitable[None]], script: Always | None = None) -> Scene:
    async def main() -> Scene:
        scene = Scene(script)
        await scene.begin()
        await scenario(scene)
        return scene

    return run(main())


def test_a_day_in_the_life_of_a_slot_takes_exactly_its_time():
    async def scenario(scene: Scene) -> None:
        status = await scene.ready()
        assert status.ready_ms == START_MS + 2_000
        report = await scene.agent.put_attempt(a_spec(scene.pod))
        assert report.state is AttemptState.RUNNING

        ended = await scene.agent.status(
            after=(await scene.agent.status(after=0, wait_seconds=0)).rev, wait_seconds=25
        )
        assert ended.attempt is not None
        assert (ended.attempt.state, ended.attempt.outcome) == (AttemptState.ENDED, Outcome.OK)
        assert (ended.phase, ended.warm_site, ended.pages) == (Phase.READY, "shop.example", 1)

        await scene.agent.acknowledge("crawl-1")
        assert (await scene.agent.status(after=0, wait_seconds=0)).attempt is None
        await scene.world.delete(*NAME, uid=scene.pod.uid, grace_ms=10_000)
        await asyncio.sleep(1)
        with pytest.raises(NotFoundError):
            await scene.world.get(*NAME)

    scene = play(scenario)
    assert scene.told() == [
        (0, What.CREATED),
        (0, What.SCHEDULED),
        (500, What.STARTED),
        (2_000, What.ATTEMPT_STARTED),
        (5_000, What.ATTEMPT_ENDED),
        (5_000, What.DELETING),
        (5_200, What.TERMINATED),
        (5_200, What.GONE),
    ]


def test_the_agent_is_the_arbiter_of_its_slot():
    """DESIGN section 8, and case D20: what is refused, and with which word."""

    async def scenario(scene: Scene) -> None:
        pod, agent = scene.pod, scene.agent
        assert await scene.refusal(agent.put_attempt(a_spec(pod))) is RefusalCode.NOT_READY
        await scene.ready()
        first = a_spec(pod, epoch=5)
        begun = await agent.put_attempt(first)
        await asyncio.sleep(1)

        assert (
            await agent.put_attempt(first)
        ).started_ms == begun.started_ms  # the same id, the same attempt
        for wrong, code in (
            (a_spec(pod, 2, epoch=5), RefusalCode.BUSY),
            (a_spec(pod, 2, epoch=4), RefusalCode.OLD_EPOCH),
            (replace(a_spec(pod, 2, epoch=5), pod_uid="another"), RefusalCode.OTHER_POD),
        ):
            assert await scene.refusal(agent.put_attempt(wrong)) is code
        drain = DrainOrder(epoch=5, pod_uid=pod.uid)
        assert await scene.refusal(agent.drain(drain)) is RefusalCode.BUSY
        assert await scene.refusal(agent.acknowledge("crawl-1")) is RefusalCode.BUSY

        await asyncio.sleep(2)
        assert (await agent.drain(drain)).phase is Phase.DRAINED
        assert await scene.refusal(agent.put_attempt(a_spec(pod, 2, epoch=5))) is RefusalCode.DRAINED
        assert (
            await agent.put_attempt(first)
        ).state is AttemptState.ENDED  # never again, however often asked
        assert await scene.refusal(agent.drain(replace(drain, epoch=4))) is RefusalCode.OLD_EPOCH

    assert [what for _, what in play(scenario).told(What.ATTEMPT_STARTED)] == [What.ATTEMPT_STARTED]


def test_a_stop_lets_the_page_under_way_end():
    async def scenario(scene: Scene) -> None:
        await scene.ready()
        await scene.agent.put_attempt(a_spec(scene.pod))
        order = StopOrder(reason=StopReason.SUSPENDED, epoch=1, pod_uid=scene.pod.uid)
        assert await scene.refusal(scene.agent.stop("other", order)) is RefusalCode.NO_SUCH_ATTEMPT
        assert (await scene.agent.stop("crawl-1", order)).stop_reason is StopReason.SUSPENDED
        await asyncio.sleep(0.6)

        ended = await scene.agent.stop("crawl-1", order)
        assert (ended.outcome, ended.stop_reason) == (Outcome.STOPPED, StopReason.SUSPENDED)

    assert play(scenario).told(What.ATTEMPT_ENDED) == [(2_500, What.ATTEMPT_ENDED)]


def test_a_pod_that_is_deleted_lets_its_attempt_checkpoint():
    """Case W15."""

    async def scenario(scene: Scene) -> None:
        await scene.ready()
        await scene.agent.put_attempt(a_spec(scene.pod))
        status = await scene.agent.status(after=0, wait_seconds=0)
        await scene.world.delete(*NAME, uid=scene.pod.uid, grace_ms=10_000)
        while status.attempt is not None and status.attempt.state is AttemptState.RUNNING:
            status = await scene.agent.status(after=status.rev, wait_seconds=25)

        assert status.attempt is not None
        assert (status.attempt.outcome, status.attempt.stop_reason) == (Outcome.STOPPED, StopReason.SHUTDOWN)
        with pytest.raises(AgentUnreachableError):
            await scene.agent.status(after=status.rev, wait_seconds=25)

    assert play(scenario).told(What.ATTEMPT_ENDED, What.GONE)[1][1] is What.GONE


def test_limits_end_an_attempt_before_its_course_does():
    async def scenario(scene: Scene) -> None:
        await scene.ready()
        await scene.agent.put_attempt(replace(a_spec(scene.pod), attempt_ms=700))
        await asyncio.sleep(0.8)
        report = await scene.agent.put_attempt(a_spec(scene.pod))
        assert report.outcome is Outcome.TIMEOUT

    play(scenario)


def test_a_crashed_browser_is_opened_again():
    async def scenario(scene: Scene) -> None:
        await scene.ready()
        await scene.agent.put_attempt(a_spec(scene.pod))
        await asyncio.sleep(3.1)
        assert (await scene.agent.status(after=0, wait_seconds=0)).phase is Phase.PREPARING
        await scene.ready()

    play(scenario, Always(every_attempt=AttemptCourse.failing(Outcome.BROWSER_CRASH)))


def test_an_attempt_may_take_its_pod_along():
    async def scenario(scene: Scene) -> None:
        await scene.ready()
        await scene.agent.put_attempt(a_spec(scene.pod))
        await asyncio.sleep(3.1)
        pod = await scene.world.get(*NAME)
        assert (pod.phase, pod.out_of_memory, pod.reachable) == (PodPhase.TERMINATED, True, False)

    scene = play(scenario, Always(every_attempt=AttemptCourse(pod_dies=True, out_of_memory=True)))
    assert scene.told(What.ATTEMPT_ENDED) == []


def test_an_agent_that_can_not_prepare_gives_up():
    async def scenario(scene: Scene) -> None:
        status = await scene.agent.status(after=1, wait_seconds=0)
        while status.phase is Phase.PREPARING:
            status = await scene.agent.status(after=status.rev, wait_seconds=25)
        assert status.phase is Phase.GAVE_UP
        assert status.consecutive_failures == 7
        assert status.last_failure is not None
        assert status.last_failure.outcome is Outcome.PROXY_ERROR

    play(scenario, Always(every_pod=PodCourse(failure=Outcome.PROXY_ERROR, message="407")))


def test_a_pod_without_room_stays_pending_and_says_so():
    """Case P11."""

    async def scenario() -> None:
        world = SimulatedRuntime(Always(every_pod=PodCourse(schedule_ms=None, message="0/3 nodes available")))
        await world.create(an_order())
        await asyncio.sleep(3600)
        pod = await world.get(*NAME)
        assert (pod.phase, pod.scheduled, pod.message) == (PodPhase.PENDING, None, "0/3 nodes available")
        await world.delete(*NAME, uid=pod.uid, grace_ms=10_000)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(NotFoundError):
            await world.get(*NAME)

    run(scenario())


def test_a_stuck_pod_never_goes_and_a_vanished_one_says_nothing():
    """Case P6; and what a removed node leaves: no word of containers."""

    async def scenario(scene: Scene) -> None:
        scene.world.stuck.add("/".join(NAME))
        await scene.world.delete(*NAME, uid=scene.pod.uid, grace_ms=0)
        await asyncio.sleep(3600)
        assert (await scene.world.get(*NAME)).deleting is not None
        scene.world.vanish(*NAME)
        with pytest.raises(NotFoundError):
            await scene.world.get(*NAME)

    assert What.TERMINATED not in [what for _, what in play(scenario).told()]


def test_the_same_script_gives_the_same_log():
    async def scenario(scene: Scene) -> None:
        await scene.ready()
        await scene.agent.put_attempt(a_spec(scene.pod))
        await asyncio.sleep(5)

    assert play(scenario).world.log == play(scenario).world.log
