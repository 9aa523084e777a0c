"""The whole of control: watches feed the pools' indexes, pools plan, deeds are done, statuses are written.

Nothing is planned before every kind and the pods have been listed completely (I9): what is not known is not
missing.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from pageslots.api import CrawlRequest, PageSlot, PageSlotPool
from pageslots.api.reasons import RequestState
from pageslots.control.admission import Admission
from pageslots.control.agents import AgentWatchers
from pageslots.control.cache import ObjectCache
from pageslots.control.context import Context, Leadership, Settings
from pageslots.control.names import Key, key_of, permit_of, uid_of
from pageslots.control.orders import parent_of
from pageslots.control.parallel import Parents, is_parent
from pageslots.control.pool import PoolLoop
from pageslots.control.ports import (
    ApiError,
    Changed,
    Clock,
    JsonObject,
    Kind,
    NotFoundError,
    ObjectApi,
    PodChanged,
    PodPhase,
    PodsSynced,
    PodView,
    Recorder,
    SlotRuntime,
    Synced,
)
from pageslots.control.retention import Retention
from pageslots.control.status import StatusWriter
from pageslots.control.translate import (
    agent_fact,
    gone_pool,
    permit_fact,
    pod_fact,
    pool_settings,
    request_fact,
    slot_fact,
)
from pageslots.core.model import Instant, PodUid, RequestUid, SlotUid
from pageslots.wire import AgentStatus, AttemptState

FIRST_ORDER = (Kind.POOL, Kind.SLOT, Kind.LEASE, Kind.REQUEST)
WATCH_PAUSE_MS = 500
HOUSEKEEPING_SECONDS = 1.0


class Controller:
    """Runs every pool of the objects that `api` shows. `run()` ends when it is cancelled."""

    def __init__(
        self,
        api: ObjectApi,
        runtime: SlotRuntime,
        clock: Clock,
        recorder: Recorder,
        leadership: Leadership,
        settings: Settings,
    ) -> None:
        self.context = Context(api, runtime, clock, recorder, leadership, ObjectCache(), self, settings)
        self.pools: dict[Key, PoolLoop] = {}
        self._limit = asyncio.Semaphore(settings.most_deeds)
        self._synced: set[Kind | type[PodView]] = set()
        self._ready = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._agents: AgentWatchers | None = None
        self._pods: dict[str, PodView] = {}
        self.parents = Parents(self.context)
        self.admission = Admission(self.context)
        self.retention = Retention(self.context)
        self.status = StatusWriter(self.context, self.pools)
        self.on_change: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._agents = AgentWatchers(self.context.runtime, tasks, self.agent_said)
            for kind in FIRST_ORDER:
                tasks.create_task(self._watch(kind), name=f"watch {kind}")
            tasks.create_task(self._watch_pods(), name="watch pods")
            await self._ready.wait()
            for key in self.pools:
                self._start(key)
            if self.context.settings.writes_statuses:
                tasks.create_task(self.status.run(), name="status")
            tasks.create_task(self.parents.run(), name="parents")
            await self._housekeeping()

    async def wait_ready(self) -> None:
        """Until every kind has been listed once."""
        await self._ready.wait()

    # --- watches

    async def _watch(self, kind: Kind) -> None:
        stream: AsyncGenerator[Synced | Changed]
        while True:
            try:
                async with aclosing(self.context.api.watch(kind)) as stream:
                    async for event in stream:
                        if isinstance(event, Synced):
                            await self._take_list(kind, event.objects)
                        elif event.deleted:
                            self.forget(kind, event.object)
                        else:
                            self.observe(kind, event.object)
            except ApiError as error:
                self.context.recorder.event("warning", "watch.lost", kind=kind.value, error=str(error))
            await asyncio.sleep(WATCH_PAUSE_MS / 1_000)

    async def _take_list(self, kind: Kind, objects: object) -> None:
        """Compare a complete list with what is known. What is missing from it is looked for live (P3, D15)."""
        assert isinstance(objects, list | tuple)
        for obj in objects:
            self.observe(kind, obj)
        listed = {uid_of(obj) for obj in objects}
        for known in self.context.cache.all(kind):
            if uid_of(known) not in listed:
                await self._look_for(kind, known)
        self._mark_synced(kind)

    async def _look_for(self, kind: Kind, known: JsonObject) -> None:
        key = key_of(known)
        try:
            current = await self.context.api.get(kind, key.namespace, key.name)
        except NotFoundError:
            self.forget(kind, known)
        else:
            if uid_of(current) != uid_of(known):
                self.forget(kind, known)
            self.observe(kind, current)

    async def _watch_pods(self) -> None:
        stream: AsyncGenerator[PodsSynced | PodChanged]
        while True:
            try:
                async with aclosing(self.context.runtime.watch()) as stream:
                    async for event in stream:
                        if isinstance(event, PodsSynced):
                            await self._take_pods(event)
                        elif event.gone:
                            self.pod_gone(event.pod)
                        else:
                            self.pod_seen(event.pod)
            except ApiError as error:
                self.context.recorder.event("warning", "watch.lost", kind="Pod", error=str(error))
            await asyncio.sleep(WATCH_PAUSE_MS / 1_000)

    async def _take_pods(self, event: PodsSynced) -> None:
        for pod in event.pods:
            self.pod_seen(pod)
        listed = {pod.uid for pod in event.pods}
        for known in [pod for uid, pod in self._pods.items() if uid not in listed]:
            try:
                current = await self.context.runtime.get(known.namespace, known.name)
            except NotFoundError:
                self.pod_gone(known)
            else:
                if current.uid != known.uid:
                    self.pod_gone(known)
                self.pod_seen(current)
        self._mark_synced(PodView)

    def _mark_synced(self, what: Kind | type[PodView]) -> None:
        self._synced.add(what)
        if len(self._synced) == len(FIRST_ORDER) + 1 and not self._ready.is_set():
            # Requests name slots and pods: now that all are known, look at every request once more.
            for kind in FIRST_ORDER:
                for obj in self.context.cache.all(kind):
                    self._route(kind, obj)
            for pod in list(self._pods.values()):
                self.pod_seen(pod)
            self._ready.set()

    # --- feed: facts come in here

    def observe(self, kind: Kind, obj: JsonObject) -> None:
        """An object as the API answered or told."""
        if self.context.cache.observe(kind, obj):
            self._route(kind, obj)

    def forget(self, kind: Kind, obj: JsonObject) -> None:
        """An object that is gone for certain."""
        if not self.context.cache.forget(kind, obj):
            return
        key, uid = key_of(obj), uid_of(obj)
        match kind:
            case Kind.POOL:
                self._drain_pool(key)
            case Kind.SLOT:
                self._loop(Key(key.namespace, obj["spec"]["poolName"])).index.drop_slot(SlotUid(uid))
            case Kind.LEASE:
                permit = permit_of(key.name)
                if permit is not None:
                    self._loop(Key(key.namespace, permit[0])).index.drop_permit(permit[1])
            case Kind.REQUEST:
                self._forget_request(key, obj)
        self._touch_all(key.namespace)

    def _route(self, kind: Kind, obj: JsonObject) -> None:
        key = key_of(obj)
        match kind:
            case Kind.POOL:
                self._take_pool(key, PageSlotPool.model_validate(obj))
            case Kind.SLOT:
                slot = PageSlot.model_validate(obj)
                fact = slot_fact(slot)
                if fact is not None:
                    self._touch(Key(key.namespace, slot.spec.pool_name)).index.put_slot(fact)
            case Kind.LEASE:
                permit, named = permit_fact(obj), permit_of(key.name)
                if permit is not None and named is not None:
                    self._touch(Key(key.namespace, named[0])).index.put_permit(permit)
            case Kind.REQUEST:
                self._take_request(key, obj)

    def _take_pool(self, key: Key, pool: PageSlotPool) -> None:
        loop = self._touch(key)
        loop.index.set_pool(pool_settings(pool))
        if not self._ready.is_set():  # what an earlier process wrote; later ones are our own words
            for backoff in self.status.backoffs_of(pool):
                loop.index.put_backoff(backoff)
        for obj in self.admission.waiting_for(key):
            self._take_request(key_of(obj), obj)

    def _drain_pool(self, key: Key) -> None:
        loop = self._touch(key)
        loop.index.set_pool(replace(loop.index.settings, deleted=True))
        for obj in list(self.context.cache.all(Kind.REQUEST)):
            if obj["metadata"].get("namespace", "default") == key.namespace:
                self._take_request(key_of(obj), obj)

    def _take_request(self, key: Key, obj: JsonObject) -> None:
        request = CrawlRequest.model_validate(obj)
        self.retention.observe(request)
        accepted = self.admission.accepts(request)
        if is_parent(request):
            if accepted or request.status.children is not None:
                self.parents.observe(request)
            return
        self.parents.child_changed(request)
        pool_key = Key(key.namespace, request.spec.pool_name)
        running = request.status.state is RequestState.RUNNING
        if not accepted and not running:  # a running one first goes back to the queue, by the plan
            known = self.pools.get(pool_key)
            if known is not None:
                known.index.drop_request(RequestUid(request.metadata.uid))
            return
        pool = self.context.pool(pool_key)
        loop = self._touch(pool_key)
        slot = self.context.cache.get(Kind.SLOT, Key(key.namespace, request.status.slot_name or ""))
        fact = request_fact(
            request,
            site=self.context.settings.site_of(request),
            slot=SlotUid("" if slot is None else uid_of(slot)),
            resumable=pool is not None
            and self.context.settings.output_uri(request, pool, parent_of(self.context, request)) is not None,
        )
        loop.index.put_request(fact)
        if request.status.state is RequestState.QUEUED:
            self.status.waits(pool_key, request)
        if request.status.is_finished and request.status.attempt is not None:
            self.context.reports.pop(request.status.attempt.id, None)

    def _forget_request(self, key: Key, obj: JsonObject) -> None:
        request = CrawlRequest.model_validate(obj)
        self.parents.forget(request)
        self.admission.forget(request)
        loop = self.pools.get(Key(key.namespace, request.spec.pool_name))
        if loop is not None:
            loop.index.drop_request(RequestUid(request.metadata.uid))

    def pod_seen(self, pod: PodView) -> None:
        """A pod as it is now."""
        self._pods[pod.uid] = pod
        self._touch(Key(pod.namespace, pod.pool)).index.put_pod(pod_fact(pod))
        if self._agents is not None:
            self._agents.pod_seen(pod)

    def pod_gone(self, pod: PodView) -> None:
        """Nothing of this pod is left: a live answer."""
        self._pods.pop(pod.uid, None)
        index = self._touch(Key(pod.namespace, pod.pool)).index
        ended = pod.phase is PodPhase.TERMINATED or self.context.runtime.absence_is_end
        index.drop_pod(pod.number, PodUid(pod.uid), terminated=ended)
        if self._agents is not None:
            self._agents.pod_gone(pod.uid)

    def agent_said(self, pod: PodView, status: AgentStatus) -> None:
        """An agent's answer."""
        if pod.uid not in self._pods:
            return
        index = self._touch(Key(pod.namespace, pod.pool)).index
        before = index.agents.get(PodUid(pod.uid))
        now = Instant(self.context.clock.now_ms())
        fact = agent_fact(status, before, now, site=status.warm_site)
        report = status.attempt
        if report is not None:
            last = self.context.reports.get(report.id)
            if last is not None and last.state is report.state and last.progress == report.progress:
                fact = replace(fact, progress=before.progress if before is not None else now)
            self.context.reports[report.id] = report
            if report.state is AttemptState.RUNNING:
                self.status.progressed(report)
        index.put_agent(fact)

    # --- pools

    def _loop(self, key: Key) -> PoolLoop:
        loop = self.pools.get(key)
        if loop is None:
            loop = self.pools[key] = PoolLoop(self.context, key, gone_pool(key.name), self._limit)
            if self._ready.is_set():
                self._start(key)
        return loop

    def _start(self, key: Key) -> None:
        """Begin to plan for a pool; once."""
        loop = self.pools[key]
        if self._tasks is not None and not loop.started:
            loop.started = True
            self._tasks.create_task(self._run_pool(loop, self._tasks), name=f"pool {key}")

    async def _run_pool(self, loop: PoolLoop, tasks: asyncio.TaskGroup) -> None:
        """Plan for a pool. One that no list has shown is gone only if the API says so when asked by name (P3)."""
        key = loop.key
        while self.context.pool(key) is None:
            try:
                self.observe(Kind.POOL, await self.context.api.get(Kind.POOL, key.namespace, key.name))
            except NotFoundError:
                break
            except ApiError as error:
                self.context.recorder.event("warning", "pool.unknown", pool=str(key), error=str(error))
                await asyncio.sleep(WATCH_PAUSE_MS / 1_000)
        await loop.run(tasks)

    def _touch(self, key: Key) -> PoolLoop:
        loop = self._loop(key)
        loop.mark_dirty()
        self.status.mark(key)
        self.on_change()
        return loop

    def _touch_all(self, namespace: str) -> None:
        for key in self.pools:
            if key.namespace == namespace:
                self._touch(key)

    async def _housekeeping(self) -> None:
        """What has no event: admission deadlines and TTLs; once a second."""
        while True:
            await self.admission.step()
            await self.retention.step()
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
