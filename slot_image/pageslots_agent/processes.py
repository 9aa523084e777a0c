"""The agent's own child processes: what is left of a browser that did not close is ended by process id."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, deepest last; empty where they can't be listed."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = [pid]
    for one in found:
        found.extend(children.get(one, []))
    return found[1:]


def kill(pids: list[int]) -> None:
    """SIGKILL; those that are gone already are no error."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_own_children() -> int:
    """SIGKILL everything that this process started; returns how many."""
    own = descendants(os.getpid())
    kill(own)
    return len(own)


def _parents() -> list[tuple[int, int]]:
    proc = Path("/proc")
    if (proc / "self" / "stat").exists():
        return [pair for entry in proc.iterdir() if entry.name.isdigit() and (pair := _stat(entry))]
    listed = subprocess.run(  # macOS has no /proc
        ["/bin/ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False, timeout=5
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [(int(row[0]), int(row[1])) for row in rows if len(row) == 2]


def _stat(entry: Path) -> tuple[int, int] | None:
    try:
        text = (entry / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None  # ended while we looked
    # the command stands in parentheses and may hold anything, so read from its end on
    return int(entry.name), int(text.rpartition(")")[2].split()[1])
