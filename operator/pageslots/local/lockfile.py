"""A lock that a process holds while it lives, whatever ends it.

The kernel drops `flock` locks with the last descriptor, so a lock file that can be locked belongs to
nobody alive: no guessing from process ids, which are reused. The holder's id is written into the file for
people only.
"""

import fcntl
import os
from pathlib import Path
from typing import Self


class LockedError(Exception):
    """Somebody holds the lock; `pid` is what they wrote into it (None: unreadable)."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path} is held by " + (f"process {pid}" if pid else "another process"))
        self.path = path
        self.pid = pid


class LockFile:
    """A held lock. Child processes do not inherit it (Python's descriptors close on exec)."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, path: Path) -> Self:
        """Take the lock at once, or raise LockedError; OSError when the file can't be made."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = os.read(descriptor, 32).strip()
            os.close(descriptor)
            raise LockedError(path, int(words) if words.isdigit() else None) from None
        except OSError:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return cls(path, descriptor)

    def release(self) -> None:
        """Drop the lock; again is fine. The file stays: removing it would race with the next holder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
