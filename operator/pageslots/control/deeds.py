"""Carries a plan's deeds out; knows nothing about why.

A deed stays pending in the index until its result is *known*: after an answer that leaves the result open, the
object is read live (again and again, with growing pauses) before the planner may ask for anything else about it.
A conflict means that our view is old: live read, then a new plan decides.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, assert_never

from pageslots.control.attempts import Attempts
from pageslots.control.context import Context, NotLeadingError
from pageslots.control.names import Key, browser_name, permit_name, slot_name
from pageslots.control.permits import Permits
from pageslots.control.pods import Pods
from pageslots.control.ports import (
    AgentUnreachableError,
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    Kind,
    NotFoundError,
    ThrottledError,
    UnavailableError,
)
from pageslots.control.slots import Slots
from pageslots.core import actions
from pageslots.core.index import Index

FIRST_PAUSE_MS = 100
LONGEST_PAUSE_MS = 10_000
"""Pauses after a failure double from the first to the longest: no hot loop, whatever the API says."""


@dataclass(slots=True)
class Failures:
    """Failures in a row of one kind of deed on one object."""

    count: int = 0

    def pause_ms(self) -> int:
        """How long to wait after the latest of them."""
        return min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(self.count - 1, 10))


class Deeds:
    """The doer of one pool. `settled` is called when a deed's result is in the index."""

    def __init__(
        self,
        context: Context,
        pool: Key,
        index: Index,
        limit: asyncio.Semaphore,
        settled: Callable[[], None],
    ) -> None:
        self._context = context
        self._pool = pool
        self._index = index
        self._limit = limit
        self._settled = settled
        self._failures: dict[tuple[type, object], Failures] = {}
        self.permits = Permits(context, pool, index)
        self.pods = Pods(context, pool, index)
        self.slots = Slots(context, pool, index)
        self.attempts = Attempts(context, pool, index)

    async def carry_out(self, deed: actions.Deed) -> None:
        """Do it, learn its result, settle it. Raises CancelledError only."""
        key = (type(deed), _subject(deed))
        try:
            async with self._limit:
                self._context.leadership.check()
                await self._do(deed)
            self._failures.pop(key, None)
        except (ConflictError, NotFoundError, AlreadyExistsError) as error:
            self._tell("deed.outdated", deed, error)
            await self._look(deed)
            await self._pause(key)
        except (
            UnavailableError,
            ThrottledError,
            ForbiddenError,
            InvalidError,
            AgentUnreachableError,
        ) as error:
            self._tell("deed.failed", deed, error)
            await self._pause(
                key, at_least_ms=error.retry_after_ms if isinstance(error, ThrottledError) else 0
            )
            await self._look(deed)
        except NotLeadingError:
            return  # everything stays pending: this process decides nothing any more
        self._index.settle(deed)
        self._settled()

    def _do(self, deed: actions.Deed) -> Awaitable[None]:  # noqa: C901, PLR0911, PLR0912 -- a case per deed
        match deed:
            case actions.CreateSlot():
                return self.slots.create(deed)
            case actions.DeleteSlot():
                return self.slots.delete(deed)
            case actions.TakePermit():
                return self.permits.take(deed)
            case actions.FreePermit():
                return self.permits.free(deed)
            case actions.CreatePod():
                return self.pods.create(deed)
            case actions.CloseSlot():
                return self.pods.close(deed)
            case actions.DeletePod():
                return self.pods.delete(deed)
            case actions.StartAttempt():
                return self.attempts.start(deed)
            case actions.SendAttempt():
                return self.attempts.send(deed)
            case actions.StopAttempt():
                return self.attempts.stop(deed)
            case actions.RequeueRequest():
                return self.attempts.requeue(deed)
            case actions.FinishRequest():
                return self.attempts.finish(deed)
            case _:
                assert_never(deed)

    async def _look(self, deed: actions.Deed) -> None:
        """Read live what the deed was about, until an answer comes."""
        failures = Failures()
        while True:
            try:
                async with self._limit:
                    await self._look_once(deed)
            except ApiError as error:
                failures.count += 1
                if failures.count == 5:
                    self._tell("deed.unknown", deed, error)
                await asyncio.sleep(failures.pause_ms() / 1_000)
            else:
                return

    async def _look_once(self, deed: actions.Deed) -> None:
        match deed:
            case actions.CreateSlot():
                await self._look_at(Kind.SLOT, slot_name(self._pool.name, deed.number))
            case actions.DeleteSlot():
                slot = self._index.slots.get(deed.slot)
                if slot is not None:
                    await self._look_at(Kind.SLOT, slot.name)
            case actions.TakePermit() | actions.FreePermit():
                await self._look_at(Kind.LEASE, permit_name(self._pool.name, deed.number))
                await self.pods.look(browser_name(self._pool.name, deed.number))
            case actions.CreatePod() | actions.CloseSlot() | actions.DeletePod():
                await self.pods.look(browser_name(self._pool.name, deed.number))
            case actions.StartAttempt() | actions.RequeueRequest() | actions.FinishRequest():
                request = self._index.requests.get(deed.request)
                if request is not None:
                    await self._look_at(Kind.REQUEST, request.name)
            case actions.SendAttempt() | actions.StopAttempt():
                return  # the agent's own status tells
            case _:
                assert_never(deed)

    async def _look_at(self, kind: Kind, name: str) -> None:
        context, namespace = self._context, self._pool.namespace
        known = context.cache.get(kind, Key(namespace, name))
        try:
            context.intake.observe(kind, await context.api.get(kind, namespace, name))
        except NotFoundError:
            if known is not None:
                context.intake.forget(kind, known)

    async def _pause(self, key: tuple[type, object], at_least_ms: int = 0) -> None:
        failures = self._failures.setdefault(key, Failures())
        failures.count += 1
        await asyncio.sleep(max(at_least_ms, failures.pause_ms()) / 1_000)

    def _tell(self, name: str, deed: actions.Deed, error: Exception) -> None:
        self._context.recorder.event(
            "warning",
            name,
            pool=str(self._pool),
            deed=type(deed).__name__,
            about=str(_subject(deed)),
            error=str(error),
        )


def _subject(deed: actions.Deed) -> Any:
    """What a deed is about: the key of its failures."""
    match deed:
        case actions.CreateSlot() | actions.TakePermit() | actions.CreatePod() | actions.FreePermit():
            return deed.number
        case actions.CloseSlot() | actions.DeletePod():
            return deed.pod
        case actions.DeleteSlot():
            return deed.slot
        case actions.SendAttempt() | actions.StopAttempt():
            return deed.attempt
        case actions.StartAttempt() | actions.RequeueRequest() | actions.FinishRequest():
            return deed.request
        case _:
            assert_never(deed)
