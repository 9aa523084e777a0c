"""Which processes belong to a slot, and how all of them are ended.

A browser is a dozen processes, and no single sign finds them all: Playwright's driver starts Chromium in a
session of its own, so a process group is not enough; Chromium's zygotes write their title over the
environment, so a marker variable is not enough; a parent that dies leaves orphans, so the tree is not
enough. A process is a slot's if its environment has the marker, or its parent is the slot's, or its session
was begun by the slot; and once it was seen to be, it stays so until it ends.

Standard library only on Linux: the guardian loads this file without site-packages. Elsewhere psutil reads
the process table (macOS shows the environment of one's own processes).
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

POD_MARKER = "PAGESLOTS_POD_UID"
RUN_MARKER = "PAGESLOTS_RUN"
PROC = Path("/proc")
_CLOCK_TICK = os.sysconf("SC_CLK_TCK")
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table. `started` tells two processes of one id apart."""

    pid: int
    parent: int
    session: int
    started: int
    zombie: bool


@dataclass(slots=True)
class Table:
    """The process table at one instant; environments are read when asked for, once."""

    processes: Mapping[int, Process]
    _markers: dict[int, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls) -> Self:
        """All processes of this machine."""
        if PROC.joinpath("self/stat").exists():
            found = (_read_stat(int(name)) for name in os.listdir(PROC) if name.isdigit())  # noqa: PTH208 -- fast
            return cls({process.pid: process for process in found if process is not None})
        return cls({process.pid: process for process in _psutil_table()})

    def marker(self, pid: int, name: str) -> str | None:
        """The value of a variable of ours in the environment that the process was started with."""
        if pid not in self._markers:
            self._markers[pid] = _environment(pid)
        return self._markers[pid].get(name)


def _environment(pid: int) -> Mapping[str, str]:
    """The variables of ours; none when the process is gone, or not ours to read."""
    if not PROC.joinpath("self/environ").exists():
        return _psutil_environment(pid)
    try:
        words = Path(PROC, str(pid), "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(
        word.decode(errors="replace").split("=", 1)
        for word in words
        if word.startswith(b"PAGESLOTS_") and b"=" in word
    )


def _read_stat(pid: int) -> Process | None:
    try:
        line = Path(PROC, str(pid), "stat").read_bytes()
    except OSError:
        return None  # ended since the folder was listed
    words = line[line.rindex(b")") + 2 :].split()  # the name before it may hold anything
    return Process(
        pid=pid,
        parent=int(words[1]),
        session=int(words[3]),
        started=int(words[19]),
        zombie=words[0] in (b"Z", b"X"),
    )


def _psutil_table() -> Iterator[Process]:
    import psutil  # noqa: PLC0415 -- not there for the guardian on Linux

    for process in psutil.process_iter():
        try:
            with process.oneshot():
                yield Process(
                    pid=process.pid,
                    parent=process.ppid(),
                    session=os.getsid(process.pid),
                    started=int(process.create_time() * _CLOCK_TICK),
                    zombie=process.status() == psutil.STATUS_ZOMBIE,
                )
        except (psutil.Error, OSError):
            continue  # ended, or not ours to look at


def _psutil_environment(pid: int) -> Mapping[str, str]:
    import psutil  # noqa: PLC0415 -- not there for the guardian on Linux

    try:
        return dict(psutil.Process(pid).environ())
    except (psutil.Error, OSError):
        return {}


def end(process: Process, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to exactly this process, not to a later one of its id."""
    try:
        if not hasattr(os, "pidfd_open"):
            os.kill(process.pid, number)
            return
        handle = os.pidfd_open(process.pid)
    except OSError:
        return  # gone
    try:
        now = _read_stat(process.pid)
        if now is not None and now.started == process.started:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass  # gone between the look and the signal
    finally:
        os.close(handle)


@dataclass(slots=True)
class Family:
    """The processes of one slot, or of one run: what was found last, and by what more are recognised.

    `marker`: variable and value in the environment. `root`: id of the first process, until it was seen.
    `sessions`: those that a member began, or whose beginner is gone; never one that a stranger leads.
    """

    marker: tuple[str, str]
    root: int | None = None
    members: dict[int, Process] = field(default_factory=dict)
    sessions: set[int] = field(default_factory=set)

    def look(self, table: Table) -> Mapping[int, Process]:
        """The living members. This program itself is never one."""
        processes, (name, value) = table.processes, self.marker
        if self.root is not None and (root := processes.get(self.root)) is not None:
            self.members[root.pid], self.root = root, None
        known = {pid for pid, process in self.members.items() if _is(processes.get(pid), process)}
        found = {
            pid
            for pid, process in processes.items()
            if pid in known or process.session in self.sessions or table.marker(pid, name) == value
        }
        excluded = {0, 1, os.getpid()}
        found = _with_descendants(found - excluded, processes) - excluded
        self.members = {pid: processes[pid] for pid in found if not processes[pid].zombie}
        self.sessions = {
            process.session
            for process in self.members.values()
            if process.session in found or process.session not in processes
        } - {0, os.getsid(0)}
        return self.members

    def kill(self) -> bool:
        """SIGKILL every member that can be found; True when none is left. Call again until then."""
        alive = self.look(Table.read())
        for process in alive.values():
            end(process)
        return not alive


def kill_all(family: Family, *, within_seconds: float) -> bool:
    """Kill a family from a program that may block; whether nothing is left."""
    stop = time.monotonic() + within_seconds
    while not family.kill():
        if time.monotonic() > stop:
            return False
        time.sleep(0.02)
    return True


def adopted(table: Table, *, but: Iterable[int]) -> list[Process]:
    """Orphans that became children of this process as their subreaper. `but`: children of its own.

    Only those of other sessions: a slot's processes are, and a child that somebody else in this program
    started is not.
    """
    me, own, owned = os.getpid(), os.getsid(0), set(but)
    return [p for p in table.processes.values() if p.parent == me and p.session != own and p.pid not in owned]


def reap(orphans: Iterable[Process]) -> None:
    """Take the exit status of dead orphans, so that they leave the process table."""
    for process in orphans:
        with suppress(ChildProcessError):  # somebody else was faster
            os.waitpid(process.pid, os.WNOHANG)


def adopt_orphans(*, adopt: bool = True) -> None:
    """Become the parent of orphaned descendants, so that they stay findable (Linux; elsewhere no effect).

    With `adopt` False they go to the system's init again, which reaps them: nobody here would.
    """
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 -- not needed by the guardian

        set_child_subreaper = 36
        ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, int(adopt), 0, 0, 0)


def memory_kib(members: Iterable[Process], *, exact: bool) -> int:
    """Memory of the processes together, in KiB: PSS when `exact` (slow: the kernel walks the page tables),
    else RSS, which counts shared pages once per process and is never less.
    """
    return sum(_pss_kib(member.pid) if exact else _rss_kib(member.pid) for member in members)


def _rss_kib(pid: int) -> int:
    if not PROC.joinpath("self/statm").exists():
        return _psutil_kib(pid, exact=False)
    try:
        return int(Path(PROC, str(pid), "statm").read_bytes().split()[1]) * _PAGE_KIB
    except OSError:
        return 0


def _pss_kib(pid: int) -> int:
    if not PROC.joinpath("self/smaps_rollup").exists():
        return _psutil_kib(pid, exact=True)
    try:
        rollup = Path(PROC, str(pid), "smaps_rollup").read_bytes()
        return int(rollup.split(b"Pss:", 1)[1].split(None, 1)[0])
    except (OSError, IndexError):
        return _private_kib(pid)


def _private_kib(pid: int) -> int:
    """What only this process has, for one whose page tables may not be read (a sandboxed renderer)."""
    try:
        _, resident, shared, *_ = Path(PROC, str(pid), "statm").read_bytes().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE_KIB


def _psutil_kib(pid: int, *, exact: bool) -> int:
    import psutil  # noqa: PLC0415 -- not there for the guardian on Linux

    try:
        process = psutil.Process(pid)
        used = process.memory_full_info().uss if exact else process.memory_info().rss
    except psutil.Error:
        return 0
    return int(used) // 1024


def _is(now: Process | None, before: Process) -> bool:
    return now is not None and now.started == before.started


def _with_descendants(roots: set[int], processes: Mapping[int, Process]) -> set[int]:
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found, waiting = set(roots), list(roots)
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(new)
        waiting.extend(new)
    return found
