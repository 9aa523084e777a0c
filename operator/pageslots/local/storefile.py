"""The local store's file: one SQLite database that one process holds at a time.

Every write is one transaction in WAL mode with `synchronous=NORMAL`: once it returns it survives the end
of this process by any signal (the bytes are the kernel's); a power cut may take the last ones, and never
more than whole transactions.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pageslots.control.ports import JsonObject
from pageslots.local.lockfile import LockedError, LockFile

APPLICATION_ID = 0x50534C54  # "PSLT": what SQLite's header says this file is
FORMAT = 1
_SCHEMA = (
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE objects (uid TEXT PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
    "INSERT INTO counters VALUES ('version', 0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)


class StoreError(Exception):
    """The state of a run can't be used; the text says what to do."""


class StoreLockedError(StoreError):
    """Another run works on the same state; `pid` is its process."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid else "another process"
        super().__init__(f"{path}: in use by {holder}: wait until that run ends, or choose another --output")
        self.pid = pid


class StoreUnreadableError(StoreError):
    """The file is damaged, foreign, or out of reach."""


class StoreVersionError(StoreError):
    """The file was written by a newer version of this program."""


class StoreFile:
    """An open, locked database of objects by UID."""

    def __init__(self, path: Path, lock: LockFile, connection: sqlite3.Connection) -> None:
        self.path = path
        self._lock = lock
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Lock and open the file, made when missing; raises StoreError."""
        lock = _lock(path)
        try:
            return cls(path, lock, _connect(path))
        except BaseException:
            lock.release()
            raise

    @staticmethod
    @contextmanager
    def locked(path: Path) -> Iterator[LockFile]:
        """Hold the lock of a file that isn't open, to remove what belongs to it; raises StoreError."""
        lock = _lock(path)
        try:
            yield lock
        finally:
            lock.release()

    def load(self) -> tuple[int, list[tuple[str, JsonObject]]]:
        """The last version given, and (kind, object) of everything stored; StoreUnreadableError."""
        try:
            [[version]] = self._connection.execute("SELECT value FROM counters WHERE name = 'version'")
            rows = self._connection.execute("SELECT kind, body FROM objects").fetchall()
            return int(version), [(kind, json.loads(body)) for kind, body in rows]
        except (sqlite3.DatabaseError, ValueError) as error:
            raise _unreadable(self.path, error) from None

    def write(self, version: int, puts: Iterable[tuple[str, JsonObject]], deletes: Sequence[str]) -> None:
        """Store all of it or nothing; `deletes` are UIDs. sqlite3.Error: nothing was stored."""
        rows = [
            (obj["metadata"]["uid"], kind, json.dumps(obj, separators=(",", ":"), ensure_ascii=False))
            for kind, obj in puts
        ]
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            for row in rows:
                run("INSERT OR REPLACE INTO objects (uid, kind, body) VALUES (?, ?, ?)", row)
            for uid in deletes:
                run("DELETE FROM objects WHERE uid = ?", (uid,))
            run("UPDATE counters SET value = ? WHERE name = 'version'", (version,))
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file and let others have it."""
        self._connection.close()
        self._lock.release()


def _lock(path: Path) -> LockFile:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return LockFile.acquire(path.with_name(path.name + ".lock"))
    except LockedError as error:
        raise StoreLockedError(path, error.pid) from None
    except OSError as error:
        raise StoreUnreadableError(
            f"{path}: can't be written ({error.strerror}): choose a folder that you may write to"
        ) from None


def _unreadable(path: Path, error: Exception) -> StoreUnreadableError:
    if isinstance(error, sqlite3.OperationalError) and "disk" in str(error):
        return StoreUnreadableError(
            f"{path}: can't be written ({error}): free some room on its disk, or choose another --output"
        )
    return StoreUnreadableError(
        f"{path}: not a readable state of a run ({error}): move it away to start over, or use --fresh"
    )


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=5)
    except sqlite3.Error as error:
        raise _unreadable(path, error) from None
    try:
        _check(path, connection)
    except sqlite3.Error as error:
        connection.close()
        raise _unreadable(path, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _pragma(connection: sqlite3.Connection, statement: str) -> str | int:
    [[value]] = connection.execute(f"PRAGMA {statement}")
    assert isinstance(value, str | int)
    return value


def _tables(connection: sqlite3.Connection) -> Iterator[str]:
    return (name for [name] in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def _check(path: Path, connection: sqlite3.Connection) -> None:
    application, found = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    if application == 0 and found == 0 and not list(_tables(connection)):
        _pragma(connection, "journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("COMMIT")
    elif application != APPLICATION_ID:
        raise StoreUnreadableError(f"{path}: belongs to another program: choose another --output")
    elif int(found) > FORMAT:
        raise StoreVersionError(
            f"{path}: written by a newer pageslots (format {found}, this one reads {FORMAT}): "
            "upgrade pageslots, or choose another --output"
        )
    else:
        _pragma(connection, "journal_mode = WAL")
        if (verdict := _pragma(connection, "quick_check(1)")) != "ok":
            raise sqlite3.DatabaseError(str(verdict))
    connection.execute("PRAGMA synchronous = NORMAL")
