"""A `SlotRuntime` in virtual time whose pods and agents can fail in every way that real ones do."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from tests.fakes.calls import FaultyLists, ResultT, distorted_call, faulty_call, faulty_watch
from tests.fakes.faults import Fault, Faults

from pageslots.control.ports import (
    AgentClient,
    AgentRefusedError,
    AgentUnreachableError,
    PodChanged,
    PodOrder,
    PodsSynced,
    PodView,
    SlotRuntime,
    UnavailableError,
)
from pageslots.simulate.world import SimulatedRuntime
from pageslots.wire import (
    AgentStatus,
    AttemptReport,
    AttemptSpec,
    DrainOrder,
    Phase,
    Refusal,
    RefusalCode,
    StopOrder,
)


class FaultyRuntime:
    """Wraps a `SlotRuntime`. Verbs: pod.get, .list, .create, .delete, .event, .sync; agent.status, …"""

    def __init__(self, runtime: SlotRuntime, faults: Faults) -> None:
        self.runtime = runtime
        self.faults = faults
        self._lists = FaultyLists()

    @property
    def absence_is_end(self) -> bool:
        return self.runtime.absence_is_end

    async def create(self, order: PodOrder) -> PodView:
        return await faulty_call(self.faults, "pod.create", order.name, lambda: self.runtime.create(order))

    async def get(self, namespace: str, name: str) -> PodView:
        return await faulty_call(self.faults, "pod.get", name, lambda: self.runtime.get(namespace, name))

    async def list(self) -> Sequence[PodView]:
        fault = self.faults.next("pod.list", "")
        pods = await distorted_call(fault, self.faults, "pod.list", "", self.runtime.list)
        return self._lists.distort("list", pods, fault)

    async def delete(self, namespace: str, name: str, *, uid: str, grace_ms: int) -> None:
        await faulty_call(
            self.faults,
            "pod.delete",
            name,
            lambda: self.runtime.delete(namespace, name, uid=uid, grace_ms=grace_ms),
        )

    def watch(self) -> AsyncGenerator[PodsSynced | PodChanged]:
        return faulty_watch(
            self.faults,
            "pod.",
            "",
            self.runtime.watch,
            lambda event, fault: PodsSynced(self._lists.distort("watch", event.pods, fault)),
            synced=PodsSynced,
        )

    def agent(self, pod: PodView) -> AgentClient:
        return FaultyAgent(self.runtime.agent(pod), pod, self.faults)


class FakeRuntime(FaultyRuntime):
    """A simulated runtime with faults; `world` is the simulation: its log, crash(), vanish(), stuck."""

    def __init__(self, world: SimulatedRuntime | None = None, faults: Faults | None = None) -> None:
        self.world = world or SimulatedRuntime()
        super().__init__(self.world, faults or Faults())


class FaultyAgent:
    """Wraps one pod's `AgentClient`. Verbs: agent.status, agent.put_attempt, …; the name is the pod's."""

    def __init__(self, agent: AgentClient, pod: PodView, faults: Faults) -> None:
        self._agent = agent
        self._pod = pod
        self._faults = faults

    async def status(self, *, after: int, wait_seconds: float) -> AgentStatus:
        fault = self._faults.next("agent.status", self._pod.name)
        if fault is Fault.LIE:
            return AgentStatus(rev=after + 1, pod_uid=self._pod.uid, phase=Phase.READY, ready_ms=1)
        return await self._call(
            fault, "status", lambda: self._agent.status(after=after, wait_seconds=wait_seconds)
        )

    async def put_attempt(self, spec: AttemptSpec) -> AttemptReport:
        return await self._next("put_attempt", lambda: self._agent.put_attempt(spec))

    async def acknowledge(self, attempt_id: str) -> None:
        await self._next("acknowledge", lambda: self._agent.acknowledge(attempt_id))

    async def stop(self, attempt_id: str, order: StopOrder) -> AttemptReport:
        return await self._next("stop", lambda: self._agent.stop(attempt_id, order))

    async def drain(self, order: DrainOrder) -> AgentStatus:
        return await self._next("drain", lambda: self._agent.drain(order))

    async def records(self, attempt_id: str, *, offset: int) -> bytes:
        return await self._next("records", lambda: self._agent.records(attempt_id, offset=offset))

    async def _next(self, verb: str, do: Callable[[], Awaitable[ResultT]]) -> ResultT:
        return await self._call(self._faults.next(f"agent.{verb}", self._pod.name), verb, do)

    async def _call(self, fault: Fault | None, verb: str, do: Callable[[], Awaitable[ResultT]]) -> ResultT:
        match fault:
            case Fault.REFUSED:
                raise AgentRefusedError(Refusal(RefusalCode.BUSY, "because a test says so"))
            case Fault.HANG:
                await asyncio.sleep(self._faults.hang_seconds)
                raise AgentUnreachableError(f"{self._pod.name}: no answer to {verb} in time")
        try:
            return await distorted_call(fault, self._faults, f"agent.{verb}", self._pod.name, do)
        except UnavailableError as error:
            raise AgentUnreachableError(str(error)) from None
