"""A `SlotRuntime` without processes: pods whose lives follow a script, in virtual time.

What it promises is what a kubelet promises: never two pods of one name, a pod that is deleted ends within
its grace, one that ends by itself stays listed until it is deleted. Everything that happens is logged.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from pageslots.control.feed import Feed
from pageslots.control.ports import (
    AgentClient,
    AgentUnreachableError,
    AlreadyExistsError,
    Clock,
    ConflictError,
    NotFoundError,
    PodChanged,
    PodOrder,
    PodPhase,
    PodsSynced,
    PodView,
)
from pageslots.simulate.agent import SimulatedAgent
from pageslots.simulate.courses import Always, PodCourse, Script
from pageslots.simulate.virtual import VirtualClock
from pageslots.wire import AgentStatus, AttemptReport, AttemptSpec, DrainOrder, StopOrder


class What(StrEnum):
    """What can happen in a simulated world."""

    CREATED = "Created"
    SCHEDULED = "Scheduled"
    STARTED = "Started"  # the agent listens
    DELETING = "Deleting"  # SIGTERM
    TERMINATED = "Terminated"
    GONE = "Gone"
    ATTEMPT_STARTED = "AttemptStarted"
    ATTEMPT_ENDED = "AttemptEnded"


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the log. `attempt` and `request_uid` are empty for what is about the pod alone."""

    at_ms: int
    what: What
    pod: str  # namespace/name
    pod_uid: str
    attempt: str = ""
    request_uid: str = ""
    site: str = ""
    country: str = ""


@dataclass(slots=True)
class _Pod:
    """A pod that exists: `agent` from its start until it has ended."""

    order: PodOrder
    course: PodCourse
    view: PodView
    agent: SimulatedAgent | None = None
    timer: asyncio.TimerHandle | None = None
    gone_ms: int | None = None  # when its deletion will be done


class SimulatedRuntime:
    """Pods and agents of a simulated cluster. Use it inside a running event loop.

    `stuck`: names (namespace/name) whose deletion never ends, as on a node that has gone.
    """

    def __init__(self, script: Script | None = None, *, clock: Clock | None = None) -> None:
        self.script: Script = script or Always()
        self.log: list[Happening] = []
        self.stuck: set[str] = set()
        self._clock = clock or VirtualClock()
        self._pods: dict[str, _Pod] = {}
        self._feed: Feed[PodChanged] = Feed()
        self._started = 0

    @property
    def absence_is_end(self) -> bool:
        """False, as in a cluster."""
        return False

    async def create(self, order: PodOrder) -> PodView:
        """Begin a pod's life; AlreadyExistsError while anything of that name is left."""
        name = f"{order.namespace}/{order.name}"
        if name in self._pods:
            raise AlreadyExistsError(f"pod {name} exists already")
        self._started += 1
        uid = str(UUID(int=0x9A6E_0000_0000_7000_8000_0000_0000_0000 | self._started))
        order = replace(order, config=replace(order.config, pod_uid=uid))
        view = PodView(
            namespace=order.namespace,
            name=order.name,
            uid=uid,
            pool=order.pool,
            pool_uid=order.pool_uid,
            number=order.number,
            owner_uid=order.slot_uid,
            owner_name=order.slot_name,
            phase=PodPhase.PENDING,
            created=self._clock.now_ms(),
            revision=order.revision,
        )
        pod = self._pods[name] = _Pod(order, self.script.pod(order), view)
        self._tell(pod, What.CREATED)
        if pod.course.schedule_ms is None:
            self._change(pod, message=pod.course.message or "no node has room for it")
        elif pod.course.schedule_ms == 0:
            self._schedule(pod)
        else:
            self._change(pod)
            self._after(pod, pod.course.schedule_ms, self._schedule)
        return pod.view

    async def get(self, namespace: str, name: str) -> PodView:
        """The pod as it is now; NotFoundError."""
        return self._find(namespace, name).view

    async def list(self) -> Sequence[PodView]:
        """All pods as they are now, oldest first."""
        return tuple(pod.view for pod in self._pods.values())

    async def delete(self, namespace: str, name: str, *, uid: str, grace_ms: int) -> None:
        """Begin its end. NotFoundError; ConflictError for another UID. Again, with less grace: sooner."""
        pod = self._find(namespace, name)
        if pod.view.uid != uid:
            raise ConflictError(f"pod {namespace}/{name} has UID {pod.view.uid}, not {uid}")
        now_ms = self._clock.now_ms()
        needed_ms = 0
        if pod.view.deleting is None:
            self._tell(pod, What.DELETING)
            self._change(pod, deleting=now_ms)
            needed_ms = pod.agent.shut_down() if pod.agent is not None and pod.agent.alive else 0
        gone_ms = now_ms + min(needed_ms, grace_ms)
        if pod.gone_ms is None or now_ms + grace_ms < pod.gone_ms:
            pod.gone_ms = gone_ms if pod.gone_ms is None else now_ms + grace_ms
            self._after(pod, pod.gone_ms - now_ms, self._finish)

    def watch(self) -> AsyncGenerator[PodsSynced | PodChanged]:
        """`PodsSynced` first and after every gap, then every change."""
        return self._feed.watch(lambda: PodsSynced(tuple(pod.view for pod in self._pods.values())))

    def agent(self, pod: PodView) -> AgentClient:
        """The client of this pod's agent, bound to its UID."""
        return SimulatedClient(self, pod)

    def live_agent(self, namespace: str, name: str, uid: str) -> SimulatedAgent:
        """The agent that listens in exactly this pod; AgentUnreachableError."""
        pod = self._pods.get(f"{namespace}/{name}")
        if pod is None or pod.view.uid != uid or pod.agent is None or not pod.agent.alive:
            raise AgentUnreachableError(f"no agent listens in pod {namespace}/{name} ({uid})")
        return pod.agent

    def crash(self, namespace: str, name: str, *, message: str = "", out_of_memory: bool = False) -> None:
        """The pod's containers end by themselves; it stays listed as terminated."""
        pod = self._find(namespace, name)
        self._terminate(pod, message or "the agent ended", out_of_memory=out_of_memory)
        if pod.view.deleting is not None:
            self._finish(pod)

    def vanish(self, namespace: str, name: str) -> None:
        """The pod is gone without a word of its containers: its node was removed."""
        pod = self._find(namespace, name)
        if pod.agent is not None:
            pod.agent.end()
        self._remove(pod)

    def alter(self, namespace: str, name: str, **changes: object) -> PodView:
        """Change what is said of a pod: another owner, another pool's UID, another revision."""
        pod = self._find(namespace, name)
        self._change(pod, **changes)
        return pod.view

    def interrupt_watches(self) -> None:
        """Every watcher loses what it has not read, and gets a complete list."""
        self._feed.interrupt()

    def close(self) -> None:
        """End everything: no timer of this world fires any more."""
        for pod in self._pods.values():
            if pod.timer is not None:
                pod.timer.cancel()
            if pod.agent is not None:
                pod.agent.end()
        self._pods.clear()
        self._feed.close()

    def _find(self, namespace: str, name: str) -> _Pod:
        try:
            return self._pods[f"{namespace}/{name}"]
        except KeyError:
            raise NotFoundError(f"pod {namespace}/{name} not found") from None

    def _schedule(self, pod: _Pod) -> None:
        self._tell(pod, What.SCHEDULED)
        self._change(pod, phase=PodPhase.STARTING, scheduled=self._clock.now_ms())
        self._after(pod, pod.course.start_ms, self._start)

    def _start(self, pod: _Pod) -> None:
        def on_attempt(spec: AttemptSpec, report: AttemptReport | None) -> None:
            self._tell(pod, What.ATTEMPT_STARTED if report is None else What.ATTEMPT_ENDED, spec)

        def on_death(message: str, out_of_memory: bool) -> None:  # noqa: FBT001 -- a callback of the agent
            self._terminate(pod, message or "the agent ended", out_of_memory=out_of_memory)

        pod.agent = SimulatedAgent(
            pod.order, pod.course, self.script, self._clock, on_attempt=on_attempt, on_death=on_death
        )
        self._tell(pod, What.STARTED)
        self._change(pod, phase=PodPhase.RUNNING, reachable=True)

    def _terminate(self, pod: _Pod, message: str = "", *, out_of_memory: bool = False) -> None:
        if pod.view.phase is PodPhase.TERMINATED:
            return
        if pod.agent is not None:
            pod.agent.end()
        if pod.timer is not None and pod.gone_ms is None:
            pod.timer.cancel()
        self._tell(pod, What.TERMINATED)
        self._change(
            pod, phase=PodPhase.TERMINATED, reachable=False, message=message, out_of_memory=out_of_memory
        )

    def _finish(self, pod: _Pod) -> None:
        """The end of a deletion: containers reported terminated, then nothing left."""
        if f"{pod.view.namespace}/{pod.view.name}" in self.stuck:
            return
        self._terminate(pod)
        self._remove(pod)

    def _remove(self, pod: _Pod) -> None:
        if pod.timer is not None:
            pod.timer.cancel()
        del self._pods[f"{pod.view.namespace}/{pod.view.name}"]
        self._tell(pod, What.GONE)
        self._feed.publish(PodChanged(pod.view, gone=True))

    def _change(self, pod: _Pod, **changes: object) -> None:
        pod.view = replace(pod.view, **changes)  # type: ignore[arg-type] # fields of PodView, all named above
        self._feed.publish(PodChanged(pod.view))

    def _after(self, pod: _Pod, delay_ms: int, do: Callable[[_Pod], None]) -> None:
        if pod.timer is not None:
            pod.timer.cancel()
        pod.timer = asyncio.get_running_loop().call_later(delay_ms / 1_000, do, pod)

    def _tell(self, pod: _Pod, what: What, spec: AttemptSpec | None = None) -> None:
        name = f"{pod.view.namespace}/{pod.view.name}"
        happening = Happening(self._clock.now_ms(), what, name, pod.view.uid)
        if spec is not None:
            happening = replace(
                happening, attempt=spec.id, request_uid=spec.request_uid, site=spec.site, country=spec.country
            )
        self.log.append(happening)


class SimulatedClient:
    """`AgentClient` of one simulated pod: no network, the same answers."""

    def __init__(self, runtime: SimulatedRuntime, pod: PodView) -> None:
        self._runtime = runtime
        self._pod = pod

    @property
    def _agent(self) -> SimulatedAgent:
        return self._runtime.live_agent(self._pod.namespace, self._pod.name, self._pod.uid)

    async def status(self, *, after: int, wait_seconds: float) -> AgentStatus:
        """See `AgentClient`."""
        return await self._agent.wait_status(after, wait_seconds)

    async def put_attempt(self, spec: AttemptSpec) -> AttemptReport:
        """See `AgentClient`."""
        return self._agent.put_attempt(spec)

    async def acknowledge(self, attempt_id: str) -> None:
        """See `AgentClient`."""
        self._agent.acknowledge(attempt_id)

    async def stop(self, attempt_id: str, order: StopOrder) -> AttemptReport:
        """See `AgentClient`."""
        return self._agent.stop(attempt_id, order)

    async def drain(self, order: DrainOrder) -> AgentStatus:
        """See `AgentClient`."""
        return self._agent.drain(order)

    async def records(self, attempt_id: str, *, offset: int) -> bytes:
        """See `AgentClient`."""
        return self._agent.records(attempt_id, offset)
