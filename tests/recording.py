"""A recording of everything that happened to objects, pods and attempts, in order, and who did it.

What is recorded is the truth below all faults: objects as the store keeps them, pods as they live. `judging` holds
the invariants against it. Three sources: `RecordedStore` and `RecordedPods` (exact, for simulations), `follow` (any
`ObjectApi`, by its watches) and `read_processes` (what `ProcessRuntime` records of real processes).
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pageslots.control.ports import Changed, Clock, JsonObject, Kind, ObjectApi, PodView, Synced
from pageslots.local.store import LocalStore
from pageslots.simulate.world import SimulatedRuntime, What
from pageslots.wire import AttemptSpec

WRITER: ContextVar[str] = ContextVar("writer", default="user")
"""Who acts: `user`, `hand` (somebody who edits what is ours), or `operator-<epoch>`."""


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An object was created or changed, or (`gone`) deleted; the object as it is, or was last."""

    at_ms: int
    kind: Kind
    object: JsonObject
    by: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class PodEvent:
    """Something happened to a pod, or to an attempt on it (then `attempt` and what follows are set)."""

    at_ms: int
    what: What
    pod: str  # namespace/name
    uid: str
    by: str
    pool: str = ""
    number: int = 0
    owner: str = ""
    attempt: str = ""
    request_uid: str = ""
    site: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """The operator told a decision (`Recorder.event`)."""

    at_ms: int
    level: str
    name: str
    fields: dict[str, object]
    by: str


@dataclass(frozen=True, slots=True)
class Led:
    """Somebody became the leader: `operator-<epoch>`."""

    at_ms: int
    by: str


Event = ObjectEvent | PodEvent | Told | Led


@dataclass(slots=True)
class Recording:
    """Events in the order in which they happened; `listener` hears each at once."""

    clock: Clock
    events: list[Event] = field(default_factory=list)
    listener: Callable[[Event], None] = lambda _: None

    def add(self, event: Event) -> None:
        """Record it."""
        self.events.append(event)
        self.listener(event)

    def changed(self, kind: Kind, obj: JsonObject, *, gone: bool = False) -> None:
        """An object has changed, now."""
        self.add(ObjectEvent(self.clock.now_ms(), kind, obj, WRITER.get(), gone))

    def event(self, level: str, name: str, /, **fields: object) -> None:
        """`Recorder`: a decision was told."""
        self.add(Told(self.clock.now_ms(), level, name, fields, WRITER.get()))

    def led(self, by: str) -> None:
        """A new leader."""
        self.add(Led(self.clock.now_ms(), by))


class RecordedStore(LocalStore):
    """A store of which every change is recorded at the instant at which it takes effect."""

    def __init__(self, recording: Recording, **options: Any) -> None:
        super().__init__(**options)
        self._recording = recording

    def _store(self, kind: Kind, obj: JsonObject) -> None:
        super()._store(kind, obj)
        self._recording.changed(kind, obj)

    def _remove(self, uids: Sequence[str]) -> None:
        removed = [
            (self._by_uid[uid][0], self._objects[self._by_uid[uid][0]][self._by_uid[uid][1]]) for uid in uids
        ]
        super()._remove(uids)
        for kind, obj in removed:
            self._recording.changed(kind, obj, gone=True)


class RecordedPods(SimulatedRuntime):
    """A simulated runtime of which everything that happens is recorded at its instant."""

    def __init__(self, recording: Recording, **options: Any) -> None:
        super().__init__(**options)
        self._recording = recording

    def _tell(self, pod: Any, what: What, spec: AttemptSpec | None = None) -> None:
        super()._tell(pod, what, spec)
        view: PodView = pod.view
        self._recording.add(
            PodEvent(
                at_ms=self._recording.clock.now_ms(),
                what=what,
                pod=f"{view.namespace}/{view.name}",
                uid=view.uid,
                by=WRITER.get(),
                pool=view.pool,
                number=view.number,
                owner=view.owner_uid or "",
                attempt="" if spec is None else spec.id,
                request_uid="" if spec is None else spec.request_uid,
                site="" if spec is None else spec.site,
                country="" if spec is None else spec.country,
            )
        )


async def follow(api: ObjectApi, recording: Recording) -> None:
    """Record all objects of `api` by its watches, until cancelled. Who acted stays unknown."""

    async def watch(kind: Kind) -> None:
        stream: AsyncGenerator[Synced | Changed]
        async with aclosing(api.watch(kind)) as stream:
            async for event in stream:
                if isinstance(event, Synced):
                    for obj in event.objects:
                        recording.changed(kind, obj)
                else:
                    recording.changed(kind, event.object, gone=event.deleted)

    async with asyncio.TaskGroup() as tasks:
        for kind in Kind:
            tasks.create_task(watch(kind))


def read_processes(path: Path) -> Iterable[PodEvent]:
    """What `ProcessRuntime(recording=path)` wrote: process trees from their first to their last process."""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        pool, _, number = entry["pod"].partition("/")[2].rpartition("-browser-")
        whats = (What.CREATED, What.STARTED) if entry["event"] == "start" else (What.TERMINATED, What.GONE)
        for what in whats:
            yield PodEvent(
                entry["atMs"], what, entry["pod"], entry["uid"], "operator", pool=pool, number=int(number)
            )
