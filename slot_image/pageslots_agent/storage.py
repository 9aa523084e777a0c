"""Where output goes: a folder of named files, written whole or not at all.

`Storage` is the port; `LocalFolder` keeps it on a disk. Calls block and are made aside of the event loop.
Names are ours (never a page's or a user's), and are checked nevertheless: nothing is written outside the
folder.
"""

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?\Z")
_TEMPORARY = ".pageslots-"


class StorageError(ValueError):
    """An output that can't be used at all; the text says what was expected."""


class Storage(Protocol):
    """Files by name, at most one folder deep. Every call may raise OSError, and may then be made again."""

    def prepare(self) -> None:
        """Make the folder ready; raises PermissionError or NotADirectoryError when it never will be."""
        ...

    def put_atomic(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file: afterwards it is there as a whole and survives a power cut, or nothing changed."""
        ...

    def get(self, name: str) -> bytes | None:
        """A file's content; None when there is none."""
        ...

    def list(self) -> list[str]:
        """Names of the files directly in the folder; empty when there is no folder yet."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file; nothing happens when there is none."""
        ...


class LocalFolder:
    """A folder on a disk of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._serial = 0

    def prepare(self) -> None:
        """See Storage."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(error.errno, "there is a file of that name", str(self._folder)) from None
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self._folder))

    def put_atomic(self, name: str, chunks: Iterable[bytes]) -> None:
        """See Storage."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._serial += 1
        temporary = path.parent / f"{_TEMPORARY}{os.getpid()}-{self._serial}"
        try:
            with temporary.open("wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(path.parent)

    def get(self, name: str) -> bytes | None:
        """See Storage."""
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def list(self) -> list[str]:
        """See Storage. Clears away what killed writers left half-written."""
        names = []
        try:
            for entry in os.scandir(self._folder):
                if entry.name.startswith(_TEMPORARY):
                    Path(entry.path).unlink(missing_ok=True)
                elif entry.is_file():
                    names.append(entry.name)
        except FileNotFoundError:
            return []
        return sorted(names)

    def delete(self, name: str) -> None:
        """See Storage."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        if not _NAME.match(name):
            raise StorageError(f"{name!r} is no name of an output file")
        return self._folder / name


def open_storage(uri: str) -> Storage:
    """The storage that an output's URI names; raises StorageError."""
    path = local_path(uri)
    if path is None:
        scheme = urlsplit(uri).scheme
        raise StorageError(f"output {uri!r}: the scheme {scheme!r} is not supported, use file://… or a path")
    if not path.is_absolute():
        raise StorageError(f"output {uri!r}: expected an absolute path")
    return LocalFolder(path)


def local_path(uri: str) -> Path | None:
    """The path that a `file:` URI or a plain path names; None for any other scheme."""
    if "://" not in uri and not uri.startswith("file:"):
        return Path(uri)
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))


def _sync(folder: Path) -> None:
    """Make a rename last (POSIX keeps it in the folder, not in the file)."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
