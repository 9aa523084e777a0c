"""What people see: the statuses of slots and pools, and why queued requests wait.

Written when they differ from what the API shows, not when something happened: several changes are one write, and
nothing that is written here is ever read by a decision (but for the pools' back-offs, after a restart).
"""

import asyncio
import heapq
from collections.abc import Mapping
from typing import Any

from pageslots.api import CrawlRequest, PageSlotPool
from pageslots.api.reasons import RequestReason
from pageslots.control import request_status
from pageslots.control.context import Context
from pageslots.control.instants import instant
from pageslots.control.names import Key
from pageslots.control.pool import PoolLoop
from pageslots.control.ports import ApiError, JsonObject, Kind
from pageslots.control.summaries import pool_status, slot_status, waiting_reason
from pageslots.core.model import SECOND, BackOff, Country, Instant, RequestState, RequestUid, Site
from pageslots.wire import AttemptReport

TICK_MS = 250
POOL_EVERY_MS = 1 * SECOND
PROGRESS_EVERY_MS = 10 * SECOND
WAITING_AFTER_MS = 5 * SECOND
WAITING_EVERY_MS = 60 * SECOND
WAITING_PER_TICK = 5
"""20 writes a second overall (DESIGN section 6)."""
WAITING_LOOKS_PER_TICK = 100
"""How many waiting requests are looked at: a tick costs the same with 50,000 of them as with 100."""


class StatusWriter:
    """Compares what is with what is shown, four times a second, for the pools that changed."""

    def __init__(self, context: Context, pools: Mapping[Key, PoolLoop]) -> None:
        self._context = context
        self._pools = pools
        self._dirty: set[Key] = set()
        self._pool_written: dict[Key, int] = {}
        self._progress: dict[str, AttemptReport] = {}
        self._progress_written: dict[str, int] = {}
        self._told: dict[str, str] = {}  # waiting request -> the reason told last
        self._waits: list[tuple[int, str, Key]] = []  # when to look at it next

    def mark(self, key: Key) -> None:
        """Something of this pool changed."""
        self._dirty.add(key)

    def waits(self, key: Key, request: CrawlRequest) -> None:
        """A request is in the queue; after a few seconds it says why."""
        uid = request.metadata.uid
        if uid not in self._told:
            self._told[uid] = ""
            heapq.heappush(self._waits, (self._context.clock.now_ms() + WAITING_AFTER_MS, uid, key))

    def progressed(self, report: AttemptReport) -> None:
        """A running attempt came further."""
        self._progress[report.id] = report

    def backoffs_of(self, pool: PageSlotPool) -> list[BackOff]:
        """The back-offs that a pool's status keeps over restarts."""
        return [
            BackOff(
                country=Country(b.country),
                site=Site(b.site) if b.site else None,
                until=instant(b.until),
                failures=b.failures,
            )
            for b in pool.status.backoffs
        ]

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await asyncio.sleep(TICK_MS / 1_000)
            await self.step()

    async def step(self) -> None:
        """Write what differs now."""
        now = Instant(self._context.clock.now_ms())
        dirty, self._dirty = self._dirty, set()
        for key in sorted(dirty, key=str):
            loop = self._pools[key]
            await self._write_slots(loop, now)
            if now - self._pool_written.get(key, 0) >= POOL_EVERY_MS:
                self._pool_written[key] = now
                await self._write_pool(loop, now)
            else:
                self._dirty.add(key)
        await self._write_progress(now)
        await self._write_waiting(now)

    async def _write_slots(self, loop: PoolLoop, now: Instant) -> None:
        for uid in list(loop.index.slots):
            obj = self._context.cache.by_uid(uid)
            if obj is None:
                continue
            status = slot_status(loop.index, uid, obj, now)
            await self._write(Kind.SLOT, obj, status)

    async def _write_pool(self, loop: PoolLoop, now: Instant) -> None:
        obj = self._context.cache.get(Kind.POOL, loop.key)
        if obj is not None:
            await self._write(Kind.POOL, obj, pool_status(loop.index, obj, now))

    async def _write_progress(self, now: Instant) -> None:
        reports, self._progress = self._progress, {}
        for id_, report in reports.items():
            if now - self._progress_written.get(id_, 0) < PROGRESS_EVERY_MS:
                self._progress[id_] = report
                continue
            obj = self._context.cache.by_uid(report.request_uid)
            if obj is None or (obj.get("status") or {}).get("attempt", {}).get("id") != id_:
                self._progress_written.pop(id_, None)
                continue
            request = CrawlRequest.model_validate(obj)
            if request.status.state.value != RequestState.RUNNING:
                self._progress_written.pop(id_, None)
                continue
            self._progress_written[id_] = now
            await self._write(Kind.REQUEST, obj, request_status.progress(report))

    async def _write_waiting(self, now: Instant) -> None:
        """Tell requests that have waited for more than a few seconds why; who has waited longest first."""
        written = 0
        for _ in range(WAITING_LOOKS_PER_TICK):
            if written >= WAITING_PER_TICK or not self._waits or self._waits[0][0] > now:
                return
            _, uid, key = heapq.heappop(self._waits)
            written += await self._write_why(uid, key, now)

    async def _write_why(self, uid: str, key: Key, now: Instant) -> bool:
        """Tell one request why it waits, if that is news."""
        obj = self._context.cache.by_uid(uid)
        fact = self._pools[key].index.requests.get(RequestUid(uid))
        if obj is None or fact is None or fact.state is not RequestState.QUEUED:
            del self._told[uid]
            return False
        heapq.heappush(self._waits, (now + WAITING_EVERY_MS, uid, key))
        reason, message = waiting_reason(self._pools[key].index, fact, now)
        if reason == self._told[uid]:
            return False
        self._told[uid] = reason
        request = CrawlRequest.model_validate(obj)
        await self._write(
            Kind.REQUEST, obj, request_status.waiting(request, now, RequestReason(reason), message)
        )
        return True

    async def _write(self, kind: Kind, obj: JsonObject, status: JsonObject) -> None:
        """Patch what differs; a conflict or an error costs a later tick."""
        patch = difference(obj.get("status") or {}, status)
        if not patch:
            return
        context, metadata = self._context, obj["metadata"]
        context.leadership.check()
        try:
            written = await context.api.patch(
                kind,
                metadata.get("namespace", "default"),
                metadata["name"],
                {"status": patch},
                version=metadata["resourceVersion"] if kind is Kind.REQUEST else None,
                status=True,
            )
        except ApiError as error:
            context.recorder.event(
                "warning", "status.retry", kind=kind.value, name=metadata["name"], error=str(error)
            )
            return
        context.intake.observe(kind, written)


def difference(current: JsonObject, wanted: JsonObject) -> JsonObject:
    """The merge patch from one status to another, for the fields that `wanted` names (None: absent)."""
    patch: dict[str, Any] = {}
    for field, value in wanted.items():
        known = current.get(field)
        if isinstance(value, dict) and isinstance(known, dict):
            inner = difference(known, value)
            if inner:
                patch[field] = inner
        elif known != value:
            patch[field] = value
    return patch
