"""A process that can die or stand still at any call: what it was doing is neither finished nor undone.

A call that is under way when its process dies goes on by itself, as a request on a wire does.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from pageslots.control.ports import (
    AgentClient,
    Changed,
    JsonObject,
    Kind,
    ObjectApi,
    PodChanged,
    PodOrder,
    PodsSynced,
    PodView,
    SlotRuntime,
    Synced,
)
from pageslots.wire import AgentStatus, AttemptReport, AttemptSpec, DrainOrder, StopOrder

ResultT = TypeVar("ResultT")


class Life:
    """One process. `on_death` is called once, when `dies_after` calls are over or `die` is called."""

    def __init__(self, on_death: Callable[[], None], flying: set[asyncio.Task[Any]]) -> None:
        self._on_death = on_death
        self._flying = flying
        self._left: int | None = None
        self._running = asyncio.Event()
        self._running.set()
        self.dead = False
        self.died_in = ""
        self.calls = 0

    def dies_after(self, calls: int) -> None:
        """Die before or after one of the next calls: each call counts twice."""
        self._left = calls

    def die(self, where: str = "") -> None:
        """End at once, without any clean-up."""
        if not self.dead:
            self.dead, self.died_in = True, where
            self._on_death()

    def pause(self) -> None:
        """Calls that begin from now on wait."""
        self._running.clear()

    def resume(self) -> None:
        """They go on."""
        self._running.set()

    async def call(self, name: str, do: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """`do()` of this process."""
        self.calls += 1
        await self._step(f"before {name}")
        await self._running.wait()
        task = asyncio.get_running_loop().create_task(do(), name=name)
        self._flying.add(task)
        task.add_done_callback(self._landed)
        result = await asyncio.shield(task)
        await self._step(f"after {name}")
        return result

    async def follow(self, events: AsyncGenerator[ResultT]) -> AsyncGenerator[ResultT]:
        """What a process that stands still hears only later."""
        async with aclosing(events):
            async for event in events:
                await self._running.wait()
                yield event

    def _landed(self, task: asyncio.Task[Any]) -> None:
        self._flying.discard(task)
        if not task.cancelled():
            task.exception()  # seen: its process may be dead

    async def _step(self, where: str) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self.die(where)
        if self.dead:
            await asyncio.Event().wait()  # until the task is cancelled, which its death has caused


class MortalApi:
    """An `ObjectApi` as one process sees it."""

    def __init__(self, api: ObjectApi, life: Life) -> None:
        self._api = api
        self._life = life

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        return await self._life.call(f"get {kind}", lambda: _co(self._api.get(kind, namespace, name)))

    async def list(self, kind: Kind, namespace: str | None = None) -> Sequence[JsonObject]:
        return await self._life.call(f"list {kind}", lambda: _co(self._api.list(kind, namespace)))

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        return await self._life.call(f"create {kind}", lambda: _co(self._api.create(kind, obj)))

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: JsonObject,
        *,
        version: str | None = None,
        status: bool = False,
    ) -> JsonObject:
        return await self._life.call(
            f"patch {kind}",
            lambda: _co(self._api.patch(kind, namespace, name, patch, version=version, status=status)),
        )

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str, version: str | None = None
    ) -> None:
        await self._life.call(
            f"delete {kind}", lambda: _co(self._api.delete(kind, namespace, name, uid=uid, version=version))
        )

    def watch(self, kind: Kind, namespace: str | None = None) -> AsyncGenerator[Synced | Changed]:
        return self._life.follow(self._api.watch(kind, namespace))


class MortalRuntime:
    """A `SlotRuntime` as one process sees it."""

    def __init__(self, runtime: SlotRuntime, life: Life) -> None:
        self._runtime = runtime
        self._life = life

    @property
    def absence_is_end(self) -> bool:
        return self._runtime.absence_is_end

    async def create(self, order: PodOrder) -> PodView:
        return await self._life.call("create pod", lambda: _co(self._runtime.create(order)))

    async def get(self, namespace: str, name: str) -> PodView:
        return await self._life.call("get pod", lambda: _co(self._runtime.get(namespace, name)))

    async def list(self) -> Sequence[PodView]:
        return await self._life.call("list pods", lambda: _co(self._runtime.list()))

    async def delete(self, namespace: str, name: str, *, uid: str, grace_ms: int) -> None:
        await self._life.call(
            "delete pod", lambda: _co(self._runtime.delete(namespace, name, uid=uid, grace_ms=grace_ms))
        )

    def watch(self) -> AsyncGenerator[PodsSynced | PodChanged]:
        return self._life.follow(self._runtime.watch())

    def agent(self, pod: PodView) -> AgentClient:
        return _MortalAgent(self._runtime.agent(pod), self._life)


class _MortalAgent:
    def __init__(self, agent: AgentClient, life: Life) -> None:
        self._agent = agent
        self._life = life

    async def status(self, *, after: int, wait_seconds: float) -> AgentStatus:
        """Not counted as a call: it waits most of the time, and changes nothing."""
        return await self._agent.status(after=after, wait_seconds=wait_seconds)

    async def put_attempt(self, spec: AttemptSpec) -> AttemptReport:
        return await self._life.call("put attempt", lambda: _co(self._agent.put_attempt(spec)))

    async def acknowledge(self, attempt_id: str) -> None:
        await self._life.call("acknowledge", lambda: _co(self._agent.acknowledge(attempt_id)))

    async def stop(self, attempt_id: str, order: StopOrder) -> AttemptReport:
        return await self._life.call("stop attempt", lambda: _co(self._agent.stop(attempt_id, order)))

    async def drain(self, order: DrainOrder) -> AgentStatus:
        return await self._life.call("drain", lambda: _co(self._agent.drain(order)))

    async def records(self, attempt_id: str, *, offset: int) -> bytes:
        return await self._life.call("records", lambda: _co(self._agent.records(attempt_id, offset=offset)))


async def _co(awaitable: Awaitable[ResultT]) -> ResultT:
    return await awaitable
