"""Real agents with real browsers: ready, and gone without a trace, however they end (cases W2, W15)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.contract.slot_runtime import gone, in_phase
from tests.fakes.orders import an_order
from tests.fakes.processes import alive

from pageslots.control.ports import AgentRefusedError, PodPhase, PodView
from pageslots.local.browser import find_browser
from pageslots.local.processes import Table
from pageslots.local.runtime import ProcessRuntime
from pageslots.wire import AgentStatus, DrainOrder, Phase, RefusalCode

pytestmark = pytest.mark.browser


async def _ready(runtime: ProcessRuntime) -> tuple[PodView, AgentStatus]:
    """A slot whose page is ready."""
    browser = await find_browser()
    await runtime.create(an_order(chromium=str(browser.path)))
    async with asyncio.timeout(60):
        pod = await in_phase(runtime, PodPhase.RUNNING)
        status = await runtime.agent(pod).status(after=0, wait_seconds=1)
        while status.phase is not Phase.READY:
            status = await runtime.agent(pod).status(after=status.rev, wait_seconds=5)
        return pod, status


def _tree(pid: int) -> list[int]:
    """A process and all its descendants, with nothing but their parents to go by."""
    processes = Table.read().processes
    tree = [pid]
    for parent in tree:
        tree += [process.pid for process in processes.values() if process.parent == parent]
    return tree


def _agent(runtime: ProcessRuntime, pod: PodView) -> int:
    pid = runtime.agent_pid(pod)
    assert pid is not None
    return pid


def test_a_real_slot_becomes_ready_drains_and_leaves_nothing(tmp_path: Path):
    async def scenario() -> None:
        async with ProcessRuntime(tmp_path, scratch_root=tmp_path / "s") as runtime:
            pod, status = await _ready(runtime)
            tree = _tree(_agent(runtime, pod))
            assert len(tree) >= 5  # agent, driver, browser, zygotes, renderer
            assert status.pod_uid == pod.uid

            with pytest.raises(AgentRefusedError) as refused:
                await runtime.agent(pod).drain(DrainOrder(epoch=-1, pod_uid=pod.uid))
            assert refused.value.refusal.code is RefusalCode.OLD_EPOCH
            drained = await runtime.agent(pod).drain(DrainOrder(epoch=1, pod_uid=pod.uid))
            assert drained.phase is Phase.DRAINED
            await runtime.delete(pod.namespace, pod.name, uid=pod.uid, grace_ms=10_000)
            await gone(runtime)
            assert alive(tree) == []

    asyncio.run(scenario())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_real_slot_whose_agent_is_killed_or_frozen_leaves_no_browser(
    tmp_path: Path, number: signal.Signals
):
    async def scenario() -> None:
        async with ProcessRuntime(tmp_path, scratch_root=tmp_path / "s") as runtime:
            pod, _ = await _ready(runtime)
            tree = _tree(_agent(runtime, pod))
            os.kill(tree[0], number)
            if number is signal.SIGKILL:
                await in_phase(runtime, PodPhase.TERMINATED)
            else:
                await runtime.delete(pod.namespace, pod.name, uid=pod.uid, grace_ms=200)
                await gone(runtime)

            assert alive(tree) == []

    asyncio.run(scenario())


def test_a_real_slot_outlives_neither_its_run_nor_a_frozen_agent(tmp_path: Path):
    """The run ends at once; the browser is found by session and parent, since its zygotes hide their marker."""

    async def scenario() -> list[int]:
        async with ProcessRuntime(tmp_path, scratch_root=tmp_path / "s") as runtime:
            pod, _ = await _ready(runtime)
            tree = _tree(_agent(runtime, pod))
            os.kill(tree[0], signal.SIGSTOP)
            return tree

    tree = asyncio.run(scenario())
    assert alive(tree) == []
    assert list((tmp_path / "s").glob("run-*")) == []
