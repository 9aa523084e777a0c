"""One life of a slot's process tree: from its start until nothing of it is left.

    Pending → Starting (the agent runs) → Running (it listens) → Terminated (no process is left) → gone

The agent that ends by itself stays listed as Terminated until somebody deletes it, as a pod with
`restartPolicy: Never` does. Whatever happens, the rest of its tree is killed before Terminated is said.
"""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from pageslots.control.ports import Clock, PodOrder, PodPhase, PodView
from pageslots.local.logfile import LogFile
from pageslots.local.processes import POD_MARKER, RUN_MARKER, Family, Table, end, memory_kib

STUCK_SECONDS = 5.0
"""After this long a SIGKILL without effect is told: such a process waits in the kernel, for a disk mostly."""
_READY_LINE_BYTES = 4096
_POLL_SECONDS = 0.05


class SlotProcess:
    """A pod: an agent's process and all that it starts.

    `on_change(view)` is called at each change. `started` is done when the process runs, or holds the OSError.
    """

    def __init__(
        self,
        order: PodOrder,
        uid: str,
        *,
        run: str,
        folder: Path,
        log: LogFile,
        clock: Clock,
        on_change: Callable[[PodView], None],
    ) -> None:
        scratch = str(folder / "scratch")
        self.order = replace(order, config=replace(order.config, pod_uid=uid, scratch_dir=scratch))
        self.log = log
        self.family = Family((POD_MARKER, uid))
        self.address: str | None = None
        self.pid: int | None = None
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._run = run
        self._folder = folder
        self._clock = clock
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._asked = asyncio.Event()  # somebody wants it to end
        self._kill_at = 0.0  # loop time; counts once asked
        self._out_of_memory = ""
        now_ms = clock.now_ms()
        self.view = PodView(
            namespace=order.namespace,
            name=order.name,
            uid=uid,
            pool=order.pool,
            pool_uid=order.pool_uid,
            number=order.number,
            owner_uid=order.slot_uid,
            owner_name=order.slot_name,
            phase=PodPhase.PENDING,
            created=now_ms,
            scheduled=now_ms,  # this machine has room: memory is watched, not reserved
            revision=order.revision,
        )

    def begin_end(self, grace_ms: int) -> None:
        """Begin the end: SIGTERM, after the grace SIGKILL. Again, with less grace: sooner."""
        kill_at = self._loop.time() + grace_ms / 1_000
        if self._asked.is_set():
            self._kill_at = min(self._kill_at, kill_at)
            return
        self._kill_at = kill_at
        self._asked.set()
        self._change(deleting=self._clock.now_ms())

    async def live(self, command: Sequence[str]) -> None:
        """The whole life; returns when nothing is left, the folder included."""
        ready, parent = os.pipe(), os.pipe()
        try:
            try:
                process = await self._start(command, ready_fd=ready[1], parent_fd=parent[0])
            finally:
                os.close(ready[1])
                os.close(parent[0])
        except OSError as error:
            os.close(ready[0])
            os.close(parent[1])
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
            self.started.set_exception(error)
            return
        try:
            self.started.set_result(None)
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._listen(ready[0]))
                await self._until_ended(tasks.create_task(process.wait()))
                listening.cancel()
        finally:
            os.close(parent[1])  # an agent that lives, whatever went wrong here, ends by this
        self._change(
            phase=PodPhase.TERMINATED,
            reachable=False,
            message=self._why(process.returncode),
            out_of_memory=bool(self._out_of_memory),
        )
        await self._asked.wait()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def kill_for_memory(self, used_mib: int) -> None:
        """It uses more than it may: end all of it at once."""
        self._out_of_memory = f"used {used_mib} MiB of memory, more than its {self.order.memory_mib} MiB"
        self.family.kill()

    def rss_mib(self, table: Table) -> int:
        """Memory of the living members in MiB, shared pages counted once per process: never too little."""
        return memory_kib(self.family.look(table).values(), exact=False) // 1024

    def pss_mib(self) -> int:
        """Memory in MiB, shared pages counted in proportion. May take tens of milliseconds."""
        return memory_kib(list(self.family.members.values()), exact=True) // 1024

    async def _start(
        self, command: Sequence[str], *, ready_fd: int, parent_fd: int
    ) -> asyncio.subprocess.Process:
        config = self._folder / "config.json"
        config.touch(mode=0o600)  # it holds the token and the proxies' credentials
        config.write_bytes(self.order.config.to_json())
        log = self.log.begin()
        arguments = ["--config", str(config), "--ready-fd", str(ready_fd), "--parent-fd", str(parent_fd)]
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    **self.order.env,
                    POD_MARKER: self.view.uid,
                    RUN_MARKER: self._run,
                },
                pass_fds=(ready_fd, parent_fd),
                start_new_session=True,  # a Ctrl-C in the terminal is for the run alone
            )
        finally:
            os.close(log)
        self.pid = self.family.root = process.pid
        self.family.look(Table.read())
        self._change(phase=PodPhase.STARTING)
        return process

    async def _listen(self, ready_fd: int) -> None:
        """Wait for the agent's address; without one it stays Starting, for control to judge."""
        reader = asyncio.StreamReader(limit=_READY_LINE_BYTES)
        file: IO[bytes] = os.fdopen(ready_fd, "rb", buffering=0)
        pipe: asyncio.BaseTransport | IO[bytes] = file
        try:
            pipe, _ = await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
            line = await reader.readline()
            if not line:
                return  # it ended before it listened: its end tells why
            told = json.loads(line)
            self.address = f"http://{told['host']}:{told['port']}"
        except (ValueError, KeyError, TypeError):
            self._change(message=f"the agent told no usable address on its ready pipe: {line[:200]!r}")
        else:
            self.family.look(Table.read())
            self._change(phase=PodPhase.RUNNING, reachable=True)
        finally:
            pipe.close()

    async def _until_ended(self, exited: asyncio.Task[int]) -> None:
        """Until no process is left: the agent ended by itself, or was asked to and got its grace."""
        asked = asyncio.create_task(self._asked.wait())
        try:
            await asyncio.wait({exited, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        if not exited.done():
            if self.pid in self.family.members:
                end(self.family.members[self.pid], signal.SIGTERM)
            while not exited.done() and self._loop.time() < self._kill_at:
                rest = self._kill_at - self._loop.time()
                await asyncio.wait({exited}, timeout=min(max(rest, 0), _POLL_SECONDS))
        self.address = None
        await self._kill_all()
        await exited

    async def _kill_all(self) -> None:
        delay, stuck_at = 0.005, self._loop.time() + STUCK_SECONDS
        while not self.family.kill():
            await asyncio.sleep(delay)
            delay = min(delay * 2, 1.0)
            if self._loop.time() > stuck_at:
                stuck_at = float("inf")
                pids = ", ".join(str(pid) for pid in sorted(self.family.members))
                self._change(
                    message=f"SIGKILL has no effect on process {pids}: is a disk or a mount hanging?"
                )

    def _why(self, status: int | None) -> str:
        if self._out_of_memory:
            return self._out_of_memory
        if self._asked.is_set():
            return ""
        how = f"with exit status {status}"
        if status is not None and status < 0:
            how = f"by signal {signal.Signals(-status).name}"
        last = self.log.last_lines()
        return f"the agent ended {how}" + (f"; it said last:\n{last}" if last else f"; see {self.log.path}")

    def _change(
        self,
        *,
        phase: PodPhase | None = None,
        deleting: int | None = None,
        message: str | None = None,
        reachable: bool | None = None,
        out_of_memory: bool | None = None,
    ) -> None:
        before = self.view
        self.view = replace(
            before,
            phase=phase or before.phase,
            deleting=before.deleting if deleting is None else deleting,
            message=before.message if message is None else message,
            reachable=before.reachable if reachable is None else reachable,
            out_of_memory=before.out_of_memory if out_of_memory is None else out_of_memory,
        )
        self._on_change(self.view)
