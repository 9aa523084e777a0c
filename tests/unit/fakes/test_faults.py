"""The fakes do what they say: each fault, told by name, in virtual time."""

import asyncio
from contextlib import aclosing

import pytest
from tests.contract.object_api import NAMESPACE, a_lease
from tests.fakes import vtime
from tests.fakes.api import FaultyApi
from tests.fakes.faults import Fault, Faults
from tests.fakes.orders import an_order
from tests.fakes.runtime import FakeRuntime

from pageslots.control.ports import (
    AgentRefusedError,
    AgentUnreachableError,
    Changed,
    ForbiddenError,
    Kind,
    NotFoundError,
    PodsSynced,
    Synced,
    ThrottledError,
    UnavailableError,
)
from pageslots.local.store import LocalStore
from pageslots.simulate.virtual import VirtualClock
from pageslots.wire import Phase

NAME = ("default", "shop-browser-0")


def an_api() -> FaultyApi:
    return FaultyApi(LocalStore(clock=VirtualClock(), seed=0), Faults())


def test_an_error_before_does_nothing_and_a_lost_answer_hides_what_was_done():
    async def scenario() -> None:
        api = an_api()
        for fault in (Fault.ERROR, Fault.LOST):
            with pytest.raises(NotFoundError):
                await api.get(Kind.LEASE, NAMESPACE, "permit")
            api.faults.on("create", fault)
            with pytest.raises(UnavailableError):
                await api.create(Kind.LEASE, a_lease("permit"))
        assert await api.get(Kind.LEASE, NAMESPACE, "permit")
        assert [one.fault for one in api.faults.injected] == [Fault.ERROR, Fault.LOST]
        assert api.faults.calls["create"] == 2

    vtime.run(scenario())


def test_refusals_of_the_server():
    async def scenario() -> None:
        api = an_api()
        api.faults.on("create", Fault.THROTTLED)
        api.faults.on("create", Fault.FORBIDDEN)
        with pytest.raises(ThrottledError) as throttled:
            await api.create(Kind.LEASE, a_lease("permit"))
        with pytest.raises(ForbiddenError):
            await api.create(Kind.LEASE, a_lease("permit"))
        assert throttled.value.retry_after_ms == 1_000
        await api.create(Kind.LEASE, a_lease("permit"))

    vtime.run(scenario())


def test_slow_is_late_and_a_slow_answer_is_late_only_for_the_caller():
    async def scenario() -> None:
        api = an_api()
        loop = asyncio.get_running_loop()
        for fault, there_at_once in ((Fault.SLOW, False), (Fault.SLOW_ANSWER, True)):
            api.faults.on("create", fault, name=fault)
            begun = loop.time()
            creating = asyncio.create_task(api.create(Kind.LEASE, a_lease(fault)))
            await asyncio.sleep(0.5)
            assert (
                len([1 for o in await api.api.list(Kind.LEASE) if o["metadata"]["name"] == fault])
                == there_at_once
            )
            await creating
            assert loop.time() - begun == 1

    vtime.run(scenario())


def test_lists_can_be_late_or_empty():
    """Case P3."""

    async def scenario() -> None:
        api = an_api()
        await api.create(Kind.LEASE, a_lease("one"))
        assert len(await api.list(Kind.LEASE)) == 1
        await api.create(Kind.LEASE, a_lease("two"))
        api.faults.on("list", Fault.STALE)
        api.faults.on("list", Fault.EMPTY, name=Kind.LEASE)
        assert [len(await api.list(Kind.LEASE)) for _ in range(3)] == [1, 0, 2]

    vtime.run(scenario())


def test_a_watch_that_loses_events_lists_everything_anew():
    """Case D15."""

    async def scenario() -> None:
        api = an_api()
        one = await api.create(Kind.LEASE, a_lease("one"))
        async with aclosing(api.watch(Kind.LEASE)) as events:
            assert await anext(events) == Synced((one,))
            api.faults.on("event", Fault.GAP)
            await api.delete(Kind.LEASE, NAMESPACE, "one", uid=one["metadata"]["uid"])
            two = await api.create(Kind.LEASE, a_lease("two"))
            assert await anext(events) == Synced((two,))
            three = await api.create(Kind.LEASE, a_lease("three"))
            assert await anext(events) == Changed(three)

    vtime.run(scenario())


def test_a_silent_watch_tells_nothing_until_it_is_healed():
    """Case D14."""

    async def scenario() -> None:
        api = an_api()
        async with aclosing(api.watch(Kind.LEASE)) as events:
            await anext(events)
            api.faults.on("event", Fault.SILENCE, times=None)
            waiting = asyncio.ensure_future(anext(events))
            await api.create(Kind.LEASE, a_lease("one"))
            await asyncio.sleep(3600)
            assert not waiting.done()

            api.faults.heal()
            await api.create(Kind.LEASE, a_lease("two"))
            told = await waiting
            assert isinstance(told, Synced)
            assert len(told.objects) == 2

    vtime.run(scenario())


def test_a_complete_list_that_lies_is_followed_by_the_truth():
    async def scenario() -> None:
        api = an_api()
        one = await api.create(Kind.LEASE, a_lease("one"))
        api.faults.on("sync", Fault.EMPTY)
        async with aclosing(api.watch(Kind.LEASE)) as events:
            assert [await anext(events), await anext(events)] == [Synced(()), Synced((one,))]

    vtime.run(scenario())


def test_agents_can_hang_be_out_of_reach_refuse_and_lie():
    async def scenario() -> None:
        runtime = FakeRuntime()
        await runtime.create(an_order())
        await asyncio.sleep(0.6)
        pod = await runtime.get(*NAME)
        agent, loop = runtime.agent(pod), asyncio.get_running_loop()
        assert (await agent.status(after=0, wait_seconds=0)).phase is Phase.PREPARING

        runtime.faults.on("agent.status", Fault.LIE, name=pod.name)
        assert (await agent.status(after=0, wait_seconds=0)).phase is Phase.READY
        runtime.faults.on("agent.status", Fault.ERROR)
        with pytest.raises(AgentUnreachableError):
            await agent.status(after=0, wait_seconds=0)
        runtime.faults.on("agent.acknowledge", Fault.REFUSED)
        with pytest.raises(AgentRefusedError):
            await agent.acknowledge("any")
        runtime.faults.on("agent.acknowledge", Fault.HANG)
        begun = loop.time()
        with pytest.raises(AgentUnreachableError):
            await agent.acknowledge("any")
        assert loop.time() - begun == 30

    vtime.run(scenario())


def test_pods_can_be_created_without_an_answer_and_listed_late():
    async def scenario() -> None:
        runtime = FakeRuntime()
        runtime.faults.on("pod.create", Fault.LOST)
        with pytest.raises(UnavailableError):
            await runtime.create(an_order())
        assert await runtime.get(*NAME)
        runtime.faults.on("pod.list", Fault.STALE)
        assert list(await runtime.list()) == []
        assert len(await runtime.list()) == 1
        runtime.faults.on("pod.sync", Fault.EMPTY)
        async with aclosing(runtime.watch()) as events:
            assert await anext(events) == PodsSynced(())
            told = await anext(events)
            assert isinstance(told, PodsSynced)
            assert len(told.pods) == 1

    vtime.run(scenario())


def test_the_same_seed_draws_the_same_faults_and_healing_ends_them():
    async def scenario() -> list[str]:
        api = FaultyApi(LocalStore(clock=VirtualClock(), seed=0), Faults(seed=5, rate=0.3))
        for n in range(100):
            try:
                await api.create(Kind.LEASE, a_lease(f"permit-{n}"))
            except (UnavailableError, ThrottledError, ForbiddenError):
                continue
        drawn = [f"{one.name} {one.fault}" for one in api.faults.injected]
        api.faults.heal()
        for n in range(100):
            await api.create(Kind.LEASE, a_lease(f"healed-{n}"))
        assert len(api.faults.injected) == len(drawn)
        return drawn

    first = vtime.run(scenario())
    assert first == vtime.run(scenario())
    assert 15 <= len(first) <= 50
