"""Carries out faulty calls and faulty watches."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from tests.fakes.faults import Fault, Faults

from pageslots.control.ports import ConflictError, ForbiddenError, ThrottledError, UnavailableError

ResultT = TypeVar("ResultT")


async def faulty_call(faults: Faults, verb: str, name: str, do: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """`do()`, with what `faults` says of it; errors are those of the API."""
    return await distorted_call(faults.next(verb, name), faults, verb, name, do)


async def distorted_call(
    fault: Fault | None, faults: Faults, verb: str, name: str, do: Callable[[], Awaitable[ResultT]]
) -> ResultT:
    """`do()` with this fault; those that distort an answer are the caller's."""
    match fault:
        case Fault.ERROR:
            raise UnavailableError(f"{verb} {name}: no answer (nothing was done)")
        case Fault.THROTTLED:
            raise ThrottledError(f"{verb} {name}: too many requests", retry_after_ms=1_000)
        case Fault.FORBIDDEN:
            raise ForbiddenError(f"{verb} {name}: exceeded quota: objects")
        case Fault.CONFLICT:
            raise ConflictError(f"{verb} {name}: somebody else was faster")
        case Fault.SLOW:
            await asyncio.sleep(faults.slow_seconds)
    result = await do()
    match fault:
        case Fault.LOST:
            raise UnavailableError(f"{verb} {name}: no answer (it was done)")
        case Fault.SLOW_ANSWER:
            await asyncio.sleep(faults.slow_seconds)
    return result


class FaultyLists:
    """Complete lists that can be late (what the same list said the time before) or empty."""

    def __init__(self) -> None:
        self._before: dict[object, Sequence[Any]] = {}

    def distort(self, key: object, now: Sequence[Any], fault: Fault | None) -> Sequence[Any]:
        before, self._before[key] = self._before.get(key, ()), now
        match fault:
            case Fault.STALE:
                return before
            case Fault.EMPTY:
                return ()
            case _:
                return now


async def faulty_watch(
    faults: Faults,
    prefix: str,
    name: str,
    watch: Callable[[], AsyncGenerator[Any]],
    distort: Callable[[Any, Fault | None], Any],
    *,
    synced: type,
) -> AsyncGenerator[Any]:
    """The events of `watch()`, with gaps, silences, delays and wrong complete lists.

    After a gap, and some time after a wrong list, everything is listed anew, as every watch promises.
    """
    while True:
        async with aclosing(watch()) as source:
            missed = False
            async for event in source:
                complete = isinstance(event, synced)
                fault = faults.next(prefix + ("sync" if complete else "event"), name)
                if complete:
                    yield distort(event, fault)
                    if fault in (Fault.STALE, Fault.EMPTY):
                        break
                elif fault is Fault.SILENCE:
                    missed = True
                elif missed or fault is Fault.GAP:
                    break
                else:
                    if fault is Fault.SLOW:
                        await asyncio.sleep(faults.slow_seconds)
                    yield event
            else:
                return
        await asyncio.sleep(faults.slow_seconds)
