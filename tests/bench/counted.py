"""An `ObjectApi` and a `SlotRuntime` that count the calls that change something, as an API server would see them."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence

from pageslots.control.ports import (
    AgentClient,
    Changed,
    JsonObject,
    Kind,
    ObjectApi,
    PodChanged,
    PodOrder,
    PodsSynced,
    PodView,
    SlotRuntime,
    Synced,
)


class CountedApi:
    """Counts by "verb Kind" ("patch PageSlot/status" for the status subresource)."""

    def __init__(self, api: ObjectApi, calls: Counter[str]) -> None:
        self._api = api
        self._calls = calls

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        """See `ObjectApi`."""
        return await self._api.get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str | None = None) -> Sequence[JsonObject]:
        """See `ObjectApi`."""
        return await self._api.list(kind, namespace)

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """See `ObjectApi`."""
        self._calls[f"create {kind.value}"] += 1
        return await self._api.create(kind, obj)

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
        """See `ObjectApi`."""
        self._calls[f"patch {kind.value}{'/status' if status else ''}"] += 1
        return await self._api.patch(kind, namespace, name, patch, version=version, status=status)

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str, version: str | None = None
    ) -> None:
        """See `ObjectApi`."""
        self._calls[f"delete {kind.value}"] += 1
        await self._api.delete(kind, namespace, name, uid=uid, version=version)

    def watch(self, kind: Kind, namespace: str | None = None) -> AsyncGenerator[Synced | Changed]:
        """See `ObjectApi`."""
        return self._api.watch(kind, namespace)


class CountedRuntime:
    """Counts "create Pod" and "delete Pod"."""

    def __init__(self, runtime: SlotRuntime, calls: Counter[str]) -> None:
        self._runtime = runtime
        self._calls = calls

    @property
    def absence_is_end(self) -> bool:
        """See `SlotRuntime`."""
        return self._runtime.absence_is_end

    async def create(self, order: PodOrder) -> PodView:
        """See `SlotRuntime`."""
        self._calls["create Pod"] += 1
        return await self._runtime.create(order)

    async def get(self, namespace: str, name: str) -> PodView:
        """See `SlotRuntime`."""
        return await self._runtime.get(namespace, name)

    async def list(self) -> Sequence[PodView]:
        """See `SlotRuntime`."""
        return await self._runtime.list()

    async def delete(self, namespace: str, name: str, *, uid: str, grace_ms: int) -> None:
        """See `SlotRuntime`."""
        self._calls["delete Pod"] += 1
        await self._runtime.delete(namespace, name, uid=uid, grace_ms=grace_ms)

    def watch(self) -> AsyncGenerator[PodsSynced | PodChanged]:
        """See `SlotRuntime`."""
        return self._runtime.watch()

    def agent(self, pod: PodView) -> AgentClient:
        """See `SlotRuntime`."""
        return self._runtime.agent(pod)
