"""What every `SlotRuntime` must do: the suite that simulated pods and processes both pass.

Subclass `SlotRuntimeContract` and override `run`, which carries out a scenario with a `World`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import pytest
from tests.fakes.orders import an_order

from pageslots.control.ports import (
    AgentUnreachableError,
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    PodChanged,
    PodPhase,
    PodsSynced,
    PodView,
    SlotRuntime,
)
from pageslots.wire import DrainOrder

WITHIN_SECONDS = 20
NAME = ("default", "shop-browser-0")


@dataclass(frozen=True, slots=True)
class World:
    """A runtime, and a way to make a pod's agent die by itself."""

    runtime: SlotRuntime
    crash: Callable[[PodView], Awaitable[None]]


Run = Callable[[Callable[[World], Awaitable[None]]], None]


async def in_phase(runtime: SlotRuntime, phase: PodPhase, number: int = 0) -> PodView:
    """The pod, once it is in that phase."""
    async with asyncio.timeout(WITHIN_SECONDS):
        while True:
            pod = await runtime.get("default", f"shop-browser-{number}")
            if pod.phase is phase:
                return pod
            await asyncio.sleep(0.01)


async def gone(runtime: SlotRuntime, number: int = 0) -> None:
    """Wait until nothing of the pod is left."""
    async with asyncio.timeout(WITHIN_SECONDS):
        while True:
            try:
                await runtime.get("default", f"shop-browser-{number}")
            except NotFoundError:
                return
            await asyncio.sleep(0.01)


class SlotRuntimeContract:
    """Inherit, and override `run`."""

    @pytest.fixture
    def run(self) -> Run:
        raise NotImplementedError

    def test_a_pod_starts_and_says_whose_it_is(self, run: Run):
        async def scenario(world: World) -> None:
            created = await world.runtime.create(an_order(3))
            pod = await in_phase(world.runtime, PodPhase.RUNNING, 3)

            assert pod.uid == created.uid
            assert (pod.number, pod.owner_uid, pod.pool_uid) == (3, "slot-uid-3", "pool-uid")
            assert (pod.revision, pod.reachable, pod.deleting) == ("r1", True, None)
            assert pod.scheduled is not None
            assert [p.uid for p in await world.runtime.list()] == [pod.uid]

        run(scenario)

    def test_there_are_never_two_of_one_name(self, run: Run):
        """Invariant I1: the name is the cap, also while the pod of that name is on its way out."""

        async def scenario(world: World) -> None:
            tries = (world.runtime.create(an_order(slot_uid=f"slot-{n}")) for n in range(5))
            results = await asyncio.gather(*tries, return_exceptions=True)
            [winner] = [result for result in results if isinstance(result, PodView)]
            assert sum(isinstance(result, AlreadyExistsError) for result in results) == 4

            await world.runtime.delete(*NAME, uid=winner.uid, grace_ms=5_000)
            if any(pod.uid == winner.uid for pod in await world.runtime.list()):
                with pytest.raises(AlreadyExistsError):
                    await world.runtime.create(an_order())
            await gone(world.runtime)
            assert (await world.runtime.create(an_order())).uid != winner.uid

        run(scenario)

    def test_what_does_not_exist_is_not_found(self, run: Run):
        async def scenario(world: World) -> None:
            with pytest.raises(NotFoundError):
                await world.runtime.get(*NAME)
            with pytest.raises(NotFoundError):
                await world.runtime.delete(*NAME, uid="any", grace_ms=0)
            assert list(await world.runtime.list()) == []

        run(scenario)

    def test_a_delete_meant_for_an_older_pod_of_the_name_is_refused(self, run: Run):
        """Case D12."""

        async def scenario(world: World) -> None:
            first = await world.runtime.create(an_order())
            await world.runtime.delete(*NAME, uid=first.uid, grace_ms=1_000)
            await gone(world.runtime)
            second = await world.runtime.create(an_order())
            with pytest.raises(ConflictError):
                await world.runtime.delete(*NAME, uid=first.uid, grace_ms=0)

            pod = await in_phase(world.runtime, PodPhase.RUNNING)
            assert (pod.uid, pod.deleting) == (second.uid, None)

        run(scenario)

    def test_a_watch_tells_the_whole_life_and_says_terminated_before_gone(self, run: Run):
        """Invariant I3 counts on it: a pod that ends in order is reported terminated first."""

        async def scenario(world: World) -> None:
            old = await world.runtime.create(an_order(1))
            async with aclosing(world.runtime.watch()) as events, asyncio.timeout(WITHIN_SECONDS):
                first = await anext(events)
                assert isinstance(first, PodsSynced)
                assert [pod.uid for pod in first.pods] == [old.uid]

                pod = await world.runtime.create(an_order(0))
                phases: list[PodPhase] = []
                async for event in events:
                    assert isinstance(event, PodChanged)
                    if event.pod.uid != pod.uid:
                        continue
                    if not phases or phases[-1] is not event.pod.phase:
                        phases.append(event.pod.phase)
                    if event.gone:
                        break
                    if event.pod.phase is PodPhase.RUNNING and event.pod.deleting is None:
                        await world.runtime.delete(*NAME, uid=pod.uid, grace_ms=5_000)
                assert phases[-3:] == [PodPhase.STARTING, PodPhase.RUNNING, PodPhase.TERMINATED]
                with pytest.raises(NotFoundError):
                    await world.runtime.get(*NAME)

        run(scenario)

    def test_a_pod_that_dies_by_itself_stays_listed_until_it_is_deleted(self, run: Run):
        """Case P5: it holds its name, so that its permit can't be forgotten."""

        async def scenario(world: World) -> None:
            await world.runtime.create(an_order())
            pod = await in_phase(world.runtime, PodPhase.RUNNING)
            await world.crash(pod)
            dead = await in_phase(world.runtime, PodPhase.TERMINATED)

            assert (dead.uid, dead.reachable, dead.deleting) == (pod.uid, False, None)
            assert dead.message
            with pytest.raises(AlreadyExistsError):
                await world.runtime.create(an_order())
            await world.runtime.delete(*NAME, uid=pod.uid, grace_ms=1_000)
            await gone(world.runtime)

        run(scenario)

    def test_a_second_delete_changes_nothing_but_may_shorten_the_grace(self, run: Run):
        async def scenario(world: World) -> None:
            pod = await world.runtime.create(an_order())
            await world.runtime.delete(*NAME, uid=pod.uid, grace_ms=60_000)
            for grace_ms in (60_000, 0):
                try:
                    await world.runtime.delete(*NAME, uid=pod.uid, grace_ms=grace_ms)
                except NotFoundError:
                    break  # it was gone already
            await gone(world.runtime)

        run(scenario)

    def test_nobody_answers_for_a_pod_that_is_gone_or_another_of_its_name(self, run: Run):
        """Case D12: what the new pod's agent says is never credited to the old one."""

        async def scenario(world: World) -> None:
            await world.runtime.create(an_order())
            old = await in_phase(world.runtime, PodPhase.RUNNING)
            client = world.runtime.agent(old)
            await world.runtime.delete(*NAME, uid=old.uid, grace_ms=1_000)
            await gone(world.runtime)
            with pytest.raises(AgentUnreachableError):
                await client.status(after=0, wait_seconds=0)

            await world.runtime.create(an_order())
            await in_phase(world.runtime, PodPhase.RUNNING)
            for late in (client, world.runtime.agent(old)):
                with pytest.raises(AgentUnreachableError):
                    await late.drain(DrainOrder(epoch=1, pod_uid=old.uid))

        run(scenario)
