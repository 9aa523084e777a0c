"""What a run tells about its slots: addresses, ends, memory, logs, and a recording of all of them."""

import asyncio
import errno
import json
import os
import stat
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.contract.slot_runtime import gone, in_phase
from tests.fakes.orders import STANDIN, an_order
from tests.fakes.processes import alive
from tests.fakes.vtime import until

from pageslots.control.ports import (
    AgentUnreachableError,
    ForbiddenError,
    NotFoundError,
    PodChanged,
    PodPhase,
    PodsSynced,
    UnavailableError,
)
from pageslots.local import guardian
from pageslots.local.lockfile import LockFile
from pageslots.local.processes import Table
from pageslots.local.runtime import ProcessRuntime
from pageslots.local.scratch import RunFolder, ScratchError

NAME = ("default", "shop-browser-0")


def a_runtime(folder: Path, **settings: object) -> ProcessRuntime:
    given = {"scratch_root": folder / "scratch", "agent_command": STANDIN} | settings
    return ProcessRuntime(folder, **given)  # type: ignore[arg-type]


def test_an_agent_that_ends_at_once_says_why(tmp_path: Path):
    """Case U2: what it printed last is in the pod's message."""

    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            await runtime.create(an_order(env={"STANDIN": "exits"}))
            pod = await in_phase(runtime, PodPhase.TERMINATED)

            assert "exit status 3" in pod.message
            assert "no such browser: /nowhere" in pod.message

    asyncio.run(scenario())


def test_a_slot_that_uses_more_memory_than_it_may_is_ended_and_says_so(tmp_path: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path, watch_seconds=0.05) as runtime:
            await runtime.create(
                an_order(
                    0, env={"STANDIN": "greedy,detached", "STANDIN_PIDS": f"{tmp_path}/p"}, memory_mib=100
                )
            )
            await runtime.create(an_order(1, env={"STANDIN": "greedy"}, memory_mib=400))
            await runtime.create(an_order(2, env={"STANDIN": "greedy"}))
            dead = await in_phase(runtime, PodPhase.TERMINATED, 0)

            assert dead.out_of_memory
            assert "more than its 100 MiB" in dead.message
            assert (await in_phase(runtime, PodPhase.RUNNING, 1)).out_of_memory is False
            assert (await in_phase(runtime, PodPhase.RUNNING, 2)).out_of_memory is False

    asyncio.run(scenario())


def test_a_log_is_bounded_while_it_is_written(tmp_path: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path, watch_seconds=0.05) as runtime:
            await runtime.create(an_order(env={"STANDIN": "chatty"}))
            await in_phase(runtime, PodPhase.RUNNING)
            log = tmp_path / "logs/default/shop-browser-0.log"
            old = log.with_name("shop-browser-0.log.1")
            mib = 1024 * 1024
            await until(lambda: old.exists() and log.stat().st_size <= mib)  # all 3 MB are printed by now

            assert old.stat().st_size <= 2 * mib  # it may be cut while it is being written
            last = log if log.stat().st_size else old
            assert last.read_text().splitlines()[-1].startswith("line 29999 ")

    asyncio.run(scenario())


def test_a_next_life_begins_a_log_of_its_own_and_keeps_the_last_one(tmp_path: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            first = await runtime.create(an_order(env={"STANDIN": "exits"}))
            await in_phase(runtime, PodPhase.TERMINATED)
            await runtime.delete(*NAME, uid=first.uid, grace_ms=0)
            await gone(runtime)
            await runtime.create(an_order())
            await in_phase(runtime, PodPhase.RUNNING)

            assert (tmp_path / "logs/default/shop-browser-0.log").read_text() == ""
            assert "/nowhere" in (tmp_path / "logs/default/shop-browser-0.log.1").read_text()

    asyncio.run(scenario())


@pytest.mark.parametrize(("word", "message"), [("silent", ""), ("garbled", "no usable address")])
def test_an_agent_without_an_address_stays_starting(tmp_path: Path, word: str, message: str):
    """startSeconds is control's to judge."""

    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            await runtime.create(an_order(env={"STANDIN": word}))
            async with aclosing(runtime.watch()) as events, asyncio.timeout(10):
                event = await anext(events)
                pod = event.pods[0] if isinstance(event, PodsSynced) else event.pod
                while message not in pod.message:
                    changed = await anext(events)
                    assert isinstance(changed, PodChanged)
                    pod = changed.pod

            assert (pod.phase, pod.reachable) == (PodPhase.STARTING, False)
            with pytest.raises(AgentUnreachableError, match="address"):
                await runtime.agent(pod).status(after=0, wait_seconds=0)

    asyncio.run(scenario())


def test_the_recording_proves_that_a_name_never_had_two_lives_at_once(tmp_path: Path):
    """Invariant I1, over everything that was started."""
    recording = tmp_path / "events.jsonl"

    async def churn(runtime: ProcessRuntime, number: int) -> None:
        for _ in range(3):
            pod = await runtime.create(an_order(number))
            await runtime.delete(pod.namespace, pod.name, uid=pod.uid, grace_ms=5_000)
            await gone(runtime, number)

    async def scenario() -> None:
        async with a_runtime(tmp_path, recording=recording) as runtime:
            await asyncio.gather(*(churn(runtime, number) for number in range(3)))

    asyncio.run(scenario())
    events = [json.loads(line) for line in recording.read_text().splitlines()]
    assert len(events) == 18
    assert all(isinstance(event["pid"], int) for event in events)
    living: dict[str, str] = {}
    for event in events:
        if event["event"] == "start":
            assert event["pod"] not in living
            living[event["pod"]] = event["uid"]
        else:
            assert living.pop(event["pod"]) == event["uid"]
    assert living == {}


def test_an_agent_that_can_not_be_started_leaves_its_name_free(tmp_path: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path, agent_command=["/nowhere/agent"]) as runtime:
            for _ in range(2):
                with pytest.raises(UnavailableError, match="/nowhere/agent"):
                    await runtime.create(an_order())
            with pytest.raises(NotFoundError):
                await runtime.get(*NAME)

    asyncio.run(scenario())


def test_a_machine_without_room_for_a_process_is_back_pressure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Case P12, as one machine has it."""

    async def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            with monkeypatch.context() as patched:
                patched.setattr(asyncio, "create_subprocess_exec", no_room)
                with pytest.raises(ForbiddenError, match="temporarily"):
                    await runtime.create(an_order())

    asyncio.run(scenario())


def test_nothing_is_started_once_the_run_ends(tmp_path: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            await runtime.shut_down(grace_ms=0)
            with pytest.raises(ForbiddenError):
                await runtime.create(an_order())

    asyncio.run(scenario())


def test_what_a_slot_is_told_can_be_read_by_nobody_else(tmp_path: Path):
    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            await runtime.create(an_order())
            [config] = runtime.run_folder.path.glob("*/config.json")
            told = json.loads(config.read_text())

            assert stat.S_IMODE(config.stat().st_mode) == 0o600
            assert stat.S_IMODE(runtime.run_folder.path.stat().st_mode) == 0o700
            assert told["pod_uid"] == (await runtime.get(*NAME)).uid
            assert told["scratch_dir"].startswith(str(runtime.run_folder.path))

    asyncio.run(scenario())


def test_the_guardian_needs_the_standard_library_alone(tmp_path: Path):
    """It lives as long as the run: what it imports, it costs."""
    command = guardian.command("nobody", tmp_path, 0)
    assert "-S" in command
    command[command.index("-c") + 1] += "; print(*sys.modules)"

    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)

    imported = {name.partition(".")[0] for name in ended.stdout.split()}
    assert imported - {"pageslots"} <= sys.stdlib_module_names | {"__main__"} | set(sys.builtin_module_names)
    assert "psutil" not in imported


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Case U2: a folder that another user has put in the way."""
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)

    with pytest.raises(ScratchError, match=r"belongs to somebody else.*TMPDIR"):
        RunFolder.create(tmp_path)


def test_a_file_in_the_way_is_refused(tmp_path: Path):
    (tmp_path / "scratch").write_text("")

    with pytest.raises(ScratchError, match="can't write here"):
        RunFolder.create(tmp_path / "scratch")


def test_a_frozen_guardian_does_not_keep_the_next_run_from_cleaning_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pageslots.local.scratch._GUARDIAN_SECONDS", 0.1)
    left = RunFolder.create(tmp_path)
    frozen = LockFile.acquire(left.path / guardian.LOCK_NAME)
    left._lock.release()

    RunFolder.create(tmp_path).remove()

    assert not left.path.exists()
    frozen.release()


def test_a_ctrl_c_in_the_terminal_is_for_the_run_alone(tmp_path: Path):
    """It goes to the terminal's session: slots and guardian have sessions of their own."""

    async def scenario() -> None:
        async with a_runtime(tmp_path) as runtime:
            pod = await runtime.create(an_order())
            for pid in (runtime.agent_pid(pod), runtime.guardian_pid):
                assert pid is not None
                assert os.getsid(pid) == pid

    asyncio.run(scenario())


def test_dead_orphans_do_not_pile_up_as_zombies(tmp_path: Path):
    """Without an init that reaps, whoever adopts orphans must."""

    async def scenario() -> None:
        pids = tmp_path / "pids"
        async with a_runtime(tmp_path, watch_seconds=0.05) as runtime:
            env = {"STANDIN": "orphan", "STANDIN_PIDS": str(pids)}
            await runtime.create(an_order(env=env))
            await in_phase(runtime, PodPhase.RUNNING)
            orphan = int(pids.read_text())
            assert alive([orphan]) == [orphan]
            os.kill(orphan, 9)
            await until(lambda: orphan not in Table.read().processes)

    asyncio.run(scenario())
