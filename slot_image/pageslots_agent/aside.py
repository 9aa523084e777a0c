"""Work aside of the event loop, in one daemon thread that can be given up.

Parsing, XPath and disks can take long, or for ever; the event loop must go on answering. A
`ThreadPoolExecutor` is no help: its threads can't be abandoned, and the interpreter waits for them when it
exits.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Aside:
    """Runs one call at a time. A call that misses its deadline keeps its thread; the next call gets a new
    one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] | None = None

    async def call(self, work: Callable[[], T], *, timeout_ms: int) -> T:
        """The result of `work()`, or its exception; TimeoutError after `timeout_ms`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 -- handed to the caller, whatever it is
                _tell(loop, _fail, future, error)
            else:
                _tell(loop, _succeed, future, result)

        calls = self._thread()
        calls.put(run)
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                return await future
        except (TimeoutError, asyncio.CancelledError):
            if not future.done() or future.cancelled():
                self._give_up(calls)
            raise

    def close(self) -> None:
        """End the thread after its current call, without waiting for it."""
        if self._calls is not None:
            self._give_up(self._calls)

    def _thread(self) -> queue.SimpleQueue[Callable[[], None] | None]:
        if self._calls is None:
            self._calls = queue.SimpleQueue()
            threading.Thread(target=_work, args=(self._calls,), name=self._name, daemon=True).start()
        return self._calls

    def _give_up(self, calls: queue.SimpleQueue[Callable[[], None] | None]) -> None:
        calls.put(None)
        if calls is self._calls:
            self._calls = None


def _work(calls: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # holds the last page's document otherwise


def _tell(loop: asyncio.AbstractEventLoop, how: Callable[..., None], *args: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits for the answer any more
        loop.call_soon_threadsafe(how, *args)


def _succeed(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
