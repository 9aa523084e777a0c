"""What a store's file says when it can't be used."""

import sqlite3
from pathlib import Path

from pageslots.local.storefile import _unreadable


def test_a_full_disk_is_told_as_one_and_not_as_a_damaged_file(tmp_path: Path):
    """Case U2."""
    error = _unreadable(tmp_path / "state.sqlite", sqlite3.OperationalError("database or disk is full"))

    assert "free some room" in str(error)
    assert "--fresh" not in str(error)


def test_a_damaged_file_names_the_way_out(tmp_path: Path):
    error = _unreadable(tmp_path / "state.sqlite", sqlite3.DatabaseError("file is not a database"))

    assert "--fresh" in str(error)
