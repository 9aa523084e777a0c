"""Deletes finished requests when their ttlSecondsAfterFinished is over. Children go with their parent."""

import heapq

from pageslots.api import CrawlRequest
from pageslots.control.context import Context
from pageslots.control.instants import instant
from pageslots.control.parallel import parent_uid
from pageslots.control.ports import ApiError, ConflictError, Kind, NotFoundError
from pageslots.core.model import SECOND, Instant

AT_ONCE = 20
"""The most deletions of one step: a bulk that ends together does not crowd out dispatch."""


class Retention:
    """Finished requests by the instant at which they may go."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._due: list[tuple[Instant, str]] = []

    def observe(self, request: CrawlRequest) -> None:
        """Remember a finished request."""
        finished = instant(request.status.finish_time)
        if self._context.settings.delete_finished and finished is not None and parent_uid(request) is None:
            at = Instant(finished + request.spec.ttl_seconds_after_finished * SECOND)
            heapq.heappush(self._due, (at, request.metadata.uid))

    async def step(self) -> None:
        """Delete what is due."""
        now = self._context.clock.now_ms()
        for _ in range(AT_ONCE):
            if not self._due or self._due[0][0] > now:
                return
            _, uid = heapq.heappop(self._due)
            await self._delete(uid, now)

    async def _delete(self, uid: str, now: int) -> None:
        obj = self._context.cache.by_uid(uid)
        if obj is None:
            return
        request = CrawlRequest.model_validate(obj)
        finished = instant(request.status.finish_time)
        if finished is None or finished + request.spec.ttl_seconds_after_finished * SECOND > now:
            self.observe(request)  # its TTL was made longer
            return
        self._context.leadership.check()
        try:
            await self._context.api.delete(
                Kind.REQUEST,
                request.metadata.namespace,
                request.name,
                uid=uid,
                version=request.metadata.resource_version,
            )
        except NotFoundError:
            self._context.intake.forget(Kind.REQUEST, obj)
        except ConflictError:
            self.observe(request)
        except ApiError as error:
            self._context.recorder.event("warning", "ttl.retry", request=request.name, error=str(error))
            heapq.heappush(self._due, (Instant(now + 10 * SECOND), uid))
        else:
            self._context.intake.forget(Kind.REQUEST, obj)
