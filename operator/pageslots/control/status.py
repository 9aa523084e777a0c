"""What people see: the statuses of slots and pools, and why queued requests wait.

Written when they differ from what the API shows, not when something happened: several changes are one write, and
nothing that is written here is ever read by a decision (but for the pools' back-offs, after a restart).
"""

import asyncio
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
from pageslots.core.model import SECOND, BackOff, Country, Instant, RequestState, Site
from pageslots.wire import AttemptReport

TICK_MS = 250
POOL_EVERY_MS = 1 * SECOND
PROGRESS_EVERY_MS = 10 * SECOND
WAITING_AFTER_MS = 5 * SECOND
WAITING_EVERY_MS = 60 * SECOND
WAITING_PER_TICK = 5
"""20 a second overall (DESIGN section 6)."""


class StatusWriter:
    """Compares what is with what is shown, four times a second, for the pools that changed."""

    def __init__(self, context: Context, pools: Mapping[Key, PoolLoop]) -> None:
        self._context = context
        self._pools = pools
        self._dirty: set[Key] = set()
        self._pool_written: dict[Key, int] = {}
        self._progress: dict[str, AttemptReport] = {}
        self._progress_written: dict[str, int] = {}
        self._told: dict[str, tuple[int, str]] = {}

    def mark(self, key: Key) -> None:
        """Something of this pool changed."""
        self._dirty.add(key)

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
        for loop in list(self._pools.values()):
            await self._write_waiting(loop, now)

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

    async def _write_waiting(self, loop: PoolLoop, now: Instant) -> None:
        """Tell requests that have waited for more than a few seconds why; the longest waiting first."""
        written = 0
        for uid, fact in loop.index.queued_requests():
            if written >= WAITING_PER_TICK:
                return
            if now - fact.created < WAITING_AFTER_MS:
                continue
            at, last = self._told.get(uid, (0, ""))
            if now - at < WAITING_EVERY_MS:
                continue
            reason, message = waiting_reason(loop.index, fact, now)
            self._told[uid] = (now, reason)
            obj = self._context.cache.by_uid(uid)
            if reason == last or obj is None:
                continue
            request = CrawlRequest.model_validate(obj)
            written += 1
            await self._write(
                Kind.REQUEST, obj, request_status.waiting(request, now, RequestReason(reason), message)
            )

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
