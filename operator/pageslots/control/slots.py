"""Page slots as objects: created by name, deleted as seen."""

from contextlib import suppress

from pageslots.control.context import Context
from pageslots.control.names import API_VERSION, POOL_LABEL, Key, owner_reference, slot_name
from pageslots.control.ports import Kind, NotFoundError
from pageslots.core import actions
from pageslots.core.index import Index


class Slots:
    """The PageSlot objects of one pool."""

    def __init__(self, context: Context, pool: Key, index: Index) -> None:
        self._context = context
        self._pool = pool
        self._index = index

    async def create(self, deed: actions.CreateSlot) -> None:
        """Create the slot's object, owned by the pool; the name is the cap on their number (I5)."""
        context = self._context
        owner = context.cache.get(Kind.POOL, self._pool)
        if owner is None:
            return  # the pool is gone: no new slots
        slot = await context.api.create(
            Kind.SLOT,
            {
                "apiVersion": API_VERSION,
                "kind": Kind.SLOT.value,
                "metadata": {
                    "namespace": self._pool.namespace,
                    "name": slot_name(self._pool.name, deed.number),
                    "labels": {POOL_LABEL: self._pool.name},
                    "ownerReferences": [owner_reference(owner)],
                },
                "spec": {"poolName": self._pool.name, "country": deed.country},
            },
        )
        context.intake.observe(Kind.SLOT, slot)

    async def delete(self, deed: actions.DeleteSlot) -> None:
        """Delete the slot's object as seen: one that has got a page since then has another status."""
        context = self._context
        known = context.cache.by_uid(deed.slot)
        if known is None:
            return
        with suppress(NotFoundError):  # gone already, which is what was asked for
            await context.api.delete(
                Kind.SLOT,
                self._pool.namespace,
                known["metadata"]["name"],
                uid=deed.slot,
                version=deed.seen,
            )
        context.intake.forget(Kind.SLOT, known)
