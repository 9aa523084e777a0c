"""However a slot, a run or its guardian ends: no process and no folder of it is left (case W2, W15)."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.contract.slot_runtime import gone, in_phase
from tests.fakes.orders import STANDIN, an_order
from tests.fakes.processes import alive, eventually, of_run, pids_in, put_away

from pageslots.control.ports import NotFoundError, PodPhase, PodView
from pageslots.local.runtime import ProcessRuntime

NAME = ("default", "shop-browser-0")
NASTY = "detached,titled,orphan"
"""Three processes that ignore SIGTERM, in sessions of their own: marked, without a marker, an orphan."""


def a_runtime(folder: Path) -> ProcessRuntime:
    return ProcessRuntime(folder, scratch_root=folder / "scratch", agent_command=STANDIN)


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """The file in which detached processes leave their ids; whatever a failed test left is put away."""
    file = tmp_path / "pids"
    yield file
    put_away(pids_in(file))


async def _started(runtime: ProcessRuntime, words: str, pids: Path) -> PodView:
    await runtime.create(an_order(env={"STANDIN": words, "STANDIN_PIDS": str(pids)}))
    return await in_phase(runtime, PodPhase.RUNNING)


def _agent(runtime: ProcessRuntime, pod: PodView) -> int:
    pid = runtime.agent_pid(pod)
    assert pid is not None
    return pid


def test_a_slot_that_ignores_sigterm_is_gone_after_its_grace(tmp_path: Path, pids: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            pod = await _started(runtime, f"stubborn,{NASTY}", pids)
            agent, begun = _agent(runtime, pod), asyncio.get_running_loop().time()
            assert len(alive([agent, *pids_in(pids)])) == 4

            await runtime.delete(*NAME, uid=pod.uid, grace_ms=500)
            while alive([agent, *pids_in(pids)]):
                await runtime.get(*NAME)  # never "not found" while anything of it lives
                await asyncio.sleep(0.005)
            await gone(runtime)
            assert asyncio.get_running_loop().time() - begun >= 0.5

    asyncio.run(scenario())


def test_a_slot_that_ends_in_order_gets_its_grace_and_takes_its_children_along(tmp_path: Path, pids: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            pod = await _started(runtime, NASTY, pids)
            await runtime.delete(*NAME, uid=pod.uid, grace_ms=60_000)
            await gone(runtime)

        assert pids.with_name("pids.ended").read_text() == "ended"
        assert alive(pids_in(pids)) == []

    asyncio.run(scenario())


def test_when_an_agent_is_killed_the_rest_of_its_tree_is_killed(tmp_path: Path, pids: Path):
    """Case W2."""

    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            pod = await _started(runtime, NASTY, pids)
            os.kill(_agent(runtime, pod), signal.SIGKILL)
            dead = await in_phase(runtime, PodPhase.TERMINATED)

            assert alive(pids_in(pids)) == []
            assert "SIGKILL" in dead.message
            assert not dead.out_of_memory
            assert not dead.reachable

    asyncio.run(scenario())


def test_a_frozen_agent_is_gone_after_its_grace(tmp_path: Path, pids: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            pod = await _started(runtime, NASTY, pids)
            agent = _agent(runtime, pod)
            os.kill(agent, signal.SIGSTOP)
            await runtime.delete(*NAME, uid=pod.uid, grace_ms=300)
            await gone(runtime)

            assert alive([agent, *pids_in(pids)]) == []

    asyncio.run(scenario())


def test_leaving_the_runtime_leaves_nothing(tmp_path: Path, pids: Path):
    async def scenario() -> tuple[str, Path, int | None]:
        async with a_runtime(tmp_path) as runtime:
            for number in range(3):
                env = {"STANDIN": f"stubborn,{NASTY}", "STANDIN_PIDS": str(pids)}
                await runtime.create(an_order(number, env=env))
            await in_phase(runtime, PodPhase.RUNNING, 2)
            return runtime.run_folder.run, runtime.run_folder.path, runtime.guardian_pid

    run, folder, guardian = asyncio.run(scenario())
    assert guardian is not None
    assert alive([guardian, *pids_in(pids), *of_run(run)]) == []
    assert not folder.exists()


def test_an_error_in_the_program_leaves_nothing_either(tmp_path: Path, pids: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            await _started(runtime, f"stubborn,{NASTY}", pids)
            raise KeyError("a bug")

    with pytest.raises((KeyError, ExceptionGroup)):
        asyncio.run(scenario())
    assert alive(pids_in(pids)) == []
    assert list((tmp_path / "scratch").glob("run-*")) == []


def test_a_cancelled_program_leaves_nothing_either(tmp_path: Path, pids: Path):
    """The second Ctrl-C cancels whatever waits for an orderly end."""

    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            await _started(runtime, f"stubborn,{NASTY}", pids)
            await runtime.shut_down(grace_ms=60_000)

    async def main() -> None:
        task = asyncio.create_task(scenario())
        async with asyncio.timeout(20):
            while len(pids_in(pids)) < 3:  # noqa: ASYNC110 -- another process writes it
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert alive(pids_in(pids)) == []


def test_shutting_down_again_with_less_grace_ends_the_wait(tmp_path: Path, pids: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            await _started(runtime, "stubborn", pids)
            gently = asyncio.create_task(runtime.shut_down(grace_ms=60_000))
            await asyncio.sleep(0)
            async with asyncio.timeout(10):
                await runtime.shut_down(grace_ms=0)
                await gently
            with pytest.raises(NotFoundError):
                await runtime.get(*NAME)

    asyncio.run(scenario())


@dataclass(slots=True)
class Run:
    """A run in a process of its own, so that it can be killed."""

    process: subprocess.Popen[bytes]
    run: str
    folder: Path
    guardian: int
    agents: list[int]
    pids: Path

    @property
    def all(self) -> list[int]:
        return [*self.agents, *pids_in(self.pids), *of_run(self.run)]

    def nothing_left(self) -> bool:
        return not alive([*self.all, self.guardian]) and not self.folder.exists()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Runs:
    """Starts runs, and puts away what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs: list[Run] = []

    def start(self, words: Sequence[str], *, guardian_grace_seconds: float = 0.5) -> Run:
        number = len(self._runs)
        pids = self.folder / f"pids-{number}"
        settings = {
            "folder": str(self.folder),
            "words": list(words),
            "pids": str(pids),
            "guardian_grace_seconds": guardian_grace_seconds,
        }
        command = [sys.executable, "-m", "tests.local.run_of_standins", json.dumps(settings)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        process.stdout.close()
        run = Run(process, told["run"], Path(told["folder"]), told["guardian"], told["agents"], pids)
        self._runs.append(run)
        return run

    def put_away(self) -> None:
        for run in self._runs:
            run.kill()
            put_away([run.guardian, *run.agents, *pids_in(run.pids)], run.run)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.put_away()


def test_when_a_run_is_killed_its_guardian_ends_everything(runs: Runs):
    """Orderly, stubborn and frozen agents, each with processes that hide."""
    run = runs.start(["detached,orphan", f"stubborn,{NASTY}", NASTY])
    os.kill(run.agents[2], signal.SIGSTOP)
    assert len(alive(run.all)) >= 11

    run.kill()

    eventually(run.nothing_left)


def test_when_a_run_is_killed_its_agents_get_a_short_grace(runs: Runs):
    """Case W15: the end of the parent is a graceful end for an agent that listens to it."""
    run = runs.start(["detached"], guardian_grace_seconds=30)

    run.kill()

    eventually(lambda: run.pids.with_name(run.pids.name + ".ended").exists())


def test_a_guardian_that_is_killed_is_replaced_and_its_successor_does_the_work(runs: Runs):
    run = runs.start([f"stubborn,{NASTY}"])
    os.kill(run.guardian, signal.SIGKILL)
    first = run.guardian

    def replaced() -> bool:
        found = [int(pid) for pid in (run.folder / "guardian.lock").read_text().split()]
        return bool(found) and found != [first] and alive(found) == found

    eventually(replaced)
    run.guardian = int((run.folder / "guardian.lock").read_text())
    assert alive(run.agents) == run.agents

    run.kill()

    eventually(run.nothing_left)


def test_signals_meant_for_the_run_do_not_end_its_guardian(runs: Runs):
    run = runs.start([f"stubborn,{NASTY}"])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(run.guardian, number)

    run.kill()

    eventually(run.nothing_left)


def test_when_a_run_and_its_guardian_are_killed_at_once_orderly_agents_end_by_themselves(runs: Runs):
    run = runs.start(["", ""])
    os.kill(run.guardian, signal.SIGKILL)
    run.kill()

    eventually(lambda: not alive(run.all))


def test_the_next_run_ends_what_a_killed_run_and_guardian_left(runs: Runs):
    dead = runs.start([f"stubborn,{NASTY}", NASTY])
    os.kill(dead.agents[1], signal.SIGSTOP)
    os.kill(dead.guardian, signal.SIGKILL)
    dead.kill()
    left = dead.all
    assert len(alive(left)) >= 8

    next_run = runs.start([""])

    assert alive(left) == []
    assert not dead.folder.exists()
    assert alive(next_run.agents) == next_run.agents


def test_two_runs_at_once_leave_each_other_alone(runs: Runs):
    one = runs.start(["detached,orphan"])
    two = runs.start(["detached,orphan"])
    assert one.folder.exists()

    two.kill()

    eventually(two.nothing_left)
    assert len(alive(one.all)) >= 3
    assert one.folder.exists()
