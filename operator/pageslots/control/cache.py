"""The newest known version of every object: watches and answers to our own writes meet here.

The newer resourceVersion wins, whatever comes first (resourceVersions are compared as integers, which
Kubernetes guarantees from 1.35 on and every API server has done before). A deleted UID stays dead: a late
event can't bring it back.
"""

from collections import OrderedDict
from collections.abc import Iterator

from pageslots.control.names import Key, key_of, uid_of
from pageslots.control.ports import JsonObject, Kind

TOMBSTONES = 50_000
"""How many deleted UIDs are remembered: more than a watch can be behind."""


def _number(obj: JsonObject) -> int:
    return int(obj["metadata"]["resourceVersion"])


class ObjectCache:
    """Objects by kind and key; objects are shared and never changed in place."""

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[Key, JsonObject]] = {kind: {} for kind in Kind}
        self._by_uid: dict[str, JsonObject] = {}
        self._dead: OrderedDict[str, None] = OrderedDict()

    def observe(self, kind: Kind, obj: JsonObject) -> bool:
        """Take over an object if it is news; False for what is known, older or dead."""
        key, uid = key_of(obj), uid_of(obj)
        if uid in self._dead:
            return False
        known = self._objects[kind].get(key)
        if known is not None and _number(known) >= _number(obj):
            return False
        if known is not None and uid_of(known) != uid:
            self._bury(uid_of(known))
        self._objects[kind][key] = obj
        self._by_uid[uid] = obj
        return True

    def forget(self, kind: Kind, obj: JsonObject) -> bool:
        """An object is gone for certain; False when its name belongs to another UID by now."""
        key, uid = key_of(obj), uid_of(obj)
        self._bury(uid)
        known = self._objects[kind].get(key)
        if known is None or uid_of(known) != uid:
            return False
        del self._objects[kind][key]
        return True

    def _bury(self, uid: str) -> None:
        self._by_uid.pop(uid, None)
        self._dead[uid] = None
        while len(self._dead) > TOMBSTONES:
            self._dead.popitem(last=False)

    def get(self, kind: Kind, key: Key) -> JsonObject | None:
        """The object of that name, if known."""
        return self._objects[kind].get(key)

    def by_uid(self, uid: str) -> JsonObject | None:
        """The living object of that UID, if known."""
        return self._by_uid.get(uid)

    def all(self, kind: Kind) -> Iterator[JsonObject]:
        """All known objects of a kind, as of now."""
        return iter(list(self._objects[kind].values()))
