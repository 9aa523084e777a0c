"""Where a run's slots write: one folder per run, removed with it, and those of crashed runs with the next.

<temporary folder>/pageslots-<user id>/run-<id>/      held by run.lock and guardian.lock while they live
    <n>/                                              the n-th process started: config.json and scratch/
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pageslots.local import guardian
from pageslots.local.lockfile import LockedError, LockFile
from pageslots.local.processes import RUN_MARKER, Family

LOCK_NAME = "run.lock"
_RUN_FOLDER = re.compile(r"run-([0-9a-f]{8})")
_ROOT_LOCK_SECONDS = 45.0
_GUARDIAN_SECONDS = 15.0


class ScratchError(Exception):
    """There is no place for the slots to write; the text says what to do."""


class RunFolder:
    """The folder of one run, which this process holds; `run` is the run's id."""

    def __init__(self, path: Path, run: str, lock: LockFile) -> None:
        self.path = path
        self.run = run
        self._lock = lock
        self._made = 0

    @classmethod
    def create(cls, root: Path | None = None) -> Self:
        """Clean up after runs that crashed, then make a folder. May block for seconds. ScratchError."""
        root = root or Path(tempfile.gettempdir()) / f"pageslots-{os.getuid()}"
        try:
            _make_root(root)
            with _locked(root):
                for folder in sorted(root.iterdir()):
                    if match := _RUN_FOLDER.fullmatch(folder.name):
                        _clean_up(folder, match[1])
                run = secrets.token_hex(4)
                path = root / f"run-{run}"
                path.mkdir(mode=0o700)
                return cls(path, run, LockFile.acquire(path / LOCK_NAME))
        except (OSError, LockedError) as error:
            raise ScratchError(
                f"{root}: slots can't write here ({error}): set TMPDIR to another folder"
            ) from None

    def slot_folder(self) -> Path:
        """A new empty folder; its path is short, because sockets below it may have only 104 bytes."""
        self._made += 1
        path = self.path / str(self._made)
        path.mkdir(mode=0o700)
        return path

    def remove(self) -> None:
        """Remove everything and let go."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def _make_root(root: Path) -> None:
    """Make the folder of all runs of this user, and make sure that it is nobody else's."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{root} belongs to somebody else")


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """One run at a time cleans up and makes its folder: none takes a newborn one for a dead one."""
    lock = _wait_for(root / "lock", _ROOT_LOCK_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _wait_for(path: Path, seconds: float) -> LockFile:
    stop = time.monotonic() + seconds
    while True:
        try:
            return LockFile.acquire(path)
        except LockedError:
            if time.monotonic() > stop:
                raise
        time.sleep(0.05)


def _clean_up(folder: Path, run: str) -> None:
    """Remove the folder of a run that is over; one that lives holds its lock, and is left alone."""
    try:
        lock = LockFile.acquire(folder / LOCK_NAME)
    except (LockedError, FileNotFoundError):
        return
    try:
        guarded = _wait_for(folder / guardian.LOCK_NAME, _GUARDIAN_SECONDS)
    except FileNotFoundError:
        return  # its guardian has just removed it
    except LockedError:
        guarded = None  # its guardian is frozen: do its work
    finally:
        lock.release()
    try:
        guardian.clean_up(Family((RUN_MARKER, run)), folder, grace_seconds=0)
    finally:
        if guarded is not None:
            guarded.release()
