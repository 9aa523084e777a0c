"""A pool in virtual time: the real controller and planner, simulated pods, and the figures that come out.

Answers "how many slots and permits do I need": the manifests are the same as anywhere, only time jumps.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pageslots.api import CrawlRequest, PageSlotPool
from pageslots.control.context import AlwaysLeading, Settings
from pageslots.control.controller import Controller
from pageslots.control.names import API_VERSION
from pageslots.control.ports import Clock, JsonObject, Kind, Level, ObjectApi, PodOrder
from pageslots.control.site import site_of
from pageslots.simulate.courses import AttemptCourse, PodCourse
from pageslots.simulate.demand import Arrival
from pageslots.simulate.virtual import VirtualClock, run
from pageslots.simulate.world import Happening, SimulatedRuntime, What
from pageslots.wire import AttemptSpec, Outcome

DRAIN_SECONDS = 4 * 3_600
"""How long after the last arrival a simulation waits for the queue to empty."""


@dataclass(frozen=True, slots=True)
class CountryFigures:
    """One country. Waits are seconds from arrival to first start; what never started waited to the end."""

    country: str
    requests: int
    finished: int
    failed: int
    wait_p50: float
    wait_p95: float
    wait_max: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What a pool did with a demand. `utilisation`: busy time of browsers ÷ the time that they existed."""

    max_concurrent: int
    max_page_slots: int
    simulated_seconds: float
    countries: tuple[CountryFigures, ...]
    wait_p50: float
    wait_p95: float
    wait_max: float
    browsers_max: int
    browsers_mean: float
    browser_starts: int
    slots_max: int
    utilisation: float
    unfinished: int


class _Silent:
    """Nobody listens."""

    def event(self, level: Level, name: str, /, **fields: object) -> None:
        """Say nothing."""


@dataclass
class _Demand:
    """The script of the simulated agents: each request's attempt goes as its arrival says."""

    pods: PodCourse
    arrivals: dict[str, Arrival] = field(default_factory=dict)

    def pod(self, order: PodOrder) -> PodCourse:
        """All pods start alike."""
        del order
        return self.pods

    def attempt(self, order: PodOrder, spec: AttemptSpec) -> AttemptCourse:
        """As the arrival of that request says."""
        del order
        arrival = self.arrivals[spec.request_uid]
        if arrival.outcome is Outcome.OK:
            return AttemptCourse(duration_ms=arrival.duration_ms)
        return AttemptCourse.failing(arrival.outcome, duration_ms=arrival.duration_ms)


def simulate(
    pool: PageSlotPool,
    arrivals: Sequence[Arrival],
    *,
    new_store: Callable[[Clock], ObjectApi],
    pods: PodCourse | None = None,
) -> Figures:
    """Run the demand through the pool. `new_store` makes an empty store that keeps time by the clock given."""
    return run(_Simulation(pool, arrivals, new_store, pods or PodCourse()).go())


class _Simulation:
    def __init__(
        self,
        pool: PageSlotPool,
        arrivals: Sequence[Arrival],
        new_store: Callable[[Clock], ObjectApi],
        pods: PodCourse,
    ) -> None:
        self._pool = pool
        self._arrivals = arrivals
        self._clock = VirtualClock()
        self._store = new_store(self._clock)
        self._script = _Demand(pods)
        self._runtime = SimulatedRuntime(self._script, clock=self._clock)
        self._slots_max = 0

    async def go(self) -> Figures:
        settings = Settings(
            output_uri=lambda request, _pool, _parent: f"file:///simulated/{request.name}",
            site_of=site_of,
            row_count=lambda _uri, _most: None,
            proxy_credentials=lambda _namespace, _name: ("", ""),
            delete_finished=False,
            writes_statuses=False,
        )
        controller = Controller(
            self._store, self._runtime, self._clock, _Silent(), AlwaysLeading(1), settings
        )
        await self._store.create(Kind.POOL, _plain(self._pool))
        begun = self._clock.now_ms()
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(controller.run())
            await controller.wait_ready()
            await self._feed(begun)
            await self._drain(controller)
            work.cancel()
        requests = [CrawlRequest.model_validate(obj) for obj in await self._store.list(Kind.REQUEST)]
        figures = self._figures(requests, begun, self._clock.now_ms())
        self._runtime.close()
        return figures

    async def _feed(self, begun: int) -> None:
        for number, arrival in enumerate(self._arrivals):
            wait_ms = begun + arrival.at_ms - self._clock.now_ms()
            if wait_ms > 0:
                await asyncio.sleep(wait_ms / 1_000)
            created = await self._store.create(Kind.REQUEST, self._request(number, arrival))
            self._script.arrivals[created["metadata"]["uid"]] = arrival

    def _request(self, number: int, arrival: Arrival) -> JsonObject:
        return {
            "apiVersion": API_VERSION,
            "kind": Kind.REQUEST.value,
            "metadata": {"namespace": self._pool.metadata.namespace, "name": f"request-{number}"},
            "spec": {
                "poolName": self._pool.name,
                "country": arrival.country,
                "startUrls": [f"https://{arrival.site}/"],
                "site": arrival.site,
                "deadlineSeconds": 86_400,
            },
        }

    async def _drain(self, controller: Controller) -> None:
        """Until all is finished, looked at once a virtual second; bounded."""
        for _ in range(DRAIN_SECONDS):
            await asyncio.sleep(1)
            [index] = [loop.index for loop in controller.pools.values()]
            self._slots_max = max(self._slots_max, len(index.slots))
            if not index.queues.unfinished:
                return

    def _figures(self, requests: Sequence[CrawlRequest], begun: int, ended: int) -> Figures:
        starts = _first_starts(self._runtime.log)
        waits: dict[str, list[float]] = defaultdict(list)
        states: dict[str, list[str]] = defaultdict(list)
        for request in requests:
            arrival = self._script.arrivals[request.metadata.uid]
            start = starts.get(request.metadata.uid, ended)
            waits[arrival.country].append(max(0, start - begun - arrival.at_ms) / 1_000)
            states[arrival.country].append(request.status.state.value)
        everything = sorted(wait for of in waits.values() for wait in of)
        existed, busy, most = _lives(self._runtime.log, ended)
        return Figures(
            max_concurrent=self._pool.spec.max_concurrent,
            max_page_slots=self._pool.spec.max_page_slots,
            simulated_seconds=(ended - begun) / 1_000,
            countries=tuple(_country(code, waits[code], states[code]) for code in sorted(waits)),
            wait_p50=_quantile(everything, 50),
            wait_p95=_quantile(everything, 95),
            wait_max=everything[-1] if everything else 0.0,
            browsers_max=most,
            browsers_mean=existed / max(1, ended - begun),
            browser_starts=sum(1 for line in self._runtime.log if line.what is What.CREATED),
            slots_max=self._slots_max,
            utilisation=busy / existed if existed else 0.0,
            unfinished=sum(state in ("Queued", "Running") for of in states.values() for state in of),
        )


def _plain(pool: PageSlotPool) -> JsonObject:
    document = pool.to_dict()
    document.pop("status", None)
    metadata = document["metadata"]
    document["metadata"] = {"namespace": metadata.get("namespace", "default"), "name": metadata["name"]}
    return document


def _country(code: str, waits: list[float], states: list[str]) -> CountryFigures:
    waits = sorted(waits)
    return CountryFigures(
        country=code,
        requests=len(waits),
        finished=states.count("Succeeded"),
        failed=states.count("Failed") + states.count("Stopped"),
        wait_p50=_quantile(waits, 50),
        wait_p95=_quantile(waits, 95),
        wait_max=waits[-1],
    )


def _quantile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` % of them do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0


def _first_starts(log: Sequence[Happening]) -> Mapping[str, int]:
    starts: dict[str, int] = {}
    for line in log:
        if line.what is What.ATTEMPT_STARTED:
            starts.setdefault(line.request_uid, line.at_ms)
    return starts


def _lives(log: Sequence[Happening], ended: int) -> tuple[int, int, int]:
    """Milliseconds that browsers existed, and were busy, in sum; and the most that existed at once."""
    alive: dict[str, int] = {}
    running: dict[str, int] = {}
    existed = busy = most = 0
    for line in log:
        match line.what:
            case What.CREATED:
                alive[line.pod_uid] = line.at_ms
                most = max(most, len(alive))
            case What.GONE:
                existed += line.at_ms - alive.pop(line.pod_uid, line.at_ms)
            case What.ATTEMPT_STARTED:
                running[line.attempt] = line.at_ms
            case What.ATTEMPT_ENDED:
                busy += line.at_ms - running.pop(line.attempt, line.at_ms)
            case _:
                continue
    existed += sum(ended - begun for begun in alive.values())
    busy += sum(ended - begun for begun in running.values())
    return existed, busy, most
