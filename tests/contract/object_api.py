"""What every `ObjectApi` must do: the suite that the local store and an API server both pass.

A provider is a callable that gives an asynchronous context manager of an empty `ObjectApi` (at least: empty
of the names used here, in the namespaces `NAMESPACE` and `OTHER`). Subclass `ObjectApiContract` and
`object_api_events.ObjectEventsContract`, override the fixture `provider`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from pageslots.control.ports import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    JsonObject,
    Kind,
    NotFoundError,
    ObjectApi,
)

NAMESPACE = "contract"
OTHER = "contract-other"
WITHIN_SECONDS = 20  # for what an API server does in the background

Provider = Callable[[], AbstractAsyncContextManager[ObjectApi]]


def a_lease(name: str, holder: str | None = None, *, namespace: str = NAMESPACE) -> JsonObject:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace, "labels": {"pageslots.dev/pool": "shop"}},
        "spec": {} if holder is None else {"holderIdentity": holder},
    }


def a_slot(name: str, *, owner: JsonObject | None = None, namespace: str = NAMESPACE) -> JsonObject:
    return {
        "apiVersion": "pageslots.dev/v1alpha1",
        "kind": "PageSlot",
        "metadata": {"name": name, "namespace": namespace} | owned_by(owner),
        "spec": {"poolName": "shop", "country": "SG"},
    }


def a_pool(name: str, *, namespace: str = NAMESPACE) -> JsonObject:
    return {
        "apiVersion": "pageslots.dev/v1alpha1",
        "kind": "PageSlotPool",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"maxPageSlots": 4, "countries": [{"code": "SG", "direct": True}]},
    }


def a_request(name: str, *, owner: JsonObject | None = None, namespace: str = NAMESPACE) -> JsonObject:
    return {
        "apiVersion": "pageslots.dev/v1alpha1",
        "kind": "CrawlRequest",
        "metadata": {"name": name, "namespace": namespace} | owned_by(owner),
        "spec": {"poolName": "shop", "country": "SG", "startUrls": ["https://shop.example/"]},
    }


def owned_by(owner: JsonObject | None) -> JsonObject:
    if owner is None:
        return {}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {
        "ownerReferences": [
            reference
            | {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        ]
    }


def meta(obj: JsonObject) -> Any:
    return obj["metadata"]


async def until_gone(api: ObjectApi, kind: Kind, name: str) -> None:
    """Wait until a live GET says 404 (an API server collects garbage in its own time)."""
    async with asyncio.timeout(WITHIN_SECONDS):
        while True:
            try:
                await api.get(kind, NAMESPACE, name)
            except NotFoundError:
                return
            await asyncio.sleep(0.05)


class ApiContract:
    """How a contract runs: inherit, and give a `provider`."""

    @pytest.fixture
    def provider(self) -> Provider:
        raise NotImplementedError

    @pytest.fixture
    def run(self, provider: Provider) -> Callable[[Callable[[ObjectApi], Awaitable[None]]], None]:
        def run(scenario: Callable[[ObjectApi], Awaitable[None]]) -> None:
            async def main() -> None:
                async with provider() as api:
                    await scenario(api)

            asyncio.run(main())

        return run


class ObjectApiContract(ApiContract):
    """Objects, their versions, and who may change what."""

    def test_a_created_object_gets_an_identity_and_keeps_its_words(self, run):
        async def scenario(api: ObjectApi) -> None:
            created = await api.create(Kind.SLOT, a_slot("one"))

            assert created["spec"]["country"] == "SG"
            assert meta(created)["generation"] == 1
            assert meta(created)["creationTimestamp"].endswith("Z")
            assert len(meta(created)["uid"]) == 36
            assert int(meta(created)["resourceVersion"]) > 0
            assert await api.get(Kind.SLOT, NAMESPACE, "one") == created

        run(scenario)

    def test_a_name_is_taken_once_per_kind_and_namespace(self, run):
        async def scenario(api: ObjectApi) -> None:
            first = await api.create(Kind.LEASE, a_lease("same", "a"))
            with pytest.raises(AlreadyExistsError):
                await api.create(Kind.LEASE, a_lease("same", "b"))

            assert (await api.get(Kind.LEASE, NAMESPACE, "same")) == first
            await api.create(Kind.SLOT, a_slot("same"))
            other = await api.create(Kind.LEASE, a_lease("same", "c", namespace=OTHER))
            assert meta(other)["uid"] != meta(first)["uid"]

        run(scenario)

    def test_of_many_creators_of_one_name_exactly_one_wins(self, run):
        """Case D3: the same for permits, whose Lease is taken by creating it."""

        async def scenario(api: ObjectApi) -> None:
            tries = (api.create(Kind.LEASE, a_lease("permit", f"slot-{n}")) for n in range(20))
            results = await asyncio.gather(*tries, return_exceptions=True)

            [winner] = [result for result in results if isinstance(result, dict)]
            losers = [result for result in results if isinstance(result, AlreadyExistsError)]
            assert len(losers) == 19
            assert await api.get(Kind.LEASE, NAMESPACE, "permit") == winner

        run(scenario)

    def test_of_many_writers_that_saw_the_same_version_exactly_one_wins(self, run):
        async def scenario(api: ObjectApi) -> None:
            lease = await api.create(Kind.LEASE, a_lease("permit"))
            seen = meta(lease)["resourceVersion"]
            tries = (
                api.patch(
                    Kind.LEASE, NAMESPACE, "permit", {"spec": {"holderIdentity": f"slot-{n}"}}, version=seen
                )
                for n in range(20)
            )
            results = await asyncio.gather(*tries, return_exceptions=True)

            [winner] = [result for result in results if isinstance(result, dict)]
            assert sum(isinstance(result, ConflictError) for result in results) == 19
            assert await api.get(Kind.LEASE, NAMESPACE, "permit") == winner

        run(scenario)

    def test_no_update_of_many_that_retry_on_conflict_is_lost(self, run):
        async def scenario(api: ObjectApi) -> None:
            await api.create(Kind.LEASE, a_lease("counter", "0"))

            async def increment() -> None:
                while True:
                    seen = await api.get(Kind.LEASE, NAMESPACE, "counter")
                    count = int(seen["spec"]["holderIdentity"]) + 1
                    await asyncio.sleep(0)
                    try:
                        await api.patch(
                            Kind.LEASE,
                            NAMESPACE,
                            "counter",
                            {"spec": {"holderIdentity": str(count)}},
                            version=meta(seen)["resourceVersion"],
                        )
                    except ConflictError:
                        continue
                    return

            await asyncio.gather(*(increment() for _ in range(10)))

            assert (await api.get(Kind.LEASE, NAMESPACE, "counter"))["spec"]["holderIdentity"] == "10"

        run(scenario)

    def test_a_patch_without_a_version_applies_to_whatever_is_there(self, run):
        async def scenario(api: ObjectApi) -> None:
            lease = await api.create(Kind.LEASE, a_lease("permit", "a"))
            patched = await api.patch(Kind.LEASE, NAMESPACE, "permit", {"spec": {"holderIdentity": "b"}})

            assert patched["spec"] == {"holderIdentity": "b"}
            assert meta(patched)["uid"] == meta(lease)["uid"]
            assert meta(patched)["labels"] == {"pageslots.dev/pool": "shop"}
            assert int(meta(patched)["resourceVersion"]) > int(meta(lease)["resourceVersion"])

        run(scenario)

    def test_null_removes_a_field_lists_are_replaced_and_objects_are_merged(self, run):
        """RFC 7386, on the fields of a pool."""

        async def scenario(api: ObjectApi) -> None:
            await api.create(Kind.POOL, a_pool("shop"))
            patch = {
                "metadata": {"annotations": {"a": "1", "b": "2"}},
                "spec": {
                    "maxPageSlots": 6,
                    "countries": [{"code": "MY", "direct": True}, {"code": "SG", "direct": True}],
                },
            }
            await api.patch(Kind.POOL, NAMESPACE, "shop", patch)
            removed = {"metadata": {"annotations": {"a": None, "never-there": None}}}
            pool = await api.patch(Kind.POOL, NAMESPACE, "shop", removed)

            assert meta(pool)["annotations"] == {"b": "2"}
            assert pool["spec"]["maxPageSlots"] == 6
            assert [country["code"] for country in pool["spec"]["countries"]] == ["MY", "SG"]

        run(scenario)

    def test_a_patch_that_changes_nothing_gives_no_new_version(self, run):
        """Case D13: nothing that looks at its own writes can wake itself."""

        async def scenario(api: ObjectApi) -> None:
            slot = await api.create(Kind.SLOT, a_slot("one"))
            same = await api.patch(Kind.SLOT, NAMESPACE, "one", {"spec": {"country": "SG"}})
            status = {"status": {"state": "NoPage"}}
            once = await api.patch(Kind.SLOT, NAMESPACE, "one", status, status=True)
            twice = await api.patch(Kind.SLOT, NAMESPACE, "one", status, status=True)

            assert meta(same)["resourceVersion"] == meta(slot)["resourceVersion"]
            assert meta(twice)["resourceVersion"] == meta(once)["resourceVersion"]

        run(scenario)

    def test_status_and_the_rest_are_written_apart(self, run):
        async def scenario(api: ObjectApi) -> None:
            born = await api.create(Kind.REQUEST, a_request("crawl") | {"status": {"state": "Succeeded"}})
            assert not born.get("status")

            patch = {"spec": {"suspend": True}, "status": {"state": "Queued"}}
            spec = await api.patch(Kind.REQUEST, NAMESPACE, "crawl", patch)
            assert spec["spec"]["suspend"] is True
            assert not spec.get("status")

            patch = {"spec": {"suspend": False}, "status": {"state": "Queued"}}
            status = await api.patch(Kind.REQUEST, NAMESPACE, "crawl", patch, status=True)
            assert status["spec"]["suspend"] is True
            assert status["status"]["state"] == "Queued"

        run(scenario)

    def test_the_generation_counts_changes_of_the_spec_alone(self, run):
        async def scenario(api: ObjectApi) -> None:
            await api.create(Kind.POOL, a_pool("shop"))
            label = {"metadata": {"labels": {"team": "prices"}}}
            labelled = await api.patch(Kind.POOL, NAMESPACE, "shop", label)
            status = {"status": {"permitsHeld": 1}}
            counted = await api.patch(Kind.POOL, NAMESPACE, "shop", status, status=True)
            spec = await api.patch(Kind.POOL, NAMESPACE, "shop", {"spec": {"maxPageSlots": 5}})

            assert [meta(pool)["generation"] for pool in (labelled, counted, spec)] == [1, 1, 2]

        run(scenario)

    def test_a_status_write_with_an_old_version_is_refused(self, run):
        """Case P4: a deposed operator's late update."""

        async def scenario(api: ObjectApi) -> None:
            seen = meta(await api.create(Kind.REQUEST, a_request("crawl")))["resourceVersion"]
            queued = {"status": {"state": "Queued"}}
            await api.patch(Kind.REQUEST, NAMESPACE, "crawl", queued, version=seen, status=True)
            late = {"status": {"state": "Failed"}}
            with pytest.raises(ConflictError):
                await api.patch(Kind.REQUEST, NAMESPACE, "crawl", late, version=seen, status=True)

            now = await api.get(Kind.REQUEST, NAMESPACE, "crawl")
            assert now["status"]["state"] == "Queued"

        run(scenario)

    def test_what_the_system_wrote_into_metadata_stays(self, run):
        async def scenario(api: ObjectApi) -> None:
            first = meta(await api.create(Kind.SLOT, a_slot("one")))
            label = {"metadata": {"labels": {"a": "b"}}}
            before = meta(await api.patch(Kind.SLOT, NAMESPACE, "one", label))
            for old in ({"uid": "another"}, {"resourceVersion": first["resourceVersion"]}):
                with pytest.raises(ConflictError):
                    await api.patch(Kind.SLOT, NAMESPACE, "one", {"metadata": old | {"labels": {"a": "c"}}})

            assert meta(await api.get(Kind.SLOT, NAMESPACE, "one")) == before

        run(scenario)

    def test_what_does_not_exist_is_not_found(self, run):
        async def scenario(api: ObjectApi) -> None:
            with pytest.raises(NotFoundError):
                await api.get(Kind.LEASE, NAMESPACE, "none")
            with pytest.raises(NotFoundError):
                await api.patch(Kind.LEASE, NAMESPACE, "none", {"spec": {}})
            with pytest.raises(NotFoundError):
                await api.delete(Kind.LEASE, NAMESPACE, "none", uid="f3b4c1de-0000-4000-8000-000000000000")

        run(scenario)

    def test_an_unusable_name_is_invalid(self, run):
        async def scenario(api: ObjectApi) -> None:
            with pytest.raises(InvalidError):
                await api.create(Kind.LEASE, a_lease("Not A Name"))

        run(scenario)

    def test_a_deleted_object_is_gone_and_its_name_is_free(self, run):
        async def scenario(api: ObjectApi) -> None:
            first = meta(await api.create(Kind.LEASE, a_lease("permit", "a")))
            await api.delete(Kind.LEASE, NAMESPACE, "permit", uid=first["uid"])
            with pytest.raises(NotFoundError):
                await api.get(Kind.LEASE, NAMESPACE, "permit")
            second = meta(await api.create(Kind.LEASE, a_lease("permit", "b")))

            assert second["uid"] != first["uid"]
            assert int(second["resourceVersion"]) > int(first["resourceVersion"])

        run(scenario)

    def test_a_delete_meant_for_an_older_object_of_the_name_is_refused(self, run):
        """Case D12."""

        async def scenario(api: ObjectApi) -> None:
            first = meta(await api.create(Kind.LEASE, a_lease("permit", "a")))
            await api.delete(Kind.LEASE, NAMESPACE, "permit", uid=first["uid"])
            second = await api.create(Kind.LEASE, a_lease("permit", "b"))
            with pytest.raises(ConflictError):
                await api.delete(Kind.LEASE, NAMESPACE, "permit", uid=first["uid"])

            assert await api.get(Kind.LEASE, NAMESPACE, "permit") == second

        run(scenario)

    def test_a_delete_of_a_version_that_has_changed_is_refused(self, run):
        """Case D2: idle closing loses against a write that came first."""

        async def scenario(api: ObjectApi) -> None:
            seen = meta(await api.create(Kind.LEASE, a_lease("permit")))
            taken = await api.patch(Kind.LEASE, NAMESPACE, "permit", {"spec": {"holderIdentity": "a"}})
            with pytest.raises(ConflictError):
                await api.delete(
                    Kind.LEASE, NAMESPACE, "permit", uid=seen["uid"], version=seen["resourceVersion"]
                )
            version = meta(taken)["resourceVersion"]
            await api.delete(Kind.LEASE, NAMESPACE, "permit", uid=seen["uid"], version=version)

            await until_gone(api, Kind.LEASE, "permit")

        run(scenario)

    def test_what_a_caller_does_to_its_own_values_later_changes_nothing(self, run):
        async def scenario(api: ObjectApi) -> None:
            mine = a_lease("permit", "a")
            await api.create(Kind.LEASE, mine)
            mine["spec"]["holderIdentity"] = "changed"
            patch: JsonObject = {"metadata": {"labels": {"x": "1"}}}
            await api.patch(Kind.LEASE, NAMESPACE, "permit", patch)
            patch["metadata"]["labels"]["x"] = "changed"

            lease = await api.get(Kind.LEASE, NAMESPACE, "permit")
            assert lease["spec"]["holderIdentity"] == "a"
            assert meta(lease)["labels"]["x"] == "1"

        run(scenario)
