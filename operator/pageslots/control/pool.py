"""One pool's loop: what changed → plan → deeds → what their results changed.

A change marks the pool dirty; the plan follows after a short debounce, so that a burst of changes costs one plan.
Level-triggered: a lost event costs a timeout (`next_wake`), never a stuck object.
"""

import asyncio
from dataclasses import dataclass, field

from pageslots.control.context import Context
from pageslots.control.deeds import Deeds
from pageslots.control.names import Key
from pageslots.core.actions import Deed
from pageslots.core.index import Index
from pageslots.core.model import Instant, PoolSettings
from pageslots.core.plan import Plan, plan

DEBOUNCE_MS = 5
"""The shortest pause between a change and its plan; twice the last plan's time when plans are slow."""

LONGEST_SLEEP_MS = 5_000
"""A plan is made at least this often: the bound of what a lost timer or a missed change can cost."""


@dataclass(slots=True)
class PlanFigures:
    """What plans cost and asked for, for metrics and the debounce."""

    plans: int = 0
    last_ms: float = 0.0
    longest_ms: float = 0.0
    by_kind: dict[str, int] = field(default_factory=dict)


class PoolLoop:
    """Plans for one pool and hands the deeds out; its tasks are owned by the controller's group."""

    def __init__(self, context: Context, key: Key, settings: PoolSettings, limit: asyncio.Semaphore) -> None:
        self.key = key
        self.index = Index(settings)
        self.figures = PlanFigures()
        self.started = False
        self._clock = context.clock
        self._dirty = asyncio.Event()
        self._next_wake: Instant | None = None
        self._deeds = Deeds(context, key, self.index, limit, self.mark_dirty)

    def mark_dirty(self) -> None:
        """Something that a decision may depend on has changed."""
        self._dirty.set()

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Plan until cancelled; deeds run in `tasks`."""
        while True:
            self._dirty.clear()
            self.step(tasks)
            await self._wait()

    def step(self, tasks: asyncio.TaskGroup) -> Plan:
        """Make one plan and start its deeds."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        now = Instant(self._clock.now_ms())
        made = plan(self.index, now)
        self.index.accept(made, now)
        self._count(made, (loop.time() - begin) * 1_000)
        self._next_wake = made.next_wake
        for action in made.actions:
            if isinstance(action, Deed):
                tasks.create_task(self._deeds.carry_out(action), name=type(action).__name__)
        return made

    def _count(self, made: Plan, took_ms: float) -> None:
        figures = self.figures
        figures.plans += 1
        figures.last_ms = took_ms
        figures.longest_ms = max(figures.longest_ms, took_ms)
        for action in made.actions:
            name = type(action).__name__
            figures.by_kind[name] = figures.by_kind.get(name, 0) + 1

    async def _wait(self) -> None:
        sleep_ms = LONGEST_SLEEP_MS
        if self._next_wake is not None:
            sleep_ms = max(0, min(sleep_ms, self._next_wake - self._clock.now_ms()))
        try:
            async with asyncio.timeout(sleep_ms / 1_000):
                await self._dirty.wait()
        except TimeoutError:
            return  # a timer is due, nothing else is coming: no debounce
        await asyncio.sleep(max(DEBOUNCE_MS, 2 * self.figures.last_ms) / 1_000)
