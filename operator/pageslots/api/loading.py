"""Strict loading of manifests: every error of every file at once, each with its place.

What only the server sets (status, most of metadata) is ignored, so that the output of
`kubectl get -o yaml` can be loaded.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, BinaryIO, TypeVar

from pageslots.api.documents import Document, read_documents
from pageslots.api.faults import ManifestError, ManifestErrors, Path, Place, field_text
from pageslots.api.judging import Judge
from pageslots.api.meta import Kind
from pageslots.api.pool import PageSlotPool
from pageslots.api.request import CrawlRequest

MAX_FILE_BYTES = 8 * 1024 * 1024
"""About a minute of reading: more is a mistake, or belongs into `urlsFrom`."""
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
STDIN = "-"

K = TypeVar("K", bound=Kind)


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """An object and where it came from."""

    object: Kind
    label: str
    """What messages call it: `CrawlRequest "shop-sg"`."""
    file: str
    place: Place
    document: Document = field(repr=False, compare=False)
    base: Path = ()

    def error(self, path: Path, message: str) -> ManifestError:
        """An error at one of its fields."""
        place = self.document.place(self.base + path)
        return ManifestError(self.file, *place, self.label, field_text(path), message)


@dataclass(frozen=True, slots=True)
class LoadedManifests:
    """The objects of all files, in their order."""

    objects: tuple[LoadedObject, ...]

    @property
    def pools(self) -> tuple[PageSlotPool, ...]:
        """The pools among them."""
        return self._of(PageSlotPool)

    @property
    def requests(self) -> tuple[CrawlRequest, ...]:
        """The crawl requests among them."""
        return self._of(CrawlRequest)

    def _of(self, kind: type[K]) -> tuple[K, ...]:
        return tuple(loaded.object for loaded in self.objects if isinstance(loaded.object, kind))


def load_manifests(
    paths: Iterable[str | FilePath], *, files_must_exist: bool = True, stdin: BinaryIO | None = None
) -> LoadedManifests:
    """The objects of YAML or JSON files, of folders of them (not of folders below), or of stdin (`-`).

    A relative path in `urlsFrom.uri` is resolved against the manifest's folder; with
    `files_must_exist` the file must be there. ManifestErrors lists all that is wrong.
    """
    loader = _Loader(Judge(files_must_exist=files_must_exist), stdin or sys.stdin.buffer)
    given = [str(path) for path in paths]
    if not given:
        raise ManifestErrors([ManifestError("", 0, 0, "", "", "no file given")])
    for path in given:
        loader.load(path)
    if loader.errors:
        raise ManifestErrors(loader.errors)
    return LoadedManifests(tuple(loader.objects))


class _Loader:
    """Collects objects and errors, file by file."""

    def __init__(self, judge: Judge, stdin: BinaryIO) -> None:
        self.objects: list[LoadedObject] = []
        self.errors: list[ManifestError] = []
        self._judge = judge
        self._stdin = stdin
        self._seen: dict[tuple[str, str, str], LoadedObject] = {}

    def load(self, path: str) -> None:
        """One argument of the user: a file, a folder or `-`."""
        if path == STDIN:
            self._load_content("<stdin>", self._stdin.read(MAX_FILE_BYTES + 1), FilePath.cwd())
            return
        where = FilePath(path)
        files = [where]
        if where.is_dir():
            files = sorted(
                file for file in where.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file()
            )
            if not files:
                self._refuse(path, "a folder without .yaml, .yml or .json files")
        for file in files:
            try:
                with file.open("rb") as stream:
                    content = stream.read(MAX_FILE_BYTES + 1)
            except FileNotFoundError:
                self._refuse(str(file), "no such file")
            except OSError as error:
                self._refuse(str(file), f"can't be read: {error.strerror}")
            else:
                self._load_content(str(file), content, file.absolute().parent)

    def _refuse(self, file: str, message: str) -> None:
        """An error of a file as a whole."""
        self.errors.append(ManifestError(file, 0, 0, "", "", message))

    def _load_content(self, file: str, content: bytes, folder: FilePath) -> None:
        if len(content) > MAX_FILE_BYTES:
            advice = "put long lists of URLs into a file for urlsFrom"
            self._refuse(file, f"larger than {MAX_FILE_BYTES // 2**20} MiB; {advice}")
            return
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            start, wrong = error.start, content[error.start]
            line, column = content.count(b"\n", 0, start) + 1, start - content.rfind(b"\n", 0, start)
            self.errors.append(
                ManifestError(
                    file, line, column, "", "", f"not UTF-8 (byte 0x{wrong:02x}): save the file as UTF-8"
                )
            )
            return
        documents = list(read_documents(text))
        if not documents:
            self._refuse(file, "no objects in it")
        found: list[ManifestError] = []
        for document in documents:
            found += (
                ManifestError(file, *fault.place, "", field_text(fault.path), fault.message)
                for fault in document.faults
            )
            for base, value in _members(document):
                found += self._load_object(file, document, base, value, folder)
        self.errors += sorted(found, key=lambda error: (error.line, error.column))

    def _load_object(
        self, file: str, document: Document, base: Path, value: Any, folder: FilePath
    ) -> Iterator[ManifestError]:
        judgement = self._judge.judge(document, base, value, folder)
        for complaint in judgement.complaints:
            field_name = field_text(complaint.path)
            yield ManifestError(file, *complaint.place, judgement.label, field_name, complaint.message)
        if judgement.object is None:
            return
        loaded = LoadedObject(judgement.object, judgement.label, file, document.place(base), document, base)
        metadata = loaded.object.metadata
        before = self._seen.setdefault((loaded.object.kind, metadata.namespace, metadata.name), loaded)
        if before is not loaded:
            message = f"is there twice: the first one is {before.file}:{before.place.line}"
            yield loaded.error(("metadata", "name"), message)
        else:
            self.objects.append(loaded)


def _members(document: Document) -> Iterator[tuple[Path, Any]]:
    """The objects of a document: itself, or the items of a `List`."""
    value = document.value
    if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        yield from ((("items", number), item) for number, item in enumerate(value["items"]))
    elif value is not None:
        yield (), value
