"""Time that jumps from timer to timer."""

import asyncio
import time

import pytest

from pageslots.simulate.virtual import START_MS, DeadlockError, VirtualClock, run


def test_a_year_of_waiting_takes_no_time_and_is_exact():
    async def scenario() -> list[int]:
        clock = VirtualClock()
        instants = [clock.now_ms()]
        for seconds in (0.001, 86_400 * 365, 0.001):
            await asyncio.sleep(seconds)
            instants.append(clock.now_ms())
        return instants

    begun = time.monotonic()
    first, *later = run(scenario())

    assert first == START_MS
    assert later == [START_MS + 1, START_MS + 31_536_000_001, START_MS + 31_536_000_002]
    assert time.monotonic() - begun < 5


def test_timers_run_in_the_order_of_their_instants_then_of_their_making():
    async def scenario() -> list[str]:
        told: list[str] = []
        loop = asyncio.get_running_loop()
        for name, delay in (("c", 2.0), ("a", 1.0), ("b", 1.0), ("d", 2.5)):
            loop.call_later(delay, told.append, name)
        await asyncio.sleep(3)
        return told

    assert run(scenario()) == ["a", "b", "c", "d"]


def test_deadlines_work_as_in_real_time():
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(25):
                await asyncio.Event().wait()
        return loop.time()

    assert run(scenario()) == 25


def test_waiting_for_what_nobody_will_do_is_an_error_not_a_hang():
    async def scenario() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="no timer"):
        run(scenario())


def test_threads_have_no_place_in_virtual_time():
    async def scenario() -> None:
        await asyncio.to_thread(time.sleep, 0)

    with pytest.raises(RuntimeError, match="no threads"):
        run(scenario())


def test_a_virtual_clock_in_a_real_loop_is_refused():
    async def scenario() -> None:
        VirtualClock().now_ms()

    with pytest.raises(AssertionError, match="virtual loop"):
        asyncio.run(scenario())


def test_what_was_left_running_is_cancelled_at_the_end():
    ended: list[bool] = []

    async def endless() -> None:
        try:
            await asyncio.sleep(1_000_000)
        finally:
            ended.append(True)

    async def scenario() -> None:
        tasks.append(asyncio.create_task(endless()))
        await asyncio.sleep(1)

    tasks: list[asyncio.Task[None]] = []
    run(scenario())
    assert ended == [True]
