"""Work aside of the event loop."""

import asyncio
import threading

import pytest

from pageslots_agent.aside import Aside


def test_results_and_errors_come_back():
    async def main():
        aside = Aside("test")
        assert await aside.call(lambda: 1 + 1, timeout_ms=5_000) == 2
        with pytest.raises(ZeroDivisionError):
            await aside.call(lambda: 1 // 0, timeout_ms=5_000)
        aside.close()

    asyncio.run(main())


def test_a_call_that_hangs_is_given_up_and_the_next_one_runs():
    async def main():
        aside = Aside("test")
        release = threading.Event()
        with pytest.raises(TimeoutError):
            await aside.call(release.wait, timeout_ms=20)
        assert await aside.call(lambda: "next", timeout_ms=5_000) == "next"
        release.set()
        aside.close()

    asyncio.run(main())


def test_its_threads_end_with_it():
    async def main():
        aside = Aside("pageslots-test-aside")
        await aside.call(lambda: None, timeout_ms=5_000)
        [thread] = [thread for thread in threading.enumerate() if thread.name == "pageslots-test-aside"]
        aside.close()
        await asyncio.to_thread(thread.join, 5)
        assert not thread.is_alive()

    asyncio.run(main())
