"""What is wrong with a manifest, where, and in words for the person who wrote it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Where a value is in a document: ("spec", "startUrls", 0)."""


class Place(NamedTuple):
    """A position in a file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ManifestError:
    """One thing to correct. `line` 0: the file as a whole. `object` is empty where none is known."""

    file: str
    line: int
    column: int
    object: str
    field: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        words = ": ".join(part for part in (self.object, self.field, self.message) if part)
        return f"{place}  {words}" if place else words


class ManifestErrors(Exception):  # noqa: N818 - a list of errors, not one
    """Everything that is wrong with the manifests, in the order of the files and their lines."""

    def __init__(self, errors: Iterable[ManifestError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


def field_text(path: Iterable[str | int]) -> str:
    """A path as people write it: `spec.startUrls[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
