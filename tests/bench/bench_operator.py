"""The operator without a cluster: control over a store in memory and simulated agents, in real time.

What is offered is an open loop: requests are created on a schedule, however far the operator has come. CPU is
that of the whole process, so it includes the store, the simulated agents and the creation of the requests; what
a cluster adds, TLS and HTTP to a real API server, is not in it. Calls that change something are counted where
an API server would see them.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.bench.counted import CountedApi, CountedRuntime
from tests.bench.report import Row, at_least, at_most, plain

from pageslots.control.context import AlwaysLeading, Settings
from pageslots.control.controller import Controller
from pageslots.control.ports import Changed, JsonObject, Kind, Level, Synced
from pageslots.control.site import site_of
from pageslots.local.clock import WallClock
from pageslots.local.store import LocalStore
from pageslots.simulate.courses import Always, AttemptCourse, PodCourse
from pageslots.simulate.world import SimulatedRuntime, What

OFFERED_PER_SECOND = 120
OFFERED_SECONDS = 20
SLOTS = 60
COUNTRIES = ("SG", "DE", "JP", "US", "BR")
LIVES = 16
WAIT_SECONDS = 120.0
_API = "pageslots.dev/v1alpha1"
_PODS = PodCourse(start_ms=100, prepare_ms=200, end_ms=50)
_ATTEMPTS = AttemptCourse(duration_ms=450, page_ms=50)
"""Long enough for nearly all slots to be busy at the rate offered: a slot goes from one request to the next."""


def main() -> list[Row]:
    """Run it."""
    return [*asyncio.run(_saturation()), *asyncio.run(_lives())]


@dataclass(frozen=True, slots=True)
class _World:
    store: LocalStore
    runtime: SimulatedRuntime
    controller: Controller
    calls: Counter[str]
    events: Counter[str]


class _Events:
    """Counts decisions by name."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def event(self, level: Level, name: str, /, **fields: object) -> None:
        """One more."""
        del level, fields
        self._counts[name] += 1


@asynccontextmanager
async def _world(pool: JsonObject) -> AsyncIterator[_World]:
    """A running controller over one pool."""
    calls: Counter[str] = Counter()
    events: Counter[str] = Counter()
    clock = WallClock()
    runtime = SimulatedRuntime(Always(every_pod=_PODS, every_attempt=_ATTEMPTS), clock=clock)
    settings = Settings(
        output_uri=lambda request, _pool, _parent: f"file:///out/{request.name}",
        site_of=site_of,
        row_count=lambda _uri, _limit: None,
        proxy_credentials=lambda _namespace, _name: ("", ""),
    )
    with LocalStore() as store:
        await store.create(Kind.POOL, pool)
        controller = Controller(
            CountedApi(store, calls),
            CountedRuntime(runtime, calls),
            clock,
            _Events(events),
            AlwaysLeading(1),
            settings,
        )
        work = asyncio.create_task(controller.run())
        try:
            yield _World(store, runtime, controller, calls, events)
            if work.done():
                work.result()
        finally:
            work.cancel()
            await asyncio.wait([work])
            runtime.close()


def _pool(**spec: Any) -> JsonObject:
    return {
        "apiVersion": _API,
        "kind": Kind.POOL.value,
        "metadata": {"namespace": "default", "name": "default"},
        "spec": spec,
    }


def _request(number: int) -> JsonObject:
    return {
        "apiVersion": _API,
        "kind": Kind.REQUEST.value,
        "metadata": {"namespace": "default", "name": f"r-{number}"},
        "spec": {
            "country": COUNTRIES[number % len(COUNTRIES)],
            "startUrls": [f"https://site-{number}.example/"],
        },
    }


async def _until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():  # noqa: ASYNC110 -- of several sources, some of which tell nobody
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise RuntimeError(f"not within {WAIT_SECONDS:.0f} s: {what}") from None


async def _saturation() -> list[Row]:
    each = SLOTS // len(COUNTRIES)
    countries = [{"code": code, "direct": True, "minReady": each} for code in COUNTRIES]
    pool = _pool(maxPageSlots=SLOTS, maxConcurrent=SLOTS, countries=countries)
    async with _world(pool) as world:
        ends = _Ends(world.store)
        watching = asyncio.create_task(ends.run())
        await _until(lambda: _ready(world) == SLOTS, f"{SLOTS} slots ready")
        world.calls.clear()
        created: dict[str, int] = {}
        cpu, began = time.process_time(), time.perf_counter()
        for number in range(OFFERED_PER_SECOND * OFFERED_SECONDS):
            await asyncio.sleep(max(0.0, began + number / OFFERED_PER_SECOND - time.perf_counter()))
            obj = await world.store.create(Kind.REQUEST, _request(number))
            created[obj["metadata"]["uid"]] = world.controller.context.clock.now_ms()
        offered = time.perf_counter() - began
        await _until(lambda: len(ends.states) == len(created), "all requests finished")
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        watching.cancel()
        waits = sorted(
            h.at_ms - created[h.request_uid] for h in world.runtime.log if h.what is What.ATTEMPT_STARTED
        )
        busy = (
            f"offered in {offered:.1f} s, done after {took:.1f} s; the process got {cpu / took:.2f} of a core"
        )
        return _saturation_rows(world, ends, busy, len(created), took, cpu, waits)


def _saturation_rows(
    world: _World, ends: "_Ends", busy: str, number: int, took: float, cpu: float, waits: list[int]
) -> list[Row]:
    calls = sum(world.calls.values())
    parts = ", ".join(f"{name} {n / number:.2f}" for name, n in world.calls.most_common())
    [loop] = world.controller.pools.values()
    states = ", ".join(f"{n} {state}" for state, n in Counter(ends.states.values()).items())
    return [
        at_least(
            f"requests finished per second, {OFFERED_PER_SECOND}/s offered",
            number / took,
            "/s",
            80,
            note=f"{states}; {busy}; {loop.figures.plans} plans, longest {loop.figures.longest_ms:.0f} ms",
        ),
        at_most("CPU per request, store and simulated agents included", 1000 * cpu / number, "ms", 7),
        at_most("mutating calls per request", calls / number, "", 3, note=parts),
        plain(
            "created → attempt on the agent, p50 (no API server between)",
            statistics.median(waits),
            "ms",
            note=f"p99 {waits[len(waits) * 99 // 100]} ms, longest {waits[-1]} ms",
        ),
    ]


class _Ends:
    """The states of finished requests, as a watcher sees them."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self.states: dict[str, str] = {}

    async def run(self) -> None:
        """Until cancelled."""
        async for event in self._store.watch(Kind.REQUEST):
            match event:
                case Synced(objects):
                    for obj in objects:
                        self._see(obj)
                case Changed(obj):
                    self._see(obj)

    def _see(self, obj: JsonObject) -> None:
        state = obj.get("status", {}).get("state", "")
        if state in ("Succeeded", "Failed", "Stopped"):
            self.states[obj["metadata"]["uid"]] = state


def _ready(world: _World) -> int:
    slots = world.controller.context.cache.all(Kind.SLOT)
    return sum(slot.get("status", {}).get("state") == "PageReady" for slot in slots)


async def _lives() -> list[Row]:
    """Browsers that start because of `minReady` and close when it is lowered: no request, only their lives."""
    countries = [{"code": code, "direct": True, "minReady": LIVES // 4} for code in COUNTRIES[:4]]
    spec = {"maxPageSlots": LIVES, "maxConcurrent": LIVES, "preparation": {"idleSeconds": 1}}
    async with _world(_pool(countries=countries, **spec)) as world:
        await _until(lambda: _ready(world) == LIVES, f"{LIVES} slots ready")
        await world.store.patch(
            Kind.POOL,
            "default",
            "default",
            {"spec": {"countries": [{"code": code, "direct": True} for code in COUNTRIES[:4]]}},
        )
        await _until(lambda: _gone(world) == LIVES, "all browsers closed")
        await _until(lambda: _permits_held(world) == 0, "all permits free")
        await asyncio.sleep(1.0)  # the last statuses follow within a tick of 250 ms
        lives = world.calls["create Pod"]
        moves = ("create PageSlot", "delete PageSlot", "patch PageSlotPool/status")
        counted = {name: n for name, n in world.calls.items() if name not in moves}
        beside = {name: n for name, n in world.calls.items() if name in moves}
    return [
        at_most(
            "mutating calls per browser life",
            sum(counted.values()) / lives,
            "",
            8,
            note=f"{_each(counted, lives)}; beside it {_each(beside, lives)}",
        )
    ]


def _each(calls: dict[str, int], number: int) -> str:
    return ", ".join(f"{name} {n / number:.2f}" for name, n in sorted(calls.items()))


def _gone(world: _World) -> int:
    return sum(happening.what is What.GONE for happening in world.runtime.log)


def _permits_held(world: _World) -> int:
    leases = world.controller.context.cache.all(Kind.LEASE)
    return sum(bool(lease.get("spec", {}).get("holderIdentity")) for lease in leases)
