"""`SlotRuntime` on one machine: a pod is a process tree of that name, with a new UID per start.

"Not found" means what it means in a cluster: no process of it is left (`processes` says how that is known).
The memory of each tree is watched; the logs are bounded; a guardian process cleans up if this one is killed.
"""

import asyncio
import errno
import json
import sys
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import aiohttp

from pageslots.control.agent_http import HttpAgentClient, agent_session
from pageslots.control.feed import Feed
from pageslots.control.ports import (
    AgentClient,
    AlreadyExistsError,
    Clock,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PodChanged,
    PodOrder,
    PodPhase,
    PodsSynced,
    PodView,
    UnavailableError,
)
from pageslots.local.clock import WallClock
from pageslots.local.guarding import Guard
from pageslots.local.logfile import LogFile
from pageslots.local.processes import Process, Table, adopt_orphans, adopted, end, kill_all, reap
from pageslots.local.scratch import RunFolder
from pageslots.local.slotprocess import SlotProcess

WATCH_SECONDS = 2.0
"""How often memory, logs and dead orphans are looked at."""
LAST_KILL_SECONDS = 2.0
"""What a run that ends in disorder gives each slot's processes to die; afterwards the guardian goes on."""
AGENT_COMMAND = (sys.executable, "-P", "-m", "pageslots_agent")
_NO_ROOM = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC})


class ProcessRuntime:
    """Pods of one run. Use it as an asynchronous context manager; leaving it leaves no process behind.

    `folder` gets the slots' logs (`logs/<namespace>/<pod>.log`). `recording`: a file to which each start and
    end of a process tree is appended as JSON Lines {atMs, event, pod, uid, pid}. `scratch_root`: see
    `scratch`. `agent_command`: what is started, before the arguments of the agent.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock | None = None,
        recording: Path | None = None,
        scratch_root: Path | None = None,
        agent_command: Sequence[str] = AGENT_COMMAND,
        guardian_grace_seconds: float = 10.0,
        watch_seconds: float = WATCH_SECONDS,
    ) -> None:
        self._logs = folder / "logs"
        self._clock = clock or WallClock()
        self._recording = recording
        self._scratch_root = scratch_root
        self._command = tuple(agent_command)
        self._guardian_grace_seconds = guardian_grace_seconds
        self._watch_seconds = watch_seconds
        self._pods: dict[tuple[str, str], SlotProcess] = {}
        self._lives: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._feed: Feed[PodChanged] = Feed()
        self._ending = False
        self._stack = AsyncExitStack()
        self._services: list[asyncio.Task[None]] = []
        self._tasks: asyncio.TaskGroup
        self._session: aiohttp.ClientSession
        self._folder: RunFolder
        self._guard: Guard

    @property
    def absence_is_end(self) -> bool:
        """True: a pod is its processes."""
        return True

    async def __aenter__(self) -> Self:
        """Raises ScratchError, OSError. Cleans up after crashed runs first, which may take seconds."""
        adopt_orphans()
        async with AsyncExitStack() as stack:
            self._folder = await asyncio.to_thread(RunFolder.create, self._scratch_root)
            stack.callback(self._folder.remove)
            self._guard = Guard(
                self._folder.run, self._folder.path, grace_seconds=self._guardian_grace_seconds
            )
            await self._guard.start()
            stack.push_async_callback(self._guard.leave)
            self._session = await stack.enter_async_context(agent_session())
            self._tasks = await stack.enter_async_context(asyncio.TaskGroup())
            self._services = [
                self._tasks.create_task(self._guard.keep(), name="guardian"),
                self._tasks.create_task(self._watch_processes(), name="watch-processes"),
            ]
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exception: object) -> bool | None:
        """End everything that is left, at once."""
        try:
            await self.shut_down(grace_ms=0)
        finally:
            for pod in self._pods.values():  # only after a failure or a cancellation while ending
                kill_all(pod.family, within_seconds=LAST_KILL_SECONDS)
            for stray in adopted(Table.read(), but=self._children()):
                end(stray)  # hid from us, and lost its parent: with no slot left it can be nobody's
            for service in self._services:
                service.cancel()
            self._feed.close()
            swallow = await self._stack.__aexit__(*exception)  # type: ignore[arg-type] # as they came
            reap(adopted(Table.read(), but=self._children()))
            adopt_orphans(adopt=False)
        return swallow

    async def shut_down(self, *, grace_ms: int) -> None:
        """No new pod any more; end all there are, and wait until nothing is left. Again: with less grace."""
        self._ending = True
        for pod in self._pods.values():
            pod.begin_end(grace_ms)
        while lives := [life for life in self._lives.values() if not life.done()]:
            await asyncio.wait(lives)

    async def create(self, order: PodOrder) -> PodView:
        """Start it. AlreadyExistsError; ForbiddenError when the machine has no room; UnavailableError."""
        key = (order.namespace, order.name)
        if key in self._pods:
            raise AlreadyExistsError(f"pod {order.namespace}/{order.name} exists already")
        if self._ending:
            raise ForbiddenError("the run is ending: nothing is started any more")
        try:
            pod = SlotProcess(
                order,
                str(uuid.uuid4()),
                run=self._folder.run,
                folder=self._folder.slot_folder(),
                log=LogFile(self._logs / order.namespace / f"{order.name}.log"),
                clock=self._clock,
                on_change=self._changed,
            )
            self._pods[key] = pod
            self._lives[key] = self._tasks.create_task(self._live(key, pod), name=f"pod {order.name}")
            await asyncio.shield(pod.started)
        except OSError as error:
            what = f"can't start {order.name}: {error}"
            raise (ForbiddenError if error.errno in _NO_ROOM else UnavailableError)(what) from None
        return pod.view

    async def get(self, namespace: str, name: str) -> PodView:
        """The pod as it is now; NotFoundError when no process of it is left."""
        return self._find(namespace, name).view

    async def list(self) -> Sequence[PodView]:
        """All pods of this run."""
        return tuple(pod.view for pod in self._pods.values())

    async def delete(self, namespace: str, name: str, *, uid: str, grace_ms: int) -> None:
        """Begin its end: SIGTERM, after the grace SIGKILL. NotFoundError; ConflictError for another UID."""
        pod = self._find(namespace, name)
        if pod.view.uid != uid:
            raise ConflictError(f"pod {namespace}/{name} has UID {pod.view.uid}, not {uid}")
        pod.begin_end(grace_ms)

    def watch(self) -> AsyncGenerator[PodsSynced | PodChanged]:
        """`PodsSynced` first and after every gap, then every change."""
        return self._feed.watch(lambda: PodsSynced(tuple(pod.view for pod in self._pods.values())))

    def agent(self, pod: PodView) -> AgentClient:
        """The client of this pod's agent, bound to its UID."""
        known = self._pods.get((pod.namespace, pod.name))
        mine = known if known is not None and known.view.uid == pod.uid else None
        return HttpAgentClient(
            self._session,
            pod=f"{pod.namespace}/{pod.name}",
            pod_uid=pod.uid,
            token="" if mine is None else mine.order.config.token,
            address=lambda: None if mine is None else mine.address,
        )

    def agent_pid(self, pod: PodView) -> int | None:
        """Process id of the pod's agent; None when it has not been started, or the pod is gone."""
        known = self._pods.get((pod.namespace, pod.name))
        return known.pid if known is not None and known.view.uid == pod.uid else None

    @property
    def guardian_pid(self) -> int | None:
        """Process id of the run's guardian."""
        return self._guard.pid

    @property
    def run_folder(self) -> RunFolder:
        """Where the slots of this run write, and the run's id."""
        return self._folder

    def _find(self, namespace: str, name: str) -> SlotProcess:
        try:
            return self._pods[namespace, name]
        except KeyError:
            raise NotFoundError(f"pod {namespace}/{name} not found") from None

    def _changed(self, view: PodView) -> None:
        self._feed.publish(PodChanged(view))

    async def _live(self, key: tuple[str, str], pod: SlotProcess) -> None:
        pod.started.add_done_callback(lambda _: self._record("start", pod))
        try:
            await pod.live(self._command)
        finally:
            del self._lives[key]
            if not pod.family.members:
                self._record("end", pod)
                del self._pods[key]
                self._feed.publish(PodChanged(pod.view, gone=True))

    def _record(self, event: str, pod: SlotProcess) -> None:
        if self._recording is None or pod.pid is None:
            return
        line = {
            "atMs": self._clock.now_ms(),
            "event": event,
            "pod": f"{pod.view.namespace}/{pod.view.name}",
            "uid": pod.view.uid,
            "pid": pod.pid,
        }
        with self._recording.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    async def _watch_processes(self) -> None:
        """Memory, logs, dead orphans; until cancelled."""
        dead: set[Process] = set()
        while True:
            await asyncio.sleep(self._watch_seconds)
            table = Table.read()
            for pod in tuple(self._pods.values()):
                pod.log.bound()
                await self._watch_memory(pod, table)
            # A child of somebody else in this program is reaped by its owner long before a second look.
            now_dead = {orphan for orphan in adopted(table, but=self._children()) if orphan.zombie}
            reap(now_dead & dead)
            dead = now_dead

    async def _watch_memory(self, pod: SlotProcess, table: Table) -> None:
        """RSS is cheap and never too low: only what exceeds the limit by it is measured exactly."""
        limit = pod.order.memory_mib
        used = pod.rss_mib(table)
        if limit is None or used <= limit or pod.view.phase is PodPhase.TERMINATED:
            return
        used = await asyncio.to_thread(pod.pss_mib)
        if used > limit:
            pod.kill_for_memory(used)

    def _children(self) -> set[int]:
        """Children of this process that have an owner who waits for them."""
        pids = {pod.pid for pod in self._pods.values()} | {self._guard.pid}
        return {pid for pid in pids if pid is not None}
