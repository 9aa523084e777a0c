"""One slot at work, in virtual time and without a browser."""

import asyncio

import pytest
from tests.fakes.vtime import run, until
from tests.unit.agent_server.slots import FakeBrowser, FakeCrawl, a_drain, a_slot, a_spec, a_stop, started

from pageslots.wire import AttemptState, Outcome, Phase, RefusalCode, StopReason
from pageslots_agent.arbiter import RefusedError
from pageslots_agent.slot import PARK_SECONDS, SLACK_SECONDS, WATCH_SECONDS


def test_an_attempt_runs_and_its_report_stays_until_acknowledged():
    async def scenario():
        async with a_slot() as world:
            accepted = world.slot.admit(a_spec("a"))
            assert accepted.state is AttemptState.RUNNING
            assert world.slot.status().phase is Phase.RUNNING
            attempt = await started(world)
            attempt.end(Outcome.OK)
            await until(lambda: world.slot.phase is Phase.READY)

            status = world.slot.status()
            assert status.attempt is not None
            assert status.attempt.outcome is Outcome.OK
            assert world.slot.records("a", 1) == b"1\n2\n"
            world.slot.acknowledge("a")
            assert world.slot.status().attempt is None
            assert world.slot.report("a").outcome is Outcome.OK
            with pytest.raises(RefusedError):
                world.slot.records("a", 0)
            assert world.browser.calls == ["prepare", "tab shop.example", "after Ok", "tidy"]

    run(scenario())


def test_a_poll_waits_for_a_change_and_no_longer_than_asked():
    async def scenario():
        async with a_slot() as world:
            loop = asyncio.get_running_loop()
            rev, before = world.slot.status().rev, loop.time()
            assert (await world.slot.status_after(rev, seconds=25)).rev == rev
            assert loop.time() == pytest.approx(before + 25)

            poll = asyncio.create_task(world.slot.status_after(rev, seconds=25))
            await asyncio.sleep(1)
            world.slot.admit(a_spec("a"))
            assert (await poll).rev > rev
            assert loop.time() == pytest.approx(before + 26)
            assert (await world.slot.status_after(10**9, seconds=25)).rev < 10**9  # of another life: at once
            assert loop.time() == pytest.approx(before + 26)

    run(scenario())


def test_progress_is_told_at_most_once_a_second_and_an_end_at_once():
    async def scenario():
        async with a_slot() as world:
            world.slot.admit(a_spec("a"))
            attempt = await started(world)
            await asyncio.sleep(5)
            rev, loop = world.slot.status().rev, asyncio.get_running_loop()
            began = loop.time()
            for _ in range(250):
                attempt.progress()
                await asyncio.sleep(0.01)
            assert world.slot.status().rev - rev == 3  # at 0, 1 and 2 s
            assert loop.time() == pytest.approx(began + 2.5)

            poll = asyncio.create_task(world.slot.status_after(world.slot.status().rev, seconds=25))
            await asyncio.sleep(0)
            attempt.end()
            status = await poll
            assert status.attempt is not None
            assert status.attempt.state is AttemptState.ENDED
            assert status.phase is Phase.READY
            assert loop.time() == pytest.approx(began + 2.5)

    run(scenario())


def test_a_stop_reaches_an_attempt_that_has_not_begun_yet():
    async def scenario():
        async with a_slot(grace_ms=10_000) as world:
            world.slot.admit(a_spec("a"))
            assert world.slot.stop("a", a_stop(StopReason.SUSPENDED)).state is AttemptState.RUNNING
            await until(lambda: world.slot.phase is Phase.READY)

            assert world.crawl.last.stops == [(StopReason.SUSPENDED, 6_000)]
            assert world.slot.report("a").outcome is Outcome.STOPPED

    run(scenario())


def test_a_drain_ends_a_preparation_and_closes_the_browser():
    async def scenario():
        async with a_slot(browser=FakeBrowser(hangs=True)) as world:
            assert world.slot.phase is Phase.PREPARING
            assert world.slot.drain(a_drain()).phase is Phase.DRAINED
            await until(lambda: "close" in world.browser.calls)
            with pytest.raises(RefusedError) as refused:
                world.slot.admit(a_spec())
            assert refused.value.refusal.code is RefusalCode.DRAINED

    run(scenario())


def test_a_slot_that_gave_up_says_so_and_can_be_drained():
    async def scenario():
        async with a_slot(browser=FakeBrowser(gives_up=True)) as world:
            assert world.slot.phase is Phase.GAVE_UP
            assert world.browser.calls == ["prepare", "close"]
            assert world.slot.drain(a_drain()).phase is Phase.DRAINED

    run(scenario())


def test_a_crash_under_an_attempt_is_reported_and_the_slot_prepares_anew():
    """Case W2."""

    async def scenario():
        async with a_slot() as world:
            world.slot.admit(a_spec("a"))
            (await started(world)).end(Outcome.BROWSER_CRASH, "the renderer died")
            await until(lambda: world.slot.phase is Phase.READY)

            assert world.slot.report("a").outcome is Outcome.BROWSER_CRASH
            assert world.browser.calls.count("prepare") == 2

    run(scenario())


def test_a_browser_that_does_not_open_ends_the_attempt_and_not_the_slot():
    async def scenario():
        async with a_slot(browser=FakeBrowser(opens=False)) as world:
            world.slot.admit(a_spec("a"))
            await until(lambda: world.slot.phase is Phase.READY)

            report = world.slot.report("a")
            assert (report.outcome, report.message) == (Outcome.BROWSER_CRASH, "no browser here")

    run(scenario())


def test_a_fault_of_the_crawl_ends_its_attempt_alone():
    async def scenario():
        async with a_slot() as world:
            world.slot.admit(a_spec("a"))
            attempt = await started(world)
            attempt.error = ValueError("boom")
            attempt.end()
            await until(lambda: world.slot.phase is Phase.READY)
            assert world.slot.report("a").outcome is Outcome.SLOT_LOST
            assert "ValueError: boom" in world.slot.report("a").message

            world.crawl.raises = KeyError("start")
            world.slot.admit(a_spec("b"))
            await until(lambda: world.slot.phase is Phase.READY)
            assert world.slot.report("b").outcome is Outcome.SLOT_LOST
            assert world.slot.report("b").state is AttemptState.ENDED

    run(scenario())


def test_an_idle_page_is_parked_and_a_dead_browser_noticed():
    async def scenario():
        async with a_slot() as world:
            await asyncio.sleep(PARK_SECONDS - 0.1)
            assert "park" not in world.browser.calls
            await asyncio.sleep(0.2)
            assert "park" in world.browser.calls
            world.browser.is_alive = False
            await asyncio.sleep(WATCH_SECONDS + 0.1)
            assert world.browser.calls.count("prepare") == 2
            assert world.slot.phase is Phase.READY

    run(scenario())


def test_an_attempt_interrupts_the_parking():
    async def scenario():
        parking, browser = asyncio.Event(), FakeBrowser()

        async def park():
            parking.set()
            await asyncio.Event().wait()

        browser.park = park
        async with a_slot(browser=browser) as world:
            await parking.wait()
            world.slot.admit(a_spec("a"))
            await started(world)

    run(scenario())


def test_shutting_down_gives_the_attempt_its_grace():
    """Case W15."""

    async def scenario():
        async with a_slot(grace_ms=10_000) as world:
            world.slot.admit(a_spec("a"))
            attempt = await started(world)
            await world.slot.shut_down(seconds=9)

            assert attempt.stops == [(StopReason.SHUTDOWN, 6_000)]
            assert world.slot.phase is Phase.DRAINED
            assert world.slot.status().attempt is not None

    run(scenario())


def test_shutting_down_does_not_wait_for_ever():
    async def scenario():
        async with a_slot(crawl=FakeCrawl(stubborn=True)) as world:
            world.slot.admit(a_spec("a"))
            await started(world)
            began = asyncio.get_running_loop().time()
            await world.slot.shut_down(seconds=9)

            assert asyncio.get_running_loop().time() == pytest.approx(began + 9)
            assert world.slot.busy

    run(scenario())


def test_an_attempt_is_overdue_only_after_its_deadline_and_the_slack():
    async def scenario():
        async with a_slot(grace_ms=10_000) as world:
            world.slot.admit(a_spec("a", deadline_ms=100_000, page_timeout_ms=30_000))
            await asyncio.sleep(100 + 30 + 10 + SLACK_SECONDS - 1)
            assert not world.slot.overdue
            await asyncio.sleep(2)
            assert world.slot.overdue

    run(scenario())


def test_liveness_is_about_the_browser_never_about_being_full():
    async def scenario():
        async with a_slot() as world:
            world.slot.admit(a_spec("a"))
            assert await world.slot.alive()
            world.browser.is_alive = False
            assert not await world.slot.alive()  # it is there and hangs
            world.browser.is_open = False
            assert await world.slot.alive()  # it is gone: the attempt opens another one

    run(scenario())
