"""Builders of the planner's world: `a_pool(…).with_slots(idle("SG")).with_queued("MY", 9)`, and what a plan says.

Time is `world.now`, a large number of milliseconds that tests move; builders count backwards from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from pageslots.core.actions import (
    Action,
    CloseSlot,
    CreateSlot,
    DeletePod,
    DeleteSlot,
    FinishRequest,
    NoteAllocation,
    NoteDraining,
    RequeueRequest,
    StartAttempt,
    TakePermit,
)
from pageslots.core.index import Index
from pageslots.core.model import (
    EPOCH,
    SECOND,
    Agent,
    AgentPhase,
    AttemptId,
    Country,
    CountrySettings,
    DrainReason,
    GrantedFor,
    Instant,
    Outcome,
    Permit,
    Pod,
    PodPhase,
    PodUid,
    PoolSettings,
    Report,
    Request,
    RequestState,
    RequestUid,
    RunningAttempt,
    Site,
    Slot,
    SlotUid,
    Version,
)
from pageslots.core.plan import Plan, plan

S = SECOND
NOON = Instant(1_800_000_000_000)
A = TypeVar("A", bound=Action)


@dataclass(frozen=True)
class SlotSpec:
    """A slot to be built: what stands behind it, and since when (milliseconds ago)."""

    country: str
    stage: str  # empty, granted, starting, preparing, idle, running
    ago: int = 5 * S
    site: str | None = None
    granted_for: GrantedFor = GrantedFor.NEEDED
    ran: int = 1
    revision: str = ""
    request: dict[str, Any] = field(default_factory=dict)


def empty(country: str) -> SlotSpec:
    """No browser."""
    return SlotSpec(country, "empty")


def granted(country: str, **more: Any) -> SlotSpec:
    """A permit, no pod yet."""
    return SlotSpec(country, "granted", **more)


def preparing(country: str, **more: Any) -> SlotSpec:
    """A browser whose page is not ready yet."""
    return SlotSpec(country, "preparing", **{"ran": 0, **more})


def idle(country: str, **more: Any) -> SlotSpec:
    """A ready page without a request."""
    return SlotSpec(country, "idle", **more)


def running(country: str, site: str = "busy.example", **more: Any) -> SlotSpec:
    """A page that runs a request of `site`, begun `ago` milliseconds ago."""
    return SlotSpec(country, "running", site=site, **more)


class Said:
    """What a plan says, by kind."""

    def __init__(self, made: Plan) -> None:
        self.plan = made
        self.actions = made.actions
        self.next_wake = made.next_wake

    def of(self, kind: type[A]) -> list[A]:
        """The actions of that kind, in order."""
        return [a for a in self.actions if isinstance(a, kind)]

    @property
    def starts(self) -> list[tuple[RequestUid, SlotUid]]:
        return [(a.request, a.slot) for a in self.of(StartAttempt)]

    @property
    def created(self) -> dict[Country, int]:
        made: dict[Country, int] = {}
        for a in self.of(CreateSlot):
            made[a.country] = made.get(a.country, 0) + 1
        return made

    @property
    def deleted(self) -> list[SlotUid]:
        return [a.slot for a in self.of(DeleteSlot)]

    @property
    def granted(self) -> list[SlotUid]:
        return [a.slot for a in self.of(TakePermit)]

    @property
    def closed(self) -> list[SlotUid]:
        return [a.slot for a in self.of(CloseSlot)]

    @property
    def killed(self) -> list[tuple[PodUid, str]]:
        return [(a.pod, a.reason) for a in self.of(DeletePod)]

    @property
    def draining(self) -> list[tuple[SlotUid, DrainReason | None]]:
        return [(a.slot, a.reason) for a in self.of(NoteDraining)]

    @property
    def allocated(self) -> dict[Country, int]:
        [note] = self.of(NoteAllocation)
        return dict(note.slots)


class World:
    """Facts of one pool, and an index of them."""

    def __init__(self, settings: PoolSettings) -> None:
        self.now = NOON
        self.index = Index(settings)
        self.index.memory.since = EPOCH
        self._slots = 0
        self._permits = 0
        self._requests = 0

    @property
    def settings(self) -> PoolSettings:
        return self.index.settings

    # --- building

    def with_slots(self, *specs: SlotSpec) -> Self:
        """Slots numbered on, each with a permit, pod and agent as its stage says."""
        for spec in specs:
            self.add_slot(spec)
        return self

    def add_slot(self, spec: SlotSpec) -> SlotUid:
        number, uid = self._slots, SlotUid(f"slot-{self._slots}")
        self._slots += 1
        self.index.put_slot(Slot(uid, f"pool-slot-{number}", number, Country(spec.country), Version("1")))
        if spec.stage == "empty":
            return uid
        permit, at = self._permits, Instant(self.now - spec.ago)
        self._permits += 1
        self.index.put_permit(Permit(permit, Version("1"), uid, spec.granted_for, at))
        if spec.stage == "granted":
            return uid
        pod = PodUid(f"pod-{permit}-1")
        phase = PodPhase.STARTING if spec.stage == "starting" else PodPhase.RUNNING
        self.index.put_pod(Pod(permit, pod, uid, phase, at, scheduled=at, revision=spec.revision))
        if spec.stage == "starting":
            return uid
        ready = spec.stage != "preparing"
        report = None
        if spec.stage == "running":
            request = self.add_running(spec, uid, pod, at)
            assert request.attempt is not None
            report = Report(request.attempt.id, request.uid, ended=False)
        self.index.put_agent(
            Agent(
                pod,
                AgentPhase.PREPARING if not ready else AgentPhase.RUNNING if report else AgentPhase.READY,
                contact=self.now,
                progress=self.now,
                warm_site=None if spec.site is None else Site(spec.site),
                report=report,
                ready_since=at if ready else None,
                idle_since=at if ready and report is None else None,
                ran=spec.ran,
            )
        )
        return uid

    def add_running(self, spec: SlotSpec, slot: SlotUid, pod: PodUid, at: Instant) -> Request:
        uid = RequestUid(f"r{self._requests}")
        self._requests += 1
        request = Request(
            uid,
            uid,
            Country(spec.country),
            Site(spec.site or "busy.example"),
            created=at,
            seen=Version("1"),
            state=RequestState.RUNNING,
            attempt=RunningAttempt(AttemptId(f"{uid}-1"), 1, slot, pod, at),
            attempts=1,
            last_started=at,
            first_started=at,
        )
        request = replace(request, **spec.request)
        self.index.put_request(request)
        return request

    def with_queued(
        self, country: str, count: int = 1, *, waiting: int = 1 * S, site: str | None = None, **more: Any
    ) -> Self:
        """Queued requests created `waiting` milliseconds ago; each of a site of its own unless `site` is given."""
        for _ in range(count):
            self.add_queued(country, waiting=waiting, site=site, **more)
        return self

    def add_queued(
        self, country: str, *, waiting: int = 1 * S, site: str | None = None, **more: Any
    ) -> Request:
        number = self._requests
        uid = RequestUid(f"r{number}")
        self._requests += 1
        request = Request(
            uid,
            uid,
            Country(country),
            Site(site or f"s{number}.example"),
            created=Instant(self.now - waiting),
            seen=Version("1"),
        )
        request = replace(request, **more)
        self.index.put_request(request)
        return request

    def with_finished(self, country: str, count: int, *, ago: int = 60 * S) -> Self:
        """Requests that succeeded `ago` milliseconds ago."""
        for _ in range(count):
            self.add_queued(
                country,
                waiting=ago + 10 * S,
                state=RequestState.SUCCEEDED,
                finished=Instant(self.now - ago),
            )
        return self

    def with_allocation(self, **slots: int) -> Self:
        """As if this had been computed just now, all countries considered."""
        countries = frozenset(self.settings.countries)
        note = NoteAllocation(self.now, tuple((Country(c), n) for c, n in slots.items()), countries)
        self.index.accept(Plan((note,), None), self.now)
        return self

    def allocated_as_is(self) -> Self:
        """The slots that exist are the allocation."""
        slots: dict[str, int] = dict.fromkeys(self.settings.countries, 0)
        for slot in self.index.slots.values():
            slots[slot.country] += 1
        return self.with_allocation(**slots)

    def record(self, *verdicts: Action) -> None:
        """Carry verdicts out: write them into their requests and settle them."""
        for deed in verdicts:
            if isinstance(deed, FinishRequest):
                request = self.index.requests[deed.request]
                self.index.put_request(
                    replace(request, state=deed.state, attempt=None, finished=self.now, seen=Version("2"))
                )
                self.index.settle(deed)
            elif isinstance(deed, RequeueRequest):
                request = self.index.requests[deed.request]
                self.index.put_request(
                    replace(
                        request,
                        state=RequestState.QUEUED,
                        attempt=None,
                        next_attempt=deed.next_attempt,
                        seen=Version("2"),
                    )
                )
                self.index.settle(deed)

    # --- asking and moving on

    def plan(self) -> Said:
        """What should happen now."""
        return Said(plan(self.index, self.now))

    def accept(self) -> Said:
        """Plan, and take the plan as under way."""
        said = self.plan()
        self.index.accept(said.plan, self.now)
        return said

    def later(self, ms: int) -> Self:
        """Let time pass."""
        self.now = Instant(self.now + ms)
        return self

    def change(self, **settings: Any) -> Self:
        """Edit the pool."""
        self.index.set_pool(replace(self.settings, **settings))
        return self

    # --- looking at facts

    def slot(self, country: str, nth: int = 0) -> SlotUid:
        """The UID of the country's nth slot."""
        return [s.uid for s in self.index.slots.values() if s.country == country][nth]

    def pod_of(self, slot: SlotUid) -> Pod:
        """The slot's pod."""
        return next(p for p in self.index.pods.values() if p.owner == slot)

    def agent_of(self, slot: SlotUid) -> Agent:
        """Its agent's word."""
        return self.index.agents[self.pod_of(slot).uid]

    def request_on(self, slot: SlotUid) -> Request:
        """The request that runs on it."""
        return next(r for r in self.index.running_requests() if r.attempt and r.attempt.slot == slot)

    def queued(self) -> Iterator[Request]:
        """Queued requests, oldest first."""
        return (request for _, request in self.index.queued_requests())

    def end(self, slot: SlotUid, outcome: Outcome = Outcome.OK, **more: Any) -> Request:
        """The agent reports the end of what runs on the slot."""
        request = self.request_on(slot)
        assert request.attempt is not None
        ok = {"done": 1, "new_ok_pages": 1, "start_pages_ok": 1} if outcome is Outcome.OK else {}
        report = Report(request.attempt.id, request.uid, ended=True, outcome=outcome, **{**ok, **more})
        agent = replace(
            self.agent_of(slot), phase=AgentPhase.READY, contact=self.now, report=report, idle_since=self.now
        )
        self.index.put_agent(agent)
        return request


def a_pool(
    *countries: str | CountrySettings, max_slots: int = 20, max_concurrent: int = 8, **settings: Any
) -> World:
    """A pool of these countries (default SG and MY), in operation since long ago."""
    listed = [
        c if isinstance(c, CountrySettings) else CountrySettings(Country(c))
        for c in countries or ("SG", "MY")
    ]
    return World(
        PoolSettings(
            "pool",
            "pool-uid",
            max_page_slots=max_slots,
            max_concurrent=max_concurrent,
            countries={c.code: c for c in listed},
            **settings,
        )
    )
