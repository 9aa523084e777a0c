"""A pool with everything around it in virtual time: store, pods, faults, and one controller or several.

    with PoolWorld() as world:
        world.do(world.apply(a_pool()))
        world.start()
        ...
        world.advance(seconds=60)

Everything that happens is in `world.recording`.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import ValidationError
from tests.fakes.api import FaultyApi
from tests.fakes.faults import Faults
from tests.fakes.lives import Life, MortalApi, MortalRuntime
from tests.fakes.runtime import FaultyRuntime
from tests.recording import WRITER, RecordedPods, RecordedStore, Recording, Told

from pageslots.api import KINDS, CrawlRequest, PageSlotPool
from pageslots.control.context import NotLeadingError, Settings
from pageslots.control.controller import Controller
from pageslots.control.ports import InvalidError, JsonObject, Kind
from pageslots.control.site import site_of
from pageslots.simulate.courses import Always, Script
from pageslots.simulate.virtual import VirtualClock, VirtualLoop
from pageslots.simulate.world import What

ResultT = TypeVar("ResultT")
NAMESPACE = "default"
API_VERSION = "pageslots.dev/v1alpha1"


def a_pool(name: str = "default", *, countries: Any = ("SG", "MY"), **spec: Any) -> JsonObject:
    """A pool of these countries (codes, or their whole entries)."""
    entries = [
        {"code": c, "direct": True} if isinstance(c, str) else {"direct": True, **c} for c in countries
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "PageSlotPool",
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {"countries": entries, **spec},
    }


def a_request(name: str, country: str = "SG", *, site: str = "", **spec: Any) -> JsonObject:
    """A crawl request of one page; `site` defaults to one of its own."""
    return {
        "apiVersion": API_VERSION,
        "kind": "CrawlRequest",
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {
            "country": country,
            "startUrls": [f"https://{site or name + '.example'}/"],
            **spec,
        },
    }


def output_uri(request: CrawlRequest, pool: PageSlotPool, parent: CrawlRequest | None) -> str | None:
    """Requests that name an output have one."""
    del pool
    top = request if parent is None else parent
    return None if top.spec.output is None else f"file:///out/{request.metadata.namespace}/{request.name}"


SETTINGS = Settings(
    output_uri=output_uri,
    site_of=site_of,
    row_count=lambda _uri, _most: None,
    proxy_credentials=lambda _namespace, _name: ("user", "secret"),
)


def _strict(kind: Kind) -> Callable[[JsonObject, JsonObject | None], None]:
    """What an API server does: every write is held against the whole schema, statuses too."""
    model = KINDS[kind.value]

    def check(new: JsonObject, old: JsonObject | None) -> None:
        del old
        try:
            model.model_validate(new)
        except ValidationError as error:
            raise InvalidError(f"{kind} {new['metadata']['name']}: {error}") from None

    return check


STRICT = {kind: _strict(kind) for kind in (Kind.POOL, Kind.SLOT, Kind.REQUEST)}


@dataclass(slots=True)
class Election:
    """Who leads: the highest epoch. Each leader knows for itself whether it has noticed that it was deposed."""

    number: int
    noticed: bool = False

    def epoch(self) -> int:
        return self.number

    def check(self) -> None:
        if self.noticed:
            raise NotLeadingError


@dataclass(slots=True)
class Operator:
    """One controller as a process."""

    name: str
    controller: Controller
    life: Life
    leadership: Election
    task: asyncio.Task[None]

    @property
    def alive(self) -> bool:
        return not self.life.dead and not self.task.done()


@dataclass(slots=True)
class PoolWorld:
    """See the module. `script` decides how pods and attempts go; `faults` what goes wrong for operators."""

    script: Script = field(default_factory=Always)
    faults: Faults = field(default_factory=Faults)
    settings: Settings = SETTINGS
    loop: VirtualLoop = field(default_factory=VirtualLoop)
    clock: VirtualClock = field(default_factory=VirtualClock)
    operators: list[Operator] = field(default_factory=list)
    recording: Recording = field(init=False)
    store: RecordedStore = field(init=False)
    pods: RecordedPods = field(init=False)
    _flying: set[asyncio.Task[Any]] = field(default_factory=set)
    _epochs: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _failure: BaseException | None = None

    def __post_init__(self) -> None:
        clock = _LoopClock(self.loop)
        self.recording = Recording(clock)
        self.store = RecordedStore(self.recording, clock=clock, validate=STRICT, seed=1)
        self.pods = RecordedPods(self.recording, script=self.script, clock=clock)

    # --- operators

    def start(self) -> Operator:
        """A new operator that leads from now on."""
        return self.do(self._start())

    async def _start(self) -> Operator:
        number = next(self._epochs)
        name = f"operator-{number}"
        made: list[Operator] = []

        def died() -> None:
            made[0].task.cancel()

        life = Life(died, self._flying)
        leadership = Election(number)
        self.recording.led(name)
        token = WRITER.set(name)
        try:
            controller = Controller(
                MortalApi(FaultyApi(self.store, self.faults), life),
                MortalRuntime(FaultyRuntime(self.pods, self.faults), life),
                VirtualClock(),
                self.recording,
                leadership,
                self.settings,
            )
            task = asyncio.get_running_loop().create_task(self._run(controller, leadership), name=name)
        finally:
            WRITER.reset(token)
        operator = Operator(name, controller, life, leadership, task)
        made.append(operator)
        self.operators.append(operator)
        return operator

    async def _run(self, controller: Controller, leadership: Election) -> None:
        try:
            await controller.run()
        except BaseExceptionGroup as group:
            rest = group.split(NotLeadingError)[1]
            if rest is not None:
                self._failure = rest
        except Exception as error:  # noqa: BLE001 -- told by the next `do`
            self._failure = error

    @property
    def operator(self) -> Operator:
        """The latest one."""
        return self.operators[-1]

    @property
    def controller(self) -> Controller:
        return self.operator.controller

    def depose(self, operator: Operator) -> None:
        """It notices that it leads no more."""
        operator.leadership.noticed = True

    # --- time and calls

    def do(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run it in this world's loop."""
        try:
            result = self.loop.run_until_complete(work)
        finally:
            self._raise_failure()
        return result

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise AssertionError("an operator crashed by itself") from failure

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.do(asyncio.sleep(seconds))

    def until(self, condition: Callable[[], object], *, within_seconds: float = 120) -> None:
        """Let time pass until the condition holds."""

        async def wait() -> None:
            end = self.loop.time() + within_seconds
            while not condition():
                assert self.loop.time() < end, f"not within {within_seconds} s:\n{self.picture()}"
                await asyncio.sleep(0.05)

        self.do(wait())

    # --- objects

    async def apply(self, *objects: JsonObject) -> None:
        """Create objects, or change their spec."""
        for obj in objects:
            kind, metadata = Kind(obj["kind"]), obj["metadata"]
            known = self.find(kind, metadata["name"])
            if known is None:
                await self.store.create(kind, obj)
            else:
                await self.store.patch(kind, NAMESPACE, metadata["name"], {"spec": obj["spec"]})

    def put(self, *objects: JsonObject) -> None:
        """`apply`, now."""
        self.do(self.apply(*objects))

    def edit(
        self, kind: Kind, name: str, patch: JsonObject, *, status: bool = False, by: str = "user"
    ) -> JsonObject:
        """Patch an object, as a user or by hand."""
        return self._as(by, lambda: self.store.patch(kind, NAMESPACE, name, patch, status=status))

    def remove(self, kind: Kind, name: str, *, by: str = "user") -> None:
        """Delete an object if it exists."""

        async def delete() -> None:
            known = self.find(kind, name)
            if known is not None:
                await self.store.delete(kind, NAMESPACE, name, uid=known["metadata"]["uid"])

        self._as(by, delete)

    def _as(self, by: str, do: Callable[[], Awaitable[ResultT]]) -> ResultT:
        async def act() -> ResultT:
            WRITER.set(by)
            return await do()

        return self.do(act())

    def find(self, kind: Kind, name: str) -> JsonObject | None:
        """The object as it is, if there is one."""
        return self.store._objects[kind].get((NAMESPACE, name))

    def all(self, kind: Kind) -> list[JsonObject]:
        """All objects of a kind."""
        return list(self.store._objects[kind].values())

    def request(self, name: str) -> CrawlRequest:
        """The request as it is."""
        obj = self.find(Kind.REQUEST, name)
        assert obj is not None, f"no request {name}"
        return CrawlRequest.model_validate(obj)

    def state(self, name: str) -> str:
        """The state of a request."""
        return self.request(name).status.state.value

    def states(self) -> list[str]:
        """The states of all requests, by name."""
        return [str((o.get("status") or {}).get("state", "Queued")) for o in self.all(Kind.REQUEST)]

    def why(self, name: str) -> str:
        """The reason of a request's Finished condition (before its end: why it waits)."""
        return next((str(c.reason) for c in self.request(name).status.conditions if c.type == "Finished"), "")

    def all_finished(self) -> bool:
        """Whether every request has come to an end."""
        return all(state in ("Succeeded", "Failed", "Stopped") for state in self.states())

    def held(self) -> dict[str, str]:
        """Held permits: Lease -> holder."""
        leases = (
            (o["metadata"]["name"], (o.get("spec") or {}).get("holderIdentity")) for o in self.all(Kind.LEASE)
        )
        return {name: holder for name, holder in leases if holder}

    def live_pods(self) -> dict[str, Any]:
        """Pods that exist: name -> view."""
        return {pod.view.name: pod.view for pod in self.pods._pods.values()}

    def told(self, name: str) -> list[dict[str, object]]:
        """The decisions of that name so far."""
        return [e.fields for e in self.recording.events if isinstance(e, Told) and e.name == name]

    def happened(self, what: What) -> int:
        """How often that has happened to a pod or an attempt."""
        return sum(h.what is what for h in self.pods.log)

    def picture(self) -> str:
        """The world as text, for failures."""
        lines = [f"t={self.loop.time():.3f} s, operators {[(o.name, o.alive) for o in self.operators]}"]
        for obj in self.all(Kind.REQUEST):
            status = obj.get("status") or {}
            why = next((c["reason"] for c in status.get("conditions", ()) if c["type"] == "Finished"), "")
            lines.append(
                f"  request {obj['metadata']['name']} {obj['spec']['country']} {status.get('state')} {why}"
            )
        for obj in self.all(Kind.SLOT):
            status = obj.get("status") or {}
            lines.append(f"  slot {obj['metadata']['name']} {obj['spec']['country']} {status.get('state')}")
        lines.append(f"  permits {self.held()}")
        for view in self.live_pods().values():
            lines.append(f"  pod {view.name} {view.phase} owner {view.owner_uid} deleting {view.deleting}")
        return "\n".join(lines)

    # --- the end

    def close(self) -> None:
        """End all tasks and timers."""

        async def end() -> None:
            for operator in self.operators:
                operator.life.dead = True
                operator.task.cancel()
            tasks = [o.task for o in self.operators] + list(self._flying)
            for task in self._flying:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.pods.close()
            self.store.close()

        self.loop.run_until_complete(end())
        with contextlib.suppress(RuntimeError):
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self.picture())
        self.close()
        if kind is None:
            self._raise_failure()


class _LoopClock:
    """The world's time, inside its loop and outside."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._start_ms = VirtualClock().now_ms()

    def now_ms(self) -> int:
        return self._start_ms + round(self._loop.time() * 1_000)
