"""The example that the design documents, through manifests and statuses: what a user puts in and reads."""

from tests.fakes.pool_world import PoolWorld, a_pool, a_request
from tests.fakes.vtime import START_MS

from pageslots.api import PageSlotPool
from pageslots.control.instants import time_text
from pageslots.control.ports import Kind
from pageslots.simulate.courses import Always, AttemptCourse

COUNTRIES = ("AU", "BR", "CA", "DE", "ES", "FR")
UNFINISHED = (2, 2, 1, 1, 0, 0)
FINISHED = (8, 6, 3, 1, 4, 0)


def allocated_and_started(*, max_concurrent: int) -> tuple[list[int], list[int]]:
    """Slots per country as the pool's status and the pods tell, once everything has settled."""
    script = Always(every_attempt=AttemptCourse(duration_ms=3_600_000))
    with PoolWorld(script=script) as world:
        world.put(
            a_pool(
                countries=COUNTRIES,
                maxPageSlots=20,
                maxConcurrent=max_concurrent,
                preparation={"minRequestsPerSlot": "1/3", "idleSeconds": 3_600},
            )
        )
        for code, finished, unfinished in zip(COUNTRIES, FINISHED, UNFINISHED, strict=True):
            for n in range(finished):
                name = f"done-{code.lower()}-{n}"
                world.put(a_request(name, code))
                ended = {"state": "Succeeded", "finishTime": time_text(START_MS)}
                world.edit(Kind.REQUEST, name, {"status": ended}, status=True)
            world.put(*(a_request(f"todo-{code.lower()}-{n}", code) for n in range(unfinished)))
        world.start()
        world.advance(45)
        pool = PageSlotPool.model_validate(world.find(Kind.POOL, "default"))
        allocated = {row.code: row.allocated for row in pool.status.countries}
        slots = {s["metadata"]["uid"]: s["spec"]["country"] for s in world.all(Kind.SLOT)}
        holders = [lease["spec"].get("holderIdentity") for lease in world.all(Kind.LEASE)]
        started = [slots[uid] for uid in holders if uid]
        return [allocated[c] for c in COUNTRIES], [started.count(c) for c in COUNTRIES]


def test_the_documented_example_holds_with_17_permits():
    assert allocated_and_started(max_concurrent=17) == ([7, 6, 3, 2, 2, 0], [6, 6, 3, 2, 0, 0])


def test_the_documented_example_holds_with_8_permits():
    assert allocated_and_started(max_concurrent=8) == ([7, 6, 3, 2, 2, 0], [3, 3, 1, 1, 0, 0])
