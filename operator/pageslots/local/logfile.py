"""A slot's log: what its processes print, in a file of bounded size.

The processes write straight to the file, so that what they say last survives whoever started them; the size
is looked at every few seconds and cut then.
"""

import os
import shutil
from pathlib import Path

LIMIT_BYTES = 1024 * 1024
_TAIL_BYTES = 4096


class LogFile:
    """`<name>.log`, with the part before it in `<name>.log.1`: together at most about twice the limit."""

    def __init__(self, path: Path, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self.path = path
        self._limit_bytes = limit_bytes
        self._old = path.with_name(path.name + ".1")

    def begin(self) -> int:
        """Put the log of an earlier life aside; a descriptor to write to, which the caller closes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            self.path.replace(self._old)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | os.O_CLOEXEC
        return os.open(self.path, flags, 0o600)

    def bound(self) -> None:
        """Cut the file when it has grown over the limit; writers go on at its new end (O_APPEND)."""
        if self.path.exists() and self.path.stat().st_size > self._limit_bytes:
            with self.path.open("rb") as source, self._old.open("wb") as target:
                source.seek(-self._limit_bytes, os.SEEK_END)
                shutil.copyfileobj(source, target)
            os.truncate(self.path, 0)

    def last_lines(self, count: int = 5, *, characters: int = 800) -> str:
        """The last lines that were printed, for a message; empty when nothing was."""
        if not self.path.exists():
            return ""
        with self.path.open("rb") as file:
            file.seek(max(self.path.stat().st_size - _TAIL_BYTES, 0))
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join([line for line in lines if line.strip()][-count:])[-characters:]
