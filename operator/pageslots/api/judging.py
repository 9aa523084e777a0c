"""One JSON value of a manifest: the object that it is, or all that is wrong with it.

Stricter than `model_validate`, which also reads objects of newer versions: here an unknown field is a
typing mistake, and so is a field without a value.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from pageslots.api.documents import Document
from pageslots.api.expectations import Expectations
from pageslots.api.faults import Path, Place
from pageslots.api.meta import API_VERSION, Kind
from pageslots.api.pool import PageSlotPool
from pageslots.api.request import CrawlRequest
from pageslots.api.selectors import wrong_selectors
from pageslots.api.suggestions import nearest
from pageslots.api.wording import explain, show, unknown_field

_APPLIED_KINDS: dict[str, type[Kind]] = {"CrawlRequest": CrawlRequest, "PageSlotPool": PageSlotPool}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SERVER_METADATA = frozenset({"managedFields", "selfLink", "generateName", "deletionGracePeriodSeconds"})


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something wrong with an object, at a field of it."""

    path: Path
    place: Place
    message: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """`object` is None exactly when there are complaints. `label` is what messages call it."""

    label: str
    object: Kind | None
    complaints: tuple[Complaint, ...] = ()


class Judge:
    """Judges objects; `files_must_exist` is about the files that `urlsFrom` names."""

    def __init__(self, *, files_must_exist: bool) -> None:
        self._files_must_exist = files_must_exist
        self._expectations: dict[str, Expectations] = {}

    def judge(self, document: Document, base: Path, value: Any, folder: FilePath) -> Judgement:
        """The object at `base` of a document whose file is in `folder`."""
        if not isinstance(value, dict):
            message = f"{show(value)} is not an object with apiVersion, kind, metadata and spec"
            return Judgement("", None, (Complaint((), document.place(base), message),))
        name, kind = value.get("kind"), None
        metadata = value.get("metadata")
        called = metadata.get("name") if isinstance(metadata, dict) else None
        label = " ".join([str(name or "object"), *([f'"{called}"'] if called else [])])
        if isinstance(name, str):
            kind = _APPLIED_KINDS.get(name)
        if kind is None:
            path = ("kind",) if "kind" in value else ()
            return Judgement(
                label, None, (Complaint(path, document.place(base + path), _kind_message(name)),)
            )
        complaints, made = self._examine(kind, document, base, value, folder)
        complaints.sort(key=lambda complaint: complaint.place)
        return Judgement(label, None if complaints else made, tuple(complaints))

    def _examine(
        self, kind: type[Kind], document: Document, base: Path, value: dict[str, Any], folder: FilePath
    ) -> tuple[list[Complaint], Kind | None]:
        expectations = self._expectations.get(kind.__name__)
        if expectations is None:  # some 10 ms, so not for every object
            expectations = self._expectations[kind.__name__] = Expectations(kind)
        wanted = {key: found for key, found in value.items() if key != "status"}
        found: list[Complaint] = []
        if "apiVersion" not in value:
            found.append(
                Complaint(("apiVersion",), document.place(base), f"is missing; expected {API_VERSION}")
            )
        empty: set[Path] = set()
        for path, message, is_key in _strange_fields(wanted, (), expectations, empty):
            place = document.key_place(base + path) if is_key else document.place(base + path)
            found.append(Complaint(path, place, message))
        wanted = _without(wanted, empty)
        self._resolve_file(wanted, folder, found, document, base)
        made: Kind | None = None
        try:
            made = kind.model_validate(wanted)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                for path, message in explain(detail, expectations, document, base):
                    if not any(path == gap[: len(path)] or gap == path[: len(gap)] for gap in empty):
                        found.append(Complaint(path, document.place(base + path), message))
        if kind is CrawlRequest:
            found += (
                Complaint(path, document.place(base + path), message)
                for path, message in wrong_selectors(wanted)
            )
        return found, made

    def _resolve_file(
        self, value: dict[str, Any], folder: FilePath, found: list[Complaint], document: Document, base: Path
    ) -> None:
        """Make a relative `urlsFrom.uri` absolute, in place, and look whether the file is there."""
        match value:
            case {"spec": {"urlsFrom": {"uri": str(uri)} as urls_from}} if uri:
                pass
            case _:
                return
        if _SCHEME.match(uri) and not uri.startswith("file://"):
            return
        where = (folder / uri.removeprefix("file://")).absolute()
        if not uri.startswith("file://"):
            urls_from["uri"] = str(where)
        if self._files_must_exist and not where.is_file():
            path = ("spec", "urlsFrom", "uri")
            found.append(Complaint(path, document.place(base + path), f"there is no file {where}"))


def _kind_message(name: Any) -> str:
    known = ", ".join(_APPLIED_KINDS)
    if name is None:
        return f"kind is missing; expected one of {known}"
    if name == "PageSlot":
        return "page slots are made by their pool, not applied: set maxPageSlots of a PageSlotPool"
    meant = nearest(str(name), _APPLIED_KINDS)
    advice = f'did you mean "{meant}"?' if meant else f"expected one of {known}"
    return f"{show(name)} is an unknown kind; {advice}"


def _strange_fields(
    value: Any, path: Path, expectations: Expectations, empty: set[Path]
) -> Iterator[tuple[Path, str, bool]]:
    """Fields that the kind doesn't have, and fields without a value (noted in `empty`).

    Yields path, message, and whether the place is that of the key.
    """
    if isinstance(value, list):
        for number, entry in enumerate(value):
            if entry is None:
                empty.add((*path, number))
                yield (*path, number), "an entry without a value: give it one, or remove it", False
            else:
                yield from _strange_fields(entry, (*path, number), expectations, empty)
        return
    if not isinstance(value, dict):
        return
    known = expectations.fields(path)
    for key, inner in value.items():
        below = (*path, key)
        if known is not None and key not in known:
            if path != ("metadata",) or key not in _SERVER_METADATA:
                yield below, unknown_field(below, known), True
        elif inner is None:
            empty.add(below)
            if path != ("metadata",) or key != "creationTimestamp":
                yield below, "has no value: give it one, or remove it", True
        else:
            yield from _strange_fields(inner, below, expectations, empty)


def _without(value: Any, empty: set[Path], path: Path = ()) -> Any:
    """A copy without the empty fields, so that each is reported once; entries of lists keep their numbers."""
    if isinstance(value, dict):
        return {
            key: _without(inner, empty, (*path, key))
            for key, inner in value.items()
            if (*path, key) not in empty
        }
    if isinstance(value, list):
        return [_without(inner, empty, (*path, number)) for number, inner in enumerate(value)]
    return value
