"""What the local store does beyond the contract of `ObjectApi`: its file, its lock, its watchers."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.object_api import NAMESPACE, a_lease, a_pool, a_request, a_slot
from tests.fakes import vtime

from pageslots.control.ports import (
    ApiError,
    Changed,
    ConflictError,
    InvalidError,
    JsonObject,
    Kind,
    Synced,
    UnavailableError,
)
from pageslots.local.lockfile import LockedError, LockFile
from pageslots.local.store import LocalStore
from pageslots.local.storefile import StoreLockedError, StoreUnreadableError, StoreVersionError
from pageslots.simulate.virtual import START_MS, VirtualClock


def everything(store: LocalStore) -> list[JsonObject]:
    """All objects of all kinds."""
    return [obj for kind in Kind for obj in asyncio.run(store.list(kind))]


def write_some(store: LocalStore) -> None:
    async def write() -> None:
        pool = await store.create(Kind.POOL, a_pool("shop"))
        await store.create(Kind.SLOT, a_slot("shop-slot-0", owner=pool))
        await store.create(Kind.REQUEST, a_request("crawl"))
        await store.patch(Kind.REQUEST, NAMESPACE, "crawl", {"status": {"state": "Queued"}}, status=True)
        lease = await store.create(Kind.LEASE, a_lease("gone"))
        await store.delete(Kind.LEASE, NAMESPACE, "gone", uid=lease["metadata"]["uid"])

    asyncio.run(write())


def test_what_was_written_is_there_after_a_restart(tmp_path: Path):
    path = tmp_path / "below" / "state.db"
    with LocalStore.open(path) as store:
        write_some(store)
        before, version = everything(store), store.version

    with LocalStore.open(path) as store:
        assert everything(store) == before
        assert store.version == version
        [pool] = asyncio.run(store.list(Kind.POOL))
        asyncio.run(store.delete(Kind.POOL, NAMESPACE, "shop", uid=pool["metadata"]["uid"]))
        assert [obj["kind"] for obj in everything(store)] == ["CrawlRequest"]


def test_no_version_is_given_twice_even_when_the_newest_object_is_gone(tmp_path: Path):
    with LocalStore.open(tmp_path / "state.db") as store:
        write_some(store)
        last = store.version

    with LocalStore.open(tmp_path / "state.db") as store:
        lease = asyncio.run(store.create(Kind.LEASE, a_lease("gone")))
        assert int(lease["metadata"]["resourceVersion"]) == last + 1


def test_every_write_that_returned_survives_sigkill(tmp_path: Path):
    """Case P1: whatever the operator had done when it was killed is what the next one finds."""
    writer = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from pageslots.control.ports import Kind\n"
        "from pageslots.local.store import LocalStore\n"
        "from tests.contract.object_api import a_lease\n"
        "async def main():\n"
        "    store = LocalStore.open(Path(sys.argv[1]))\n"
        "    for n in range(1_000_000):\n"
        "        await store.create(Kind.LEASE, a_lease(f'permit-{n}'))\n"
        "        print(n, flush=True)\n"
        "asyncio.run(main())\n"
    )
    path = tmp_path / "state.db"
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", writer, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 200:
            pass
        process.send_signal(signal.SIGKILL)
        told = [int(line) for line in process.stdout.read().splitlines() if line]
    last = told[-1] if told else 200

    with LocalStore.open(path) as store:
        names = [lease["metadata"]["name"] for lease in asyncio.run(store.list(Kind.LEASE))]
    assert names[: last + 1] == [f"permit-{n}" for n in range(last + 1)]
    assert len(names) <= last + 2


def test_a_second_run_on_the_same_state_is_refused_and_told_by_whom(tmp_path: Path):
    path = tmp_path / "state.db"
    with LocalStore.open(path):
        with pytest.raises(StoreLockedError, match=r"in use by process \d+.*another --output") as refused:
            LocalStore.open(path)
        assert refused.value.pid is not None
    LocalStore.open(path).close()


def test_a_lock_file_that_nobody_holds_is_no_lock(tmp_path: Path):
    """The id of a dead process in it may be somebody else's by now: the kernel's lock is what counts."""
    (tmp_path / "lock").write_text("1\n")
    held = LockFile.acquire(tmp_path / "lock")
    with pytest.raises(LockedError):
        LockFile.acquire(tmp_path / "lock")
    held.release()
    held.release()
    LockFile.acquire(tmp_path / "lock").release()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"this is not a database, but long enough to look like one " * 20),
        lambda path: _sql(path, "DROP TABLE objects"),
        lambda path: _sql(path, "UPDATE objects SET body = '{'"),
        lambda path: _sql(path, "UPDATE objects SET body = '{}'"),
        lambda path: _sql(path, "UPDATE objects SET kind = 'Nonsense'"),
        lambda path: _sql(path, "DELETE FROM counters"),
        lambda path: path.write_bytes(path.read_bytes()[:5_000]),
    ],
    ids=["foreign", "no table", "no JSON", "no object", "unknown kind", "no version", "cut off"],
)
def test_a_damaged_file_is_named_with_what_to_do_and_not_locked(
    tmp_path: Path, damage: Callable[[Path], Any]
):
    path = tmp_path / "state.db"
    with LocalStore.open(path) as store:
        write_some(store)
    damage(path)

    for _ in range(2):
        with pytest.raises(StoreUnreadableError, match=r"state\.db: .*--fresh"):
            LocalStore.open(path)


def _sql(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path):
    path = tmp_path / "state.db"
    LocalStore.open(path).close()
    _sql(path, "PRAGMA user_version = 99")

    with pytest.raises(StoreVersionError, match=r"format 99.*upgrade pageslots"):
        LocalStore.open(path)


def test_another_programs_database_is_left_alone(tmp_path: Path):
    _sql(tmp_path / "state.db", "CREATE TABLE theirs (a)")

    with pytest.raises(StoreUnreadableError, match="another program"):
        LocalStore.open(tmp_path / "state.db")


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path):
    """Case U2."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreUnreadableError, match="may write to"):
        LocalStore.open(tmp_path / "file" / "state.db")


def test_a_write_that_the_disk_refuses_changes_nothing(tmp_path: Path):
    with LocalStore.open(tmp_path / "state.db") as store:
        write_some(store)
        before, version = everything(store), store.version
        assert store._file is not None
        store._file._connection.execute("PRAGMA query_only = ON")  # as a full disk: every write fails

        with pytest.raises(UnavailableError, match="nothing was written"):
            asyncio.run(store.create(Kind.LEASE, a_lease("never")))
        [pool] = asyncio.run(store.list(Kind.POOL))
        with pytest.raises(UnavailableError):
            asyncio.run(store.delete(Kind.POOL, NAMESPACE, "shop", uid=pool["metadata"]["uid"]))

        assert (everything(store), store.version) == (before, version)


def test_a_watcher_that_falls_behind_gets_everything_anew_and_costs_no_more_memory():
    async def scenario() -> None:
        store = LocalStore(watch_limit=10)
        async with aclosing(store.watch(Kind.LEASE)) as events:
            assert await anext(events) == Synced(())
            for n in range(10):
                await store.create(Kind.LEASE, a_lease(f"permit-{n}"))
            assert isinstance(await anext(events), Changed)
            for n in range(10, 500):
                await store.create(Kind.LEASE, a_lease(f"permit-{n}"))

            again = await anext(events)
            assert isinstance(again, Synced)
            assert len(again.objects) == 500
            lease = await store.create(Kind.LEASE, a_lease("next"))
            assert await anext(events) == Changed(lease)

    asyncio.run(scenario())


def test_closing_ends_all_watches_and_all_calls():
    async def scenario() -> None:
        store = LocalStore()

        async def read() -> int:
            return len([event async for event in store.watch(Kind.LEASE)])

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        store.close()
        async with asyncio.timeout(5):
            assert await reader == 1
        with pytest.raises(UnavailableError):
            await store.get(Kind.LEASE, NAMESPACE, "any")

    asyncio.run(scenario())


def test_a_kinds_rule_sees_both_versions_and_what_was_left_alone():
    seen: list[tuple[bool, bool]] = []

    def check(new: JsonObject, old: JsonObject | None) -> None:
        seen.append((old is None, old is not None and new["spec"] is old["spec"]))
        if new["spec"].get("maxPageSlots", 0) > 100:
            raise InvalidError("spec.maxPageSlots: 100 at most")

    async def scenario() -> None:
        store = LocalStore(validate={Kind.POOL: check})
        await store.create(Kind.POOL, a_pool("shop"))
        await store.patch(Kind.POOL, NAMESPACE, "shop", {"status": {"slots": 1}}, status=True)
        before = await store.get(Kind.POOL, NAMESPACE, "shop")
        with pytest.raises(InvalidError, match="100 at most"):
            await store.patch(Kind.POOL, NAMESPACE, "shop", {"spec": {"maxPageSlots": 101}})
        assert await store.get(Kind.POOL, NAMESPACE, "shop") is before

    asyncio.run(scenario())
    assert seen == [(True, False), (False, True), (False, False)]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"kind": "Other"}, InvalidError),
        ({"apiVersion": "v2"}, InvalidError),
        ({"metadata": None}, InvalidError),
        ({"metadata": {"name": "two"}}, InvalidError),
        ({"metadata": {"namespace": None}}, InvalidError),
        ({"metadata": {"uid": None}}, None),
        ({"spec": {"x": object()}}, InvalidError),
        ({"metadata": {"resourceVersion": "999"}}, ConflictError),
    ],
)
def test_identity_can_not_be_patched_away(change: JsonObject, error: type[Exception] | None):
    async def scenario() -> None:
        store = LocalStore()
        uid = (await store.create(Kind.SLOT, a_slot("one")))["metadata"]["uid"]
        if error is not None:
            with pytest.raises(error):
                await store.patch(Kind.SLOT, NAMESPACE, "one", change)
        else:
            await store.patch(Kind.SLOT, NAMESPACE, "one", change)
        assert (await store.get(Kind.SLOT, NAMESPACE, "one"))["metadata"]["uid"] == uid

    asyncio.run(scenario())


def test_objects_of_one_second_sort_by_uid_in_the_order_of_their_creation():
    """One file's requests start in its order: creationTimestamp has whole seconds only."""

    async def scenario() -> None:
        store = LocalStore(clock=VirtualClock(), seed=1)
        made = [await store.create(Kind.REQUEST, a_request(f"crawl-{n}")) for n in range(300)]
        uids = [obj["metadata"]["uid"] for obj in made]

        assert uids == sorted(uids)
        assert len(set(uids)) == 300
        assert {obj["metadata"]["creationTimestamp"] for obj in made} == {"2026-01-01T00:00:00Z"}
        assert VirtualClock().now_ms() == START_MS

    vtime.run(scenario())


def test_the_same_seed_gives_the_same_objects():
    async def scenario() -> list[str]:
        store = LocalStore(clock=VirtualClock(), seed=7)
        return [(await store.create(Kind.SLOT, a_slot(f"s-{n}")))["metadata"]["uid"] for n in range(5)]

    assert vtime.run(scenario()) == vtime.run(scenario())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "spec", "status", "delete", "reopen"]),
        st.integers(0, 3),
        st.integers(0, 3),
        st.none() | st.integers(0, 3),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_a_file_says_after_any_history_what_memory_says(tmp_path_factory: pytest.TempPathFactory, steps: Any):
    """Law: reopening the file at any point changes nothing that anybody can see."""
    path = tmp_path_factory.mktemp("store") / "state.db"
    memory = LocalStore(clock=_Still(), seed=1)
    file = LocalStore.open(path, clock=_Still())
    file._random.seed(1)

    def both(act: Callable[[LocalStore], Any]) -> None:
        results = []
        for store in (memory, file):
            try:
                results.append(json.dumps(asyncio.run(act(store)), sort_keys=True))
            except ApiError as error:
                results.append(repr(error))
        assert results[0] == results[1]

    for verb, n, value, owner in steps:
        name = f"slot-{n}"
        if verb == "create":
            both(lambda store, name=name, owner=owner: _create(store, name, owner))
        elif verb == "delete":
            both(lambda store, name=name: _delete(store, name))
        elif verb == "reopen":
            state = file._random.getstate()
            file.close()
            file = LocalStore.open(path, clock=_Still())
            file._random.setstate(state)
        else:
            patch = {verb: {"value": value or None}}
            both(
                lambda store, name=name, patch=patch, verb=verb: store.patch(
                    Kind.SLOT, NAMESPACE, name, patch, status=verb == "status"
                )
            )
    assert everything(file) == everything(memory)
    assert file.version == memory.version
    file.close()


async def _create(store: LocalStore, name: str, owner: int | None) -> JsonObject:
    owned_by = None if owner is None else await store.get(Kind.SLOT, NAMESPACE, f"slot-{owner}")
    return await store.create(Kind.SLOT, a_slot(name, owner=owned_by))


async def _delete(store: LocalStore, name: str) -> None:
    seen = await store.get(Kind.SLOT, NAMESPACE, name)
    await store.delete(Kind.SLOT, NAMESPACE, name, uid=seen["metadata"]["uid"])


class _Still:
    def now_ms(self) -> int:
        return START_MS
