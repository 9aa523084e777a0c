"""The object store of one machine: what an API server is to a cluster.

Everything is in memory; with a file every write is in it before its caller goes on. Semantics are those
of custom resources: one growing resourceVersion, a status subresource, no event for a patch that changes
nothing, dependants deleted with their last owner. Objects that are handed out are shared and never
change: treat them as immutable (that is what makes a list of 10,000 cost nothing).
"""

import random
import re
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Self
from uuid import UUID

from pageslots.api import times
from pageslots.control.feed import Feed
from pageslots.control.ports import (
    AlreadyExistsError,
    Changed,
    Clock,
    ConflictError,
    InvalidError,
    JsonObject,
    Kind,
    NotFoundError,
    Synced,
    UnavailableError,
)
from pageslots.local.clock import WallClock
from pageslots.local.mergepatch import copy_json, merge_patch
from pageslots.local.storefile import StoreFile, StoreUnreadableError

Validate = Callable[[JsonObject, JsonObject | None], None]
"""Called with the object to be stored and the one before (None: created); raises InvalidError.

A part that a write leaves alone is the same object in both: `new["spec"] is old["spec"]`."""

Key = tuple[str, str]
"""Namespace and name."""

_WITH_STATUS = frozenset({Kind.POOL, Kind.SLOT, Kind.REQUEST})  # a Lease has neither status nor generation
_SYSTEM = ("uid", "generation", "creationTimestamp")  # written by the store alone
_PRECONDITIONS = ("uid", "resourceVersion")  # a patch that carries them must match
_NOT_SPEC = frozenset({"metadata", "status"})  # changes of everything else count as a new generation
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class LocalStore:
    """An `ObjectApi` in this process; `LocalStore()` keeps nothing, `LocalStore.open(path)` keeps all.

    `watch_limit`: changes that one watcher may leave unread before it gets a complete list instead.
    `seed`: makes the UIDs of a simulation the same in every run.
    """

    def __init__(
        self,
        file: StoreFile | None = None,
        *,
        clock: Clock | None = None,
        validate: Mapping[Kind, Validate] | None = None,
        watch_limit: int = 4_096,
        seed: int | None = None,
    ) -> None:
        self._file = file
        self._clock = clock or WallClock()
        self._validate = dict(validate or {})
        self._random = random.Random(seed)  # noqa: S311 -- UIDs are names, not secrets
        self._version = 0
        self._closed = False
        self._objects: dict[Kind, dict[Key, JsonObject]] = {kind: {} for kind in Kind}
        self._by_uid: dict[str, tuple[Kind, Key]] = {}
        self._dependants: dict[str, dict[str, None]] = {}  # owner's UID -> UIDs, in order of creation
        self._feeds: dict[Kind, Feed[Changed]] = {kind: Feed(limit=watch_limit) for kind in Kind}

    @classmethod
    def open(
        cls,
        path: Path | None,
        *,
        clock: Clock | None = None,
        validate: Mapping[Kind, Validate] | None = None,
        watch_limit: int = 4_096,
    ) -> Self:
        """The store kept in `path` (None: in memory only). Raises StoreError.

        What the file holds was valid when it was written and is not validated again.
        """
        file = None if path is None else StoreFile.open(path)
        try:
            store = cls(file, clock=clock, validate=validate, watch_limit=watch_limit)
            store._load()
        except BaseException:
            if file is not None:
                file.close()
            raise
        return store

    @property
    def version(self) -> int:
        """The last resourceVersion given: higher in every later run on the same file."""
        return self._version

    def close(self) -> None:
        """End all watches and let the file go; every later call raises UnavailableError."""
        if self._closed:
            return
        self._closed = True
        for feed in self._feeds.values():
            feed.close()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        """The object as it is now; NotFoundError."""
        return self._find(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str | None = None) -> Sequence[JsonObject]:
        """All objects of the kind (of one namespace), oldest first."""
        return self._list(kind, namespace)

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Store a new object; its status is dropped, as an API server does (kinds with a status)."""
        self._check_open()
        body = _copied(obj)
        if body.get("kind") != kind.value:
            raise InvalidError(f"expected kind {kind.value}, got {body.get('kind')!r}")
        metadata = body.get("metadata")
        if not isinstance(metadata, dict):
            raise InvalidError(f"{kind.value}: metadata is missing")
        key = _key(kind, metadata)
        if key in self._objects[kind]:
            raise AlreadyExistsError(f"{kind.value} {_path(key)} exists already")
        if kind in _WITH_STATUS:
            body.pop("status", None)
        version, now_ms = self._version + 1, self._clock.now_ms()
        body["metadata"] = metadata | {
            "uid": self._uid(version, now_ms),
            "resourceVersion": str(version),
            "creationTimestamp": times.from_micros(now_ms // 1_000 * 1_000_000),
        }
        if kind in _WITH_STATUS:
            body["metadata"]["generation"] = 1
        self._check_valid(kind, body, None)
        self._store(kind, body)
        self._collect(body)
        return body

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: JsonObject,
        *,
        version: str | None = None,
        status: bool = False,
    ) -> JsonObject:
        """Merge `patch` into the object; with `status` only what is below `/status` counts, else all else.

        The patch has the object's own shape in both cases: `{"status": {…}}`. One that changes nothing
        gives no new version and no event.
        """
        old = self._find(kind, namespace, name)
        if status and kind not in _WITH_STATUS:
            raise InvalidError(f"{kind.value} has no status")
        meta = old["metadata"]
        self._check_seen(kind, meta, uid=None, version=version)
        merged = _merged(old, _allowed(kind, patch, status=status))
        if merged is old:
            return old
        _check_identity(kind, old, merged)
        metadata = {**merged["metadata"], **{key: meta[key] for key in _SYSTEM if key in meta}}
        metadata["resourceVersion"] = str(self._version + 1)
        if "generation" in meta and any(
            merged.get(part) is not old.get(part) for part in (merged.keys() | old.keys()) - _NOT_SPEC
        ):
            metadata["generation"] = meta["generation"] + 1
        fresh = {**merged, "metadata": metadata}
        self._check_valid(kind, fresh, old)
        self._store(kind, fresh)
        self._collect(fresh)
        return fresh

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str, version: str | None = None
    ) -> None:
        """Delete exactly this object, and what nobody else owns of its dependants."""
        obj = self._find(kind, namespace, name)
        self._check_seen(kind, obj["metadata"], uid=uid, version=version)
        self._remove([uid, *self._orphans({uid})])

    def watch(self, kind: Kind, namespace: str | None = None) -> AsyncGenerator[Synced | Changed]:
        """`Synced` first, then every change in order; `Synced` again for a reader that fell behind."""
        self._check_open()
        wanted = None if namespace is None else _of_namespace(namespace)
        return self._feeds[kind].watch(lambda: Synced(self._list(kind, namespace)), wanted)

    def _load(self) -> None:
        if self._file is None:
            return
        self._version, stored = self._file.load()
        try:
            stored.sort(key=lambda item: item[1]["metadata"]["uid"])  # UIDs grow with time
            for kind, obj in stored:
                self._remember(Kind(kind), obj)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreUnreadableError(
                f"{self._file.path}: holds an object that is none ({error!r}): "
                "move it away to start over, or use --fresh"
            ) from None

    def _check_open(self) -> None:
        if self._closed:
            raise UnavailableError("the store is closed")

    def _find(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        self._check_open()
        try:
            return self._objects[kind][namespace, name]
        except KeyError:
            raise NotFoundError(f"{kind.value} {namespace}/{name} not found") from None

    def _list(self, kind: Kind, namespace: str | None) -> Sequence[JsonObject]:
        self._check_open()
        objects = self._objects[kind]
        if namespace is None:
            return tuple(objects.values())
        return tuple(obj for (where, _), obj in objects.items() if where == namespace)

    def _check_seen(self, kind: Kind, metadata: JsonObject, *, uid: str | None, version: str | None) -> None:
        where = f"{kind.value} {metadata['namespace']}/{metadata['name']}"
        if uid is not None and uid != metadata["uid"]:
            raise ConflictError(f"{where} has UID {metadata['uid']}, not {uid}")
        if version is not None and version != metadata["resourceVersion"]:
            raise ConflictError(f"{where} is at version {metadata['resourceVersion']}, not {version}")

    def _check_valid(self, kind: Kind, new: JsonObject, old: JsonObject | None) -> None:
        validate = self._validate.get(kind)
        if validate is not None:
            validate(new, old)

    def _uid(self, version: int, now_ms: int) -> str:
        """A UUID (version 7's layout) that sorts by creation, also within one millisecond.

        creationTimestamp has whole seconds: what is ordered by it and then by UID keeps the order in
        which one file's objects were created.
        """
        high = (now_ms & (1 << 48) - 1) << 16 | 0x7000 | (version >> 18 & 0xFFF)
        low = 0b10 << 62 | (version & (1 << 18) - 1) << 44 | self._random.getrandbits(44)
        return str(UUID(int=high << 64 | low))

    def _store(self, kind: Kind, obj: JsonObject) -> None:
        self._write([(kind, obj)], [])
        self._version += 1
        self._remember(kind, obj)
        self._feeds[kind].publish(Changed(obj))

    def _remove(self, uids: Sequence[str]) -> None:
        """Remove all of them as one write; each deletion has a version of its own, as every change."""
        self._write([], uids)
        for uid in uids:
            self._version += 1
            kind, key = self._by_uid.pop(uid)
            last = self._objects[kind].pop(key)
            for owner in _owners(last):
                self._forget_dependant(owner, uid)
            metadata = last["metadata"] | {"resourceVersion": str(self._version)}
            self._feeds[kind].publish(Changed({**last, "metadata": metadata}, deleted=True))

    def _write(self, puts: Sequence[tuple[Kind, JsonObject]], deletes: Sequence[str]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(self._version + len(puts) + len(deletes), puts, deletes)
        except sqlite3.Error as error:
            raise UnavailableError(f"{self._file.path}: nothing was written: {error}") from None

    def _remember(self, kind: Kind, obj: JsonObject) -> None:
        uid, key = obj["metadata"]["uid"], _key(kind, obj["metadata"])
        old = self._objects[kind].get(key)
        for owner in _owners(old) - _owners(obj) if old is not None else ():
            self._forget_dependant(owner, uid)
        for owner in _owners(obj):
            self._dependants.setdefault(owner, {})[uid] = None
        self._objects[kind][key] = obj
        self._by_uid[uid] = (kind, key)

    def _forget_dependant(self, owner: str, uid: str) -> None:
        dependants = self._dependants[owner]
        del dependants[uid]
        if not dependants:
            del self._dependants[owner]

    def _orphans(self, gone: set[str]) -> Sequence[str]:
        """Dependants, and theirs, that no owner is left of once `gone` are gone; owners first."""
        orphans: dict[str, None] = {}
        waiting = [*gone]
        while waiting:
            for uid in self._dependants.get(waiting.pop(), ()):
                kind, key = self._by_uid[uid]
                owners = _owners(self._objects[kind][key])
                alive = any(o in self._by_uid and o not in gone and o not in orphans for o in owners)
                if not alive and uid not in orphans and uid not in gone:
                    orphans[uid] = None
                    waiting.append(uid)
        return tuple(orphans)

    def _collect(self, obj: JsonObject) -> None:
        """Delete an object that was stored without a living owner, as a garbage collector does."""
        owners = _owners(obj)
        if owners and not any(owner in self._by_uid for owner in owners):
            uid = obj["metadata"]["uid"]
            self._remove([uid, *self._orphans({uid})])


def _copied(obj: JsonObject) -> JsonObject:
    try:
        body = copy_json(obj)
    except TypeError as error:
        raise InvalidError(str(error)) from None
    if not isinstance(body, dict):
        raise InvalidError("an object is expected")
    return body


def _merged(obj: JsonObject, patch: JsonObject) -> JsonObject:
    try:
        merged = merge_patch(obj, patch)
    except TypeError as error:
        raise InvalidError(str(error)) from None
    assert isinstance(merged, dict)
    return merged


def _path(key: Key) -> str:
    return "/".join(key)


def _key(kind: Kind, metadata: JsonObject) -> Key:
    namespace, name = metadata.get("namespace"), metadata.get("name")
    for field, value in (("namespace", namespace), ("name", name)):
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise InvalidError(f"{kind.value}: metadata.{field}: {value!r} is no name (a-z, 0-9, '-', '.')")
    assert isinstance(namespace, str)
    assert isinstance(name, str)
    return namespace, name


def _owners(obj: JsonObject) -> set[str]:
    return {reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()}


def _of_namespace(namespace: str) -> Callable[[Changed], bool]:
    return lambda change: change.object["metadata"]["namespace"] == namespace


def _allowed(kind: Kind, patch: JsonObject, *, status: bool) -> JsonObject:
    """The part of a patch that this subresource may change, with its preconditions."""
    if not status:
        return {key: value for key, value in patch.items() if key != "status" or kind not in _WITH_STATUS}
    seen = {key: value for key, value in (patch.get("metadata") or {}).items() if key in _PRECONDITIONS}
    return {"metadata": seen} | {key: value for key, value in patch.items() if key == "status"}


def _check_identity(kind: Kind, old: JsonObject, new: JsonObject) -> None:
    """What names an object can't be patched; a UID or version in a patch is a precondition."""
    before, after = old["metadata"], new.get("metadata")
    if not isinstance(after, dict):
        raise InvalidError(f"{kind.value} {before['name']}: metadata can't be removed")
    if any(old.get(field) != new.get(field) for field in ("apiVersion", "kind")):
        raise InvalidError(f"{kind.value} {before['name']}: apiVersion and kind can't be changed")
    for field in ("name", "namespace"):
        if after.get(field) != before[field]:
            raise InvalidError(f"{kind.value} {before['name']}: metadata.{field} can't be changed")
    for field in _PRECONDITIONS:
        if after.get(field, before[field]) != before[field]:
            raise ConflictError(
                f"{kind.value} {before['name']} has {field} {before[field]}, not {after[field]}"
            )
