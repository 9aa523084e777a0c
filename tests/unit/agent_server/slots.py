"""A slot without a browser: fakes of what it drives, and builders of what it is told."""

import asyncio
import contextlib
from dataclasses import dataclass, field, replace

from tests.fakes.vtime import until

from pageslots.wire import (
    AgentConfig,
    AttemptReport,
    AttemptSpec,
    AttemptState,
    DrainOrder,
    Failure,
    Outcome,
    StopOrder,
    StopReason,
)
from pageslots_agent.browser_port import BrowserFailedError
from pageslots_agent.ports import Tab
from pageslots_agent.slot import Slot

POD = "pod-1"


def a_config(**changes) -> AgentConfig:
    config = AgentConfig(
        pod_name="pool-browser-0",
        pod_uid=POD,
        token="secret",
        country="SG",
        locale="en-SG",
        time_zone="Asia/Singapore",
    )
    return replace(config, **changes)


def a_spec(name: str = "r1-1", *, pod_uid: str = POD, epoch: int = 7, **changes) -> AttemptSpec:
    spec = AttemptSpec(
        id=name,
        number=1,
        request="shop/crawl",
        request_uid="r1",
        pod_uid=pod_uid,
        epoch=epoch,
        country="SG",
        site="shop.example",
        start_urls=("https://shop.example/",),
    )
    return replace(spec, **changes)


def a_drain(*, pod_uid: str = POD, epoch: int = 7) -> DrainOrder:
    return DrainOrder(epoch, pod_uid)


def a_stop(reason: StopReason = StopReason.STOPPED, *, pod_uid: str = POD, epoch: int = 7) -> StopOrder:
    return StopOrder(reason, epoch, pod_uid)


@dataclass
class FakeBrowser:
    """Prepares at once unless told otherwise; counts what is asked of it."""

    gives_up: bool = False
    hangs: bool = False
    opens: bool = True
    is_alive: bool = True
    is_open: bool = True
    version: str = "156"
    pages: int = 0
    bytes_total: int = 0
    warm_site: str | None = None
    recycle_due: bool = False
    failures: int = 0
    last_failure: Failure | None = None
    calls: list[str] = field(default_factory=list)

    async def prepare(self) -> bool:
        self.calls.append("prepare")
        if self.hangs:
            await asyncio.Event().wait()
        self.is_alive = not self.gives_up
        return not self.gives_up

    async def tab(self, site: str, *, fresh: bool) -> Tab:
        self.calls.append(f"tab {site}{' fresh' if fresh else ''}")
        await asyncio.sleep(0)
        if not self.opens:
            raise BrowserFailedError("no browser here")
        self.warm_site = site
        return None  # type: ignore[return-value]  # no fake attempt looks at it

    def usable_after(self, outcome: Outcome, message: str) -> bool:
        self.calls.append(f"after {outcome}")
        return outcome is not Outcome.BROWSER_CRASH

    async def tidy(self) -> None:
        self.calls.append("tidy")

    async def park(self) -> None:
        self.calls.append("park")

    async def alive(self) -> bool:
        return self.is_alive

    async def screenshot(self) -> bytes:
        return b"PNG"

    async def close(self) -> None:
        self.calls.append("close")


class FakeAttempt:
    """Runs until `end`; a stop ends it unless it is `stubborn`."""

    def __init__(self, spec, tab, on_change, *, stubborn=False):
        self.spec = spec
        self.on_change = on_change
        self.stops: list[tuple[StopReason, int]] = []
        self.stubborn = stubborn
        self.report = AttemptReport(spec.id, spec.request_uid, AttemptState.RUNNING)
        self._over = asyncio.Event()
        self.error: Exception | None = None
        self.is_running = False

    async def run(self) -> AttemptReport:
        self.is_running = True
        try:
            await self._over.wait()
        finally:
            self.is_running = False
        if self.error is not None:
            raise self.error
        return self.report

    def request_stop(self, reason: StopReason, *, page_grace_ms: int) -> None:
        self.stops.append((reason, page_grace_ms))
        if not self.stubborn:
            self.end(Outcome.STOPPED)

    def records(self, offset: int) -> bytes:
        return b"".join(b"%d\n" % n for n in range(offset, 3))

    def end(self, outcome: Outcome = Outcome.OK, message: str = "") -> None:
        self.report = replace(self.report, state=AttemptState.ENDED, outcome=outcome, message=message)
        self._over.set()

    def progress(self) -> None:
        self.report = replace(self.report, progress=self.report.progress + 1)
        self.on_change()


@dataclass
class FakeCrawl:
    """Stands for the crawl module: keeps the attempts that were started."""

    attempts: list[FakeAttempt] = field(default_factory=list)
    stubborn: bool = False
    raises: Exception | None = None

    async def load(self):
        return self.start

    def start(self, spec, tab, on_change):
        if self.raises is not None:
            raise self.raises
        attempt = FakeAttempt(spec, tab, on_change, stubborn=self.stubborn)
        self.attempts.append(attempt)
        return attempt

    @property
    def last(self) -> FakeAttempt:
        return self.attempts[-1]


@dataclass
class World:
    """One slot at work."""

    slot: Slot
    browser: FakeBrowser
    crawl: FakeCrawl


@contextlib.asynccontextmanager
async def a_slot(*, browser: FakeBrowser | None = None, crawl: FakeCrawl | None = None, **config):
    """A slot whose worker runs; prepared already, if its browser prepares."""
    browser, crawl = browser or FakeBrowser(), crawl or FakeCrawl()
    slot = Slot(a_config(**config), browser, load_crawl=crawl.load, wall_clock=lambda: 1_700_000_000_000)
    worker = asyncio.create_task(slot.run())
    await settle()
    try:
        yield World(slot, browser, crawl)
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


async def settle(turns: int = 30) -> None:
    """Let everything happen that needs no time to pass."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def started(world: World) -> FakeAttempt:
    """The attempt, once it runs."""
    await until(lambda: bool(world.crawl.attempts) and world.crawl.last.is_running)
    return world.crawl.last
