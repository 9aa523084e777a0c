"""Real processes in tests: are they alive, wait until they are not, never leave one behind."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pageslots.local.processes import RUN_MARKER, Family, Table, kill_all


def alive(pids: Iterable[int]) -> list[int]:
    """Which of these processes run (a zombie does not)."""
    processes = Table.read().processes
    return [pid for pid in pids if pid in processes and not processes[pid].zombie]


def eventually(condition: Callable[[], bool], *, within_seconds: float = 20) -> None:
    """Look again and again until it holds; AssertionError after `within_seconds`."""
    end = time.monotonic() + within_seconds
    while not condition():
        assert time.monotonic() < end, f"not true within {within_seconds} s"
        time.sleep(0.02)


def of_run(run: str) -> list[int]:
    """Processes that carry the marker of a run, or descend from one that does."""
    return sorted(Family((RUN_MARKER, run)).look(Table.read()))


def pids_in(file: Path) -> list[int]:
    """The ids that stand-ins' detached processes have written."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def put_away(pids: Iterable[int], run: str | None = None) -> None:
    """Kill what a failed test left."""
    for pid in alive(pids):
        os.kill(pid, signal.SIGKILL)
    if run is not None:
        kill_all(Family((RUN_MARKER, run)), within_seconds=5)
