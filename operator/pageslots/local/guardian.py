"""The process that cleans up after a run, whatever ended it.

A run that is killed by SIGKILL can do nothing any more: its agents notice the end of a pipe, but a frozen
or broken one does not. So each run has one tiny process beside it that holds the read end of another pipe.
When that ends, the slots get a short grace, then everything that carries the run's marker is killed, and the
run's scratch folder is removed. Started as `python -I -S` with the standard library alone.
"""

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

from pageslots.local.lockfile import LockedError, LockFile
from pageslots.local.processes import RUN_MARKER, Family, Table, kill_all

LOCK_NAME = "guardian.lock"
KILL_SECONDS = 30.0
IDLE_SECONDS = 2.0
"""How often the guardian looks who belongs to the run, while it has nothing else to do (5 ms of CPU)."""
_LOOK_SECONDS = 0.1


def command(run: str, folder: Path, grace_seconds: float) -> list[str]:
    """The command line of a run's guardian; its standard input is the pipe that it watches."""
    root = Path(__file__).parents[2]
    start = "import sys; sys.path.append(sys.argv[1]); from pageslots.local.guardian import main; main()"
    bare = ["-S"] if sys.platform == "linux" else []  # elsewhere the process table needs psutil
    return [sys.executable, "-I", *bare, "-c", start, str(root), run, str(folder), f"{grace_seconds:g}"]


def main() -> None:
    """Wait for the end of standard input, then clean up."""
    run, folder, grace_seconds = sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the run, whose end is what counts here
    os.chdir("/")
    with contextlib.suppress(LockedError, OSError):
        # Held until exit, so that the next run can wait for us. Not getting it changes nothing of our work:
        # the guardian before us may be about to end, or the disk full.
        LockFile.acquire(folder / LOCK_NAME)
    family = Family((RUN_MARKER, run))
    while not (select.select([0], [], [], IDLE_SECONDS)[0] and os.read(0, 4096) == b""):
        family.look(Table.read())  # who hides later, after its parent's end, is known by then
    clean_up(family, folder, grace_seconds)


def clean_up(family: Family, folder: Path, grace_seconds: float) -> bool:
    """End what is left of a run, gently at first, and remove its folder. Whether nothing is left."""
    stop = time.monotonic() + grace_seconds
    while family.look(Table.read()) and time.monotonic() < stop:
        time.sleep(_LOOK_SECONDS)
    gone = kill_all(family, within_seconds=KILL_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    return gone and not folder.exists()
