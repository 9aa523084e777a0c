"""An `ObjectApi` that fails as networks and API servers do."""

from collections.abc import AsyncGenerator, Sequence

from tests.fakes.calls import FaultyLists, distorted_call, faulty_call, faulty_watch
from tests.fakes.faults import Faults

from pageslots.control.ports import Changed, JsonObject, Kind, ObjectApi, Synced


class FaultyApi:
    """Wraps an `ObjectApi`. Verbs: get, list, create, patch, delete; watches: event, sync."""

    def __init__(self, api: ObjectApi, faults: Faults) -> None:
        self.api = api
        self.faults = faults
        self._lists = FaultyLists()

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        return await faulty_call(self.faults, "get", name, lambda: self.api.get(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str | None = None) -> Sequence[JsonObject]:
        fault = self.faults.next("list", kind)
        objects = await distorted_call(
            fault, self.faults, "list", kind, lambda: self.api.list(kind, namespace)
        )
        return self._lists.distort((kind, namespace), objects, fault)

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        name = obj["metadata"]["name"]
        return await faulty_call(self.faults, "create", name, lambda: self.api.create(kind, obj))

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
        return await faulty_call(
            self.faults,
            "patch",
            name,
            lambda: self.api.patch(kind, namespace, name, patch, version=version, status=status),
        )

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str, version: str | None = None
    ) -> None:
        await faulty_call(
            self.faults,
            "delete",
            name,
            lambda: self.api.delete(kind, namespace, name, uid=uid, version=version),
        )

    def watch(self, kind: Kind, namespace: str | None = None) -> AsyncGenerator[Synced | Changed]:
        key = ("watch", kind, namespace)
        return faulty_watch(
            self.faults,
            "",
            kind,
            lambda: self.api.watch(kind, namespace),
            lambda event, fault: Synced(self._lists.distort(key, event.objects, fault)),
            synced=Synced,
        )
