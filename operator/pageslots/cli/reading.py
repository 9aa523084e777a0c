"""Reading what a run has written, while it is being written too.

A request's folder is `<output>/<name>/`, those of the children of a parallel one are below it. Records count when
`_done.json` names their part, or, before the end, when the newest whole checkpoint does; other parts are leftovers
of attempts that were cut off. A void checkpoint, from which a further attempt would start over, counts too: if it is
the last one its records tell why the request failed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pageslots_agent.checkpoint import Checkpoint, CheckpointError, read

DONE = "_done.json"
TRIES = 5
"""Looks at a folder that changes between listing and reading."""
_CHECKPOINT = re.compile(r"_frontier-(?P<owner>[0-9a-f]{8})\.(?P<attempt>\d+)-(?P<seq>\d+)")


class UnreadableError(Exception):
    """A file that should hold results doesn't; the text says which."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What counts in one request's folder: the parts, and the records in them. `outcome` is None before the end."""

    path: Path
    parts: tuple[Path, ...]
    records: int
    outcome: str | None

    @property
    def is_finished(self) -> bool:
        """Whether the request has ended with all of this."""
        return self.outcome is not None


@dataclass(frozen=True, slots=True)
class Results:
    """A request's results: its own folder, or those of its children."""

    path: Path
    folders: tuple[Folder, ...]

    @property
    def name(self) -> str:
        """The request's."""
        return self.path.name

    @property
    def records(self) -> int:
        """How many there are."""
        return sum(folder.records for folder in self.folders)

    @property
    def is_finished(self) -> bool:
        """Whether no more will come."""
        return all(folder.is_finished for folder in self.folders)

    def lines(self) -> Iterator[bytes]:
        """The records, each a line of JSON with its line end."""
        for folder in self.folders:
            for part in folder.parts:
                with part.open("rb") as file:
                    yield from file

    def rows(self) -> Iterator[dict[str, Any]]:
        """The records; raises UnreadableError."""
        for folder in self.folders:
            for part in folder.parts:
                with part.open("rb") as file:
                    for number, line in enumerate(file, 1):
                        yield _record(line, part, number)


def _record(line: bytes, part: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise UnreadableError(f"{part}:{number} is not a record")
    return record


def names(output: Path) -> list[str]:
    """The requests that have a folder in an output, sorted."""
    if not output.is_dir():
        return []
    return sorted(path.name for path in output.iterdir() if path.is_dir() and results_in(path))


def results_in(path: Path) -> bool:
    """Whether a folder is one of results, of a request or of its children."""
    return _is_folder(path) or any(_is_folder(child) for child in _children(path))


def open_results(path: Path) -> Results:
    """The results in a request's folder; raises UnreadableError."""
    folders = [path] if _is_folder(path) else [child for child in _children(path) if _is_folder(child)]
    return Results(path, tuple(_look(folder) for folder in folders))


def _children(path: Path) -> list[Path]:
    """Folders of the children of a parallel request, in their order: `shop-2` before `shop-10`."""
    if not path.is_dir() or path.name.startswith("."):
        return []
    numbered = re.compile(rf"{re.escape(path.name)}-(\d+)")
    found = [(int(match[1]), child) for child in path.iterdir() if (match := numbered.fullmatch(child.name))]
    return [child for _, child in sorted(found)]


def _is_folder(path: Path) -> bool:
    if not path.is_dir() or path.name.startswith("."):
        return False
    return any(
        child.name == DONE or child.name.startswith(("part-", "_frontier-")) for child in path.iterdir()
    )


def _look(path: Path) -> Folder:
    """What counts now. A checkpoint may be replaced by a newer one while it is read: look again."""
    for _ in range(TRIES):
        try:
            if (path / DONE).exists():
                return _finished(path)
            return _unfinished(path)
        except FileNotFoundError:
            continue
    raise UnreadableError(f"{path} changes all the time: try again later")


def _finished(path: Path) -> Folder:
    try:
        done = json.loads((path / DONE).read_bytes())
        parts = tuple(path / _plain_name(part["name"]) for part in done["parts"])
        return Folder(path, parts, int(done["records"]), str(done["outcome"]))
    except (ValueError, KeyError, TypeError):
        raise UnreadableError(f"{path / DONE} is damaged: it doesn't say which parts count") from None


def _unfinished(path: Path) -> Folder:
    found = [
        (match["owner"], int(match["attempt"]), int(match["seq"]), child)
        for child in path.iterdir()
        if (match := _CHECKPOINT.fullmatch(child.name))
    ]
    for *_, newest in sorted(found, reverse=True):
        try:
            last = read(newest.read_bytes())
            chain = [read((path / _plain_name(name)).read_bytes()) for name in last.header.chain]
        except CheckpointError:
            continue  # cut off while it was written: the one before it counts
        return _counted(path, [*chain, last])
    return Folder(path, (), 0, None)


def _counted(path: Path, checkpoints: list[Checkpoint]) -> Folder:
    parts = [part for checkpoint in checkpoints for part in checkpoint.header.parts]
    files = tuple(path / _plain_name(part.name) for part in parts)
    return Folder(path, files, sum(part.records for part in parts), None)


def _plain_name(name: str) -> str:
    """A file's name as it stands in another file: it must not lead out of the folder."""
    if Path(name).name != name:
        raise UnreadableError(f"{name!r} is not the name of a file of results")
    return name
