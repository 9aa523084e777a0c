"""Requests whose pool or country does not exist: told, looked at again when pools change, failed in bounded time.

People apply folders in any order, so a missing pool is first of all a pool that has not come yet (case D9).
"""

from dataclasses import dataclass

from pageslots.api import CrawlRequest
from pageslots.api.reasons import RequestReason, RequestState
from pageslots.control import request_status
from pageslots.control.context import Context
from pageslots.control.names import Key
from pageslots.control.ports import ApiError, JsonObject, Kind
from pageslots.core.model import SECOND, Instant

TELL_AFTER_MS = 5 * SECOND
FAIL_AFTER_MS = 600 * SECOND


@dataclass(slots=True)
class Waiter:
    """A request that can't be accepted, since when, and whether its status says so."""

    request: CrawlRequest
    since: Instant
    reason: RequestReason
    message: str
    told: bool = False


class Admission:
    """The requests that name what does not exist."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: dict[str, Waiter] = {}

    def accepts(self, request: CrawlRequest) -> bool:
        """Whether pool and country exist (finished requests are always accepted); else it is kept in view."""
        uid = request.metadata.uid
        why = None if request.status.is_finished else self._objection(request)
        if why is None:
            self._waiting.pop(uid, None)
            return True
        reason, message = why
        known = self._waiting.get(uid)
        now = Instant(self._context.clock.now_ms())
        since = now if known is None else known.since
        told = known is not None and known.told and known.reason is reason
        self._waiting[uid] = Waiter(request, since, reason, message, told)
        return False

    def _objection(self, request: CrawlRequest) -> tuple[RequestReason, str] | None:
        key = Key(request.metadata.namespace, request.spec.pool_name)
        pool = self._context.pool(key)
        if pool is None or pool.metadata.deletion_timestamp is not None:
            return RequestReason.NO_SUCH_POOL, f'no pool "{key.name}" in namespace "{key.namespace}"'
        codes = [country.code for country in pool.spec.countries]
        if request.spec.country not in codes:
            return (
                RequestReason.NO_SUCH_COUNTRY,
                f'pool "{key.name}" has no country {request.spec.country}; it has {", ".join(sorted(codes))}',
            )
        names = [output.name for output in pool.spec.outputs]
        if request.spec.output is not None and request.spec.output.name not in names:
            return (
                RequestReason.NO_SUCH_OUTPUT,
                f'pool "{key.name}" has no output "{request.spec.output.name}"',
            )
        return None

    def waiting_for(self, pool: Key) -> list[JsonObject]:
        """The objects that a change of this pool may concern."""
        found = (
            self._context.cache.by_uid(uid)
            for uid, waiter in self._waiting.items()
            if Key(waiter.request.metadata.namespace, waiter.request.spec.pool_name) == pool
        )
        return [obj for obj in found if obj is not None]

    def forget(self, request: CrawlRequest) -> None:
        """It is gone."""
        self._waiting.pop(request.metadata.uid, None)

    async def step(self) -> None:
        """Tell and fail what is due; to be called every second or so."""
        now = Instant(self._context.clock.now_ms())
        for waiter in list(self._waiting.values()):
            if waiter.request.status.state is RequestState.RUNNING:
                continue  # the planner puts it back into the queue first
            limit_ms = FAIL_AFTER_MS
            if waiter.request.spec.queue_timeout_seconds is not None:
                limit_ms = min(limit_ms, waiter.request.spec.queue_timeout_seconds * SECOND)
            if now - waiter.since >= limit_ms:
                await self._write(
                    waiter,
                    request_status.finished(
                        waiter.request,
                        now,
                        state=RequestState.FAILED,
                        outcome=None,
                        reason=waiter.reason,
                        message=waiter.message,
                        report=None,
                    ),
                )
            elif not waiter.told and now - waiter.since >= TELL_AFTER_MS:
                patch = request_status.not_accepted(waiter.request, now, waiter.reason, waiter.message)
                waiter.told = await self._write(waiter, patch)

    async def _write(self, waiter: Waiter, patch: JsonObject) -> bool:
        context, request = self._context, waiter.request
        context.leadership.check()
        try:
            written = await context.api.patch(
                Kind.REQUEST,
                request.metadata.namespace,
                request.name,
                {"status": patch},
                version=request.metadata.resource_version,
                status=True,
            )
        except ApiError as error:
            context.recorder.event("warning", "admission.retry", request=request.name, error=str(error))
            return False
        waiter.told = True
        context.intake.observe(Kind.REQUEST, written)
        return True
