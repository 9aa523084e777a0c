"""Simulated pods and processes keep the contract of `SlotRuntime`."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.contract.slot_runtime import Run, SlotRuntimeContract, World
from tests.fakes import vtime
from tests.fakes.orders import STANDIN
from tests.fakes.runtime import FakeRuntime

from pageslots.control.ports import PodView
from pageslots.local.runtime import ProcessRuntime
from pageslots.simulate.world import SimulatedRuntime


class TestSimulatedPods(SlotRuntimeContract):
    @pytest.fixture
    def run(self) -> Run:
        def run(scenario: Callable[[World], Awaitable[None]]) -> None:
            async def main() -> None:
                runtime = SimulatedRuntime()

                async def crash(pod: PodView) -> None:
                    runtime.crash(pod.namespace, pod.name)

                await scenario(World(runtime, crash))

            vtime.run(main())

        return run


class TestSimulatedPodsBehindFaultsThatNeverHappen(SlotRuntimeContract):
    @pytest.fixture
    def run(self) -> Run:
        def run(scenario: Callable[[World], Awaitable[None]]) -> None:
            async def main() -> None:
                runtime = FakeRuntime()

                async def crash(pod: PodView) -> None:
                    runtime.world.crash(pod.namespace, pod.name)

                await scenario(World(runtime, crash))

            vtime.run(main())

        return run


class TestProcesses(SlotRuntimeContract):
    @pytest.fixture
    def run(self, tmp_path: Path) -> Run:
        def run(scenario: Callable[[World], Awaitable[None]]) -> None:
            async def main() -> None:
                runtime = ProcessRuntime(tmp_path, scratch_root=tmp_path / "scratch", agent_command=STANDIN)

                async def crash(pod: PodView) -> None:
                    pid = runtime.agent_pid(pod)
                    assert pid is not None
                    os.kill(pid, signal.SIGKILL)

                async with runtime:
                    await scenario(World(runtime, crash))

            asyncio.run(main())

        return run
