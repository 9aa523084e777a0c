"""Permits as Leases: taken and freed by optimistic concurrency, never beside a pod that may exist."""

from pageslots.control.context import Context
from pageslots.control.instants import time_text
from pageslots.control.names import GRANTED_FOR, POOL_LABEL, SLOT_NAME, Key, browser_name, permit_name
from pageslots.control.ports import JsonObject, Kind, NotFoundError
from pageslots.core import actions
from pageslots.core.index import Index


class Permits:
    """The Leases of one pool."""

    def __init__(self, context: Context, pool: Key, index: Index) -> None:
        self._context = context
        self._pool = pool
        self._index = index

    async def take(self, deed: actions.TakePermit) -> None:
        """Write the slot into the Lease; does nothing when something of the pod's name is left (I2)."""
        if await self._pod_is_left(deed.number):
            return
        slot = self._index.slots.get(deed.slot)
        if slot is None:
            return  # deleted since: the permit stays free
        context, name = self._context, permit_name(self._pool.name, deed.number)
        now = time_text(context.clock.now_ms())
        annotations = {GRANTED_FOR: deed.granted_for.value, SLOT_NAME: slot.name}
        holding: JsonObject = {"holderIdentity": deed.slot, "acquireTime": now}
        context.leadership.check()
        if deed.seen is None:
            lease = await context.api.create(
                Kind.LEASE,
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {
                        "namespace": self._pool.namespace,
                        "name": name,
                        "labels": {POOL_LABEL: self._pool.name},
                        "annotations": annotations,
                    },
                    "spec": holding,
                },
            )
        else:
            lease = await context.api.patch(
                Kind.LEASE,
                self._pool.namespace,
                name,
                {"metadata": {"annotations": annotations}, "spec": holding},
                version=deed.seen,
            )
        context.intake.observe(Kind.LEASE, lease)

    async def free(self, deed: actions.FreePermit) -> None:
        """Empty or remove the Lease; does nothing when something of the pod's name is left (I2)."""
        if await self._pod_is_left(deed.number):
            return
        context, name = self._context, permit_name(self._pool.name, deed.number)
        known = context.cache.get(Kind.LEASE, Key(self._pool.namespace, name))
        context.leadership.check()
        if deed.remove:
            if known is None:
                return
            await context.api.delete(
                Kind.LEASE, self._pool.namespace, name, uid=known["metadata"]["uid"], version=deed.seen
            )
            context.intake.forget(Kind.LEASE, known)
            return
        emptied = {
            "metadata": {"annotations": {GRANTED_FOR: None, SLOT_NAME: None}},
            "spec": {"holderIdentity": None, "acquireTime": None},
        }
        lease = await context.api.patch(Kind.LEASE, self._pool.namespace, name, emptied, version=deed.seen)
        context.intake.observe(Kind.LEASE, lease)

    async def _pod_is_left(self, number: int) -> bool:
        """A live look at the pod's name; what is found becomes a fact."""
        name = browser_name(self._pool.name, number)
        try:
            pod = await self._context.runtime.get(self._pool.namespace, name)
        except NotFoundError:
            return False
        self._context.intake.pod_seen(pod)
        return True
