"""Slots as local mode runs them, driven by hand: pods of `ProcessRuntime`, attempts over the agent's HTTP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pageslots import wire
from pageslots.control.ports import AgentClient, NotFoundError, PodOrder, PodView
from pageslots.local.browser import find_browser
from pageslots.local.runtime import ProcessRuntime

READY_SECONDS = 120.0
ATTEMPT_SECONDS = 300.0
END_SECONDS = 20.0
DEFAULT_BLOCKING = ("image", "font", "media")
_POLL_SECONDS = 0.005


async def chromium() -> str:
    """The browser that slots and peers of a run have in common."""
    return str((await find_browser()).path)


@dataclass(slots=True)
class BenchSlot:
    """A pod and its agent."""

    runtime: ProcessRuntime
    pod: PodView
    agent: AgentClient
    rev: int = -1
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    @property
    def pid(self) -> int:
        """Root of its process tree."""
        pid = self.runtime.agent_pid(self.pod)
        assert pid is not None
        return pid

    async def until_ready(self) -> None:
        """Wait until its page is ready; raises RuntimeError when it gave up."""
        async with asyncio.timeout(READY_SECONDS):
            while not self.pod.reachable:
                await asyncio.sleep(_POLL_SECONDS)
                self.pod = await self.runtime.get(self.pod.namespace, self.pod.name)
            while True:
                status = await self.agent.status(after=self.rev, wait_seconds=25)
                self.rev = status.rev
                if status.phase is wire.Phase.READY:
                    return
                if status.phase is wire.Phase.GAVE_UP:
                    raise RuntimeError(f"the slot gave up: {status.last_failure}")

    async def attempt(
        self,
        urls: Sequence[str],
        *,
        extract: tuple[wire.Extract, ...] = (),
        output: Path | None = None,
    ) -> wire.AttemptReport:
        """Run one attempt to its end, as control does: PUT, then long polls."""
        number = next(self.numbers)
        spec = wire.AttemptSpec(
            id=f"bench-{number}",
            number=1,
            request="default/bench",
            request_uid=f"bench-{number}",
            pod_uid=self.pod.uid,
            epoch=1,
            country="SG",
            site="bench",
            start_urls=tuple(urls),
            extract=extract,
            output_uri=None if output is None else (output / str(number)).as_uri(),
        )
        async with asyncio.timeout(ATTEMPT_SECONDS):
            await self.agent.put_attempt(spec)
            while True:
                status = await self.agent.status(after=self.rev, wait_seconds=25)
                self.rev, report = status.rev, status.attempt
                if report is not None and report.id == spec.id and report.state is wire.AttemptState.ENDED:
                    break
        if report.pages.done != len(urls):
            raise RuntimeError(f"the attempt did not load its pages: {report}")
        return report

    async def end(self) -> None:
        """Delete the pod and wait until nothing of it is left."""
        await self.runtime.delete(self.pod.namespace, self.pod.name, uid=self.pod.uid, grace_ms=10_000)
        async with asyncio.timeout(END_SECONDS):
            while True:
                try:
                    await self.runtime.get(self.pod.namespace, self.pod.name)
                except NotFoundError:
                    return
                await asyncio.sleep(_POLL_SECONDS)


async def create_slot(
    runtime: ProcessRuntime, number: int, executable: str, *, blocked: Sequence[str] = DEFAULT_BLOCKING
) -> BenchSlot:
    """Create the pod; its page is not ready yet."""
    name = f"bench-browser-{number}"
    config = wire.AgentConfig(
        pod_name=name,
        pod_uid="",
        token="benchmark-benchmark-benchmark-00",
        country="SG",
        locale="en-SG",
        time_zone="Asia/Singapore",
        chromium=executable,
        allowed_cidrs=("127.0.0.0/8",),
        blocked_resource_types=tuple(blocked),
        recycle_pages=1_000_000,
    )
    order = PodOrder(
        "default", name, "bench", "pool-uid", number, f"bench-slot-{number}", "uid", "r", config, 10_000
    )
    pod = await runtime.create(order)
    return BenchSlot(runtime, pod, runtime.agent(pod))


@asynccontextmanager
async def ready_slot(
    runtime: ProcessRuntime, number: int, executable: str, *, blocked: Sequence[str] = DEFAULT_BLOCKING
) -> AsyncIterator[BenchSlot]:
    """A slot whose page is ready, ended afterwards."""
    slot = await create_slot(runtime, number, executable, blocked=blocked)
    try:
        await slot.until_ready()
        yield slot
    finally:
        await slot.end()
