"""What every `ObjectApi` must do, second part: owners, lists, and watches."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from tests.contract.object_api import (
    NAMESPACE,
    OTHER,
    WITHIN_SECONDS,
    ApiContract,
    a_lease,
    a_pool,
    a_request,
    a_slot,
    meta,
    owned_by,
    until_gone,
)

from pageslots.control.ports import Changed, JsonObject, Kind, NotFoundError, ObjectApi, Synced


class Reader:
    """Reads one watch, each event within a bound."""

    def __init__(self, events: AsyncGenerator[Synced | Changed]) -> None:
        self._events = events

    async def next(self) -> Synced | Changed:
        async with asyncio.timeout(WITHIN_SECONDS):
            return await anext(self._events)

    async def synced(self) -> dict[str, JsonObject]:
        event = await self.next()
        assert isinstance(event, Synced)
        return {meta(obj)["name"]: obj for obj in event.objects}

    async def changed(self) -> Changed:
        event = await self.next()
        assert isinstance(event, Changed)
        return event


class ObjectEventsContract(ApiContract):
    """Owners, lists and watches."""

    def test_what_an_object_owns_goes_with_it_and_nothing_else(self, run):
        """Case U6."""

        async def scenario(api: ObjectApi) -> None:
            pool = await api.create(Kind.POOL, a_pool("shop"))
            slot = await api.create(Kind.SLOT, a_slot("owned", owner=pool))
            await api.create(Kind.REQUEST, a_request("owned-by-owned", owner=slot))
            await api.create(Kind.SLOT, a_slot("free"))
            await api.delete(Kind.POOL, NAMESPACE, "shop", uid=meta(pool)["uid"])

            await until_gone(api, Kind.SLOT, "owned")
            await until_gone(api, Kind.REQUEST, "owned-by-owned")
            await api.get(Kind.SLOT, NAMESPACE, "free")

        run(scenario)

    def test_an_object_of_two_owners_lives_as_long_as_one_of_them(self, run):
        async def scenario(api: ObjectApi) -> None:
            one = await api.create(Kind.POOL, a_pool("one"))
            two = await api.create(Kind.POOL, a_pool("two"))
            slot = a_slot("shared")
            references = [
                owned_by(owner)["ownerReferences"][0] | {"controller": False} for owner in (one, two)
            ]
            slot["metadata"]["ownerReferences"] = references
            witness = a_slot("witness", owner=one)
            await api.create(Kind.SLOT, slot)
            await api.create(Kind.SLOT, witness)

            await api.delete(Kind.POOL, NAMESPACE, "one", uid=meta(one)["uid"])
            await until_gone(api, Kind.SLOT, "witness")
            await api.get(Kind.SLOT, NAMESPACE, "shared")

            await api.delete(Kind.POOL, NAMESPACE, "two", uid=meta(two)["uid"])
            await until_gone(api, Kind.SLOT, "shared")

        run(scenario)

    def test_an_object_born_after_its_owner_died_does_not_stay(self, run):
        async def scenario(api: ObjectApi) -> None:
            pool = await api.create(Kind.POOL, a_pool("shop"))
            await api.delete(Kind.POOL, NAMESPACE, "shop", uid=meta(pool)["uid"])
            await api.create(Kind.SLOT, a_slot("late", owner=pool))

            await until_gone(api, Kind.SLOT, "late")

        run(scenario)

    def test_a_list_is_complete_and_of_one_namespace_when_asked(self, run):
        async def scenario(api: ObjectApi) -> None:
            for n in range(30):
                await api.create(Kind.LEASE, a_lease(f"permit-{n}"))
            await api.create(Kind.LEASE, a_lease("elsewhere", namespace=OTHER))

            here = {meta(lease)["name"] for lease in await api.list(Kind.LEASE, NAMESPACE)}
            everywhere = {meta(lease)["name"] for lease in await api.list(Kind.LEASE)}
            assert here == {f"permit-{n}" for n in range(30)}
            assert here | {"elsewhere"} <= everywhere
            assert list(await api.list(Kind.SLOT, NAMESPACE)) == []

        run(scenario)

    def test_a_watch_begins_with_everything_and_tells_every_change_in_order(self, run):
        async def scenario(api: ObjectApi) -> None:
            old = await api.create(Kind.LEASE, a_lease("old", "a"))
            async with aclosing(api.watch(Kind.LEASE, NAMESPACE)) as events:
                watch = Reader(events)
                assert await watch.synced() == {"old": old}

                new = await api.create(Kind.LEASE, a_lease("new", "b"))
                patched = await api.patch(Kind.LEASE, NAMESPACE, "new", {"spec": {"holderIdentity": "c"}})
                await api.create(Kind.LEASE, a_lease("unseen", namespace=OTHER))
                await api.create(Kind.SLOT, a_slot("unseen"))
                await api.delete(Kind.LEASE, NAMESPACE, "old", uid=meta(old)["uid"])

                assert await watch.changed() == Changed(new)
                assert await watch.changed() == Changed(patched)
                last = await watch.changed()
                assert last.deleted
                assert meta(last.object)["uid"] == meta(old)["uid"]
                assert int(meta(last.object)["resourceVersion"]) > int(meta(patched)["resourceVersion"])

        run(scenario)

    def test_watch_events_replay_to_exactly_what_a_list_says(self, run):
        async def scenario(api: ObjectApi) -> None:
            async with aclosing(api.watch(Kind.LEASE, NAMESPACE)) as events:
                watch = Reader(events)
                replayed = await watch.synced()
                for n in range(60):
                    name = f"permit-{n % 7}"
                    try:
                        seen = await api.get(Kind.LEASE, NAMESPACE, name)
                    except NotFoundError:
                        await api.create(Kind.LEASE, a_lease(name, str(n)))
                        continue
                    if n % 3:
                        change = {"spec": {"holderIdentity": str(n)}}
                        await api.patch(Kind.LEASE, NAMESPACE, name, change)
                    else:
                        await api.delete(Kind.LEASE, NAMESPACE, name, uid=meta(seen)["uid"])
                await api.create(Kind.LEASE, a_lease("end"))

                while "end" not in replayed:
                    event = await watch.changed()
                    if event.deleted:
                        del replayed[meta(event.object)["name"]]
                    else:
                        replayed[meta(event.object)["name"]] = event.object
            assert replayed == {meta(lease)["name"]: lease for lease in await api.list(Kind.LEASE, NAMESPACE)}

        run(scenario)

    def test_a_watch_of_all_namespaces_sees_them_all(self, run):
        async def scenario(api: ObjectApi) -> None:
            async with aclosing(api.watch(Kind.REQUEST)) as events:
                watch = Reader(events)
                await watch.synced()
                here = await api.create(Kind.REQUEST, a_request("crawl"))
                there = await api.create(Kind.REQUEST, a_request("crawl", namespace=OTHER))

                assert [await watch.changed(), await watch.changed()] == [Changed(here), Changed(there)]

        run(scenario)

    def test_dependants_deletions_are_told_to_those_who_watch(self, run):
        async def scenario(api: ObjectApi) -> None:
            pool = await api.create(Kind.POOL, a_pool("shop"))
            await api.create(Kind.SLOT, a_slot("owned", owner=pool))
            async with aclosing(api.watch(Kind.SLOT, NAMESPACE)) as events:
                watch = Reader(events)
                await watch.synced()
                await api.delete(Kind.POOL, NAMESPACE, "shop", uid=meta(pool)["uid"])

                event = await watch.changed()
                while not event.deleted:  # a server may mark the object before it removes it
                    event = await watch.changed()
                assert meta(event.object)["name"] == "owned"

        run(scenario)
