"""The index after any sequence of facts, also of ones that contradict each other (watches are late, people edit).

Law: an index kept change by change plans the same as one rebuilt from its facts; planning changes nothing; what is
accepted is not asked for again; finished requests stay finished; counters are what a recount says.
"""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.world import NOON, S

from pageslots.core.actions import Deed, Note
from pageslots.core.index import Index
from pageslots.core.model import (
    Agent,
    AgentPhase,
    AttemptId,
    BackOff,
    Country,
    CountrySettings,
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
from pageslots.core.plan import plan
from pageslots.core.slots import Role

SG, MY = Country("SG"), Country("MY")
COUNTRIES = [SG, MY, Country("XX")]  # XX is none of the pool's
SITES = [Site("a.example"), Site("b.example")]
REQUESTS = [RequestUid(f"r{i}") for i in range(6)]
SLOTS = [SlotUid(f"slot-{i}") for i in range(5)]
NUMBERS = range(5)  # maxConcurrent varies around it

instants = st.integers(-120, 30).map(lambda seconds: Instant(NOON + seconds * S))
pod_uids = st.builds(lambda n, life: PodUid(f"pod-{n}-{life}"), st.sampled_from(NUMBERS), st.integers(1, 2))


@st.composite
def attempts(draw: st.DrawFn, uid: RequestUid) -> RunningAttempt:
    number = draw(st.integers(1, 2))
    return RunningAttempt(
        AttemptId(f"{uid}-{number}"), number, draw(st.sampled_from(SLOTS)), draw(pod_uids), draw(instants)
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    uid = draw(st.sampled_from(REQUESTS))
    state = draw(
        st.sampled_from(
            [RequestState.QUEUED] * 3
            + [RequestState.RUNNING] * 3
            + [RequestState.SUCCEEDED, RequestState.FAILED]
        )
    )
    attempt = draw(st.one_of(st.none(), attempts(uid))) if state is RequestState.RUNNING else None
    started = draw(st.one_of(st.none(), instants))
    return Request(
        uid,
        uid,
        draw(st.sampled_from(COUNTRIES)),
        draw(st.sampled_from(SITES)),
        created=draw(instants),
        seen=Version(str(draw(st.integers(1, 3)))),
        state=state,
        priority=draw(st.sampled_from([0, 0, 1, -1])),
        suspended=draw(st.sampled_from([False, False, True])),
        stop=draw(st.sampled_from([False, False, False, True])),
        deleted=draw(st.sampled_from([False, False, False, True])),
        attempt=attempt,
        attempts=draw(st.integers(0, 2)),
        last_started=started,
        first_started=started,
        next_attempt=draw(st.one_of(st.none(), instants)) if state is RequestState.QUEUED else None,
        finished=draw(instants) if state.finished else None,
        queue_timeout_ms=draw(st.sampled_from([None, None, 60 * S])),
        resumable=draw(st.booleans()),
    )


slots = st.builds(
    lambda i, country, seen, deleted: Slot(
        SLOTS[i], f"pool-slot-{i}", i, country, Version(str(seen)), deleted
    ),
    st.sampled_from(range(len(SLOTS))),
    st.sampled_from(COUNTRIES),
    st.integers(1, 2),
    st.sampled_from([False, False, False, True]),
)
permits = st.builds(
    Permit,
    st.sampled_from(NUMBERS),
    st.sampled_from([Version("1"), Version("2")]),
    st.one_of(st.none(), st.sampled_from(SLOTS), st.sampled_from(SLOTS), st.just(SlotUid("nobody"))),
    st.sampled_from(GrantedFor),
    st.one_of(st.none(), instants),
    st.sampled_from([False] * 7 + [True]),
)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    number = draw(st.sampled_from(NUMBERS))
    phase = draw(st.sampled_from([*PodPhase, PodPhase.RUNNING, PodPhase.RUNNING]))
    return Pod(
        number,
        PodUid(f"pod-{number}-{draw(st.integers(1, 2))}"),
        draw(st.one_of(st.sampled_from(SLOTS), st.sampled_from([None, SlotUid("nobody")]))),
        phase,
        draw(instants),
        scheduled=None if phase is PodPhase.PENDING else draw(instants),
        deleting=draw(st.one_of(st.none(), st.none(), instants)),
        revision=draw(st.sampled_from(["", "", "old"])),
    )


@st.composite
def agents(draw: st.DrawFn) -> Agent:
    uid = draw(st.sampled_from(REQUESTS))
    ended = draw(st.booleans())
    report = Report(
        AttemptId(f"{uid}-{draw(st.integers(1, 2))}"),
        uid,
        ended=ended,
        outcome=draw(st.sampled_from(Outcome)) if ended else None,
        new_ok_pages=draw(st.integers(0, 1)),
    )
    contact = draw(instants)
    return Agent(
        draw(pod_uids),
        draw(st.sampled_from([*AgentPhase, AgentPhase.READY, AgentPhase.READY])),
        contact,
        contact,
        warm_site=draw(st.one_of(st.none(), st.sampled_from(SITES))),
        report=draw(st.sampled_from([None, report])),
        recycle_due=draw(st.sampled_from([False, False, False, True])),
        ready_since=draw(st.one_of(st.none(), instants)),
        idle_since=draw(st.one_of(st.none(), instants)),
        ran=draw(st.integers(0, 2)),
    )


@st.composite
def pools(draw: st.DrawFn) -> PoolSettings:
    return PoolSettings(
        "pool",
        max_page_slots=draw(st.integers(2, 6)),
        max_concurrent=draw(st.integers(1, 5)),
        suspended=draw(st.sampled_from([False] * 5 + [True])),
        deleted=draw(st.sampled_from([False] * 5 + [True])),
        countries={
            SG: CountrySettings(SG, min_ready=draw(st.integers(0, 1))),
            MY: CountrySettings(MY, suspended=draw(st.booleans())),
        },
        max_per_site=draw(st.integers(1, 3)),
        cooldown_ms=draw(st.sampled_from([0, 1 * S, 90 * S])),
    )


class AnyFacts(RuleBasedStateMachine):
    """Facts come and go in any order; plans are accepted and their deeds end, or not."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.index = Index(PoolSettings("pool"))
        self.finished: dict[RequestUid, Request] = {}

    @initialize(settings=pools(), known=st.booleans())
    def begin(self, settings: PoolSettings, known: bool) -> None:
        self.index.set_pool(settings)
        if known:
            self.index.memory.since = Instant(NOON - 3_600 * S)

    @rule(settings=pools())
    def edit_pool(self, settings: PoolSettings) -> None:
        self.index.set_pool(settings)

    @rule(found=st.lists(requests(), min_size=1, max_size=4))
    def put_requests(self, found: Iterable[Request]) -> None:
        for request in found:
            self.index.put_request(request)
            known = self.index.requests[request.uid]
            if known.state.finished:
                self.finished.setdefault(request.uid, known)

    @rule(uid=st.sampled_from(REQUESTS))
    def drop_request(self, uid: RequestUid) -> None:
        self.index.drop_request(uid)
        self.finished.pop(uid, None)

    @rule(found=st.lists(slots, min_size=1, max_size=3))
    def put_slots(self, found: Iterable[Slot]) -> None:
        for slot in found:
            known = self.index.slots.get(slot.uid)
            self.index.put_slot(slot if known is None else replace(slot, country=known.country))

    @rule(uid=st.sampled_from(SLOTS))
    def drop_slot(self, uid: SlotUid) -> None:
        self.index.drop_slot(uid)

    @rule(found=st.lists(permits, min_size=1, max_size=3))
    def put_permits(self, found: Iterable[Permit]) -> None:
        for permit in found:
            self.index.put_permit(permit)

    @rule(number=st.sampled_from(NUMBERS))
    def drop_permit(self, number: int) -> None:
        self.index.drop_permit(number)

    @rule(found=st.lists(pods(), min_size=1, max_size=3))
    def put_pods(self, found: Iterable[Pod]) -> None:
        for pod in found:
            self.index.put_pod(pod)

    @rule(number=st.sampled_from(NUMBERS), terminated=st.booleans())
    def drop_pod(self, number: int, terminated: bool) -> None:
        known = self.index.pods.get(number)
        if known is not None:
            self.index.drop_pod(number, known.uid, terminated=terminated)

    @rule(found=st.lists(agents(), min_size=1, max_size=3))
    def put_agents(self, found: Iterable[Agent]) -> None:
        for agent in found:
            self.index.put_agent(agent)

    @rule(uid=pod_uids)
    def drop_agent(self, uid: PodUid) -> None:
        self.index.drop_agent(uid)

    @rule(
        country=st.sampled_from(COUNTRIES[:2]),
        site=st.one_of(st.none(), st.sampled_from(SITES)),
        until=instants,
        failures=st.integers(1, 3),
    )
    def put_backoff(self, country: Country, site: Site | None, until: Instant, failures: int) -> None:
        self.index.put_backoff(BackOff(country, site, until, failures))

    @rule(slot=st.sampled_from(SLOTS), site=st.sampled_from(SITES), number=st.sampled_from(NUMBERS))
    def a_ready_slot(self, slot: SlotUid, site: Site, number: int) -> None:
        """Facts that fit together: what random ones rarely do."""
        country = self.index.slots[slot].country if slot in self.index.slots else COUNTRIES[0]
        i = SLOTS.index(slot)
        self.index.put_slot(Slot(slot, f"pool-slot-{i}", i, country, Version("1")))
        self.index.put_permit(Permit(number, Version("3"), slot))
        uid = PodUid(f"pod-{number}-1")
        self.index.put_pod(Pod(number, uid, slot, PodPhase.RUNNING, NOON, scheduled=NOON))
        self.index.put_agent(
            Agent(uid, AgentPhase.READY, self.now, self.now, site, ready_since=NOON, idle_since=self.now)
        )

    @rule(ms=st.sampled_from([0, 1, 500, 5_000, 61_000, 700_000, -2_000]))
    def pass_time(self, ms: int) -> None:
        self.now = Instant(self.now + ms)

    @rule()
    def accept(self) -> None:
        made = plan(self.index, self.now)
        self.index.accept(made, self.now)
        if not any(isinstance(action, Note) for action in made.actions):
            again = plan(self.index, self.now)
            known = set(made.actions)
            assert not known & set(again.actions)

    @precondition(lambda self: list(self.index.pending))
    @rule(which=st.integers(0, 100))
    def settle(self, which: int) -> None:
        under_way: list[Deed] = list(self.index.pending)
        self.index.settle(under_way[which % len(under_way)])

    @invariant()
    def planning_changes_nothing(self) -> None:
        before = self.index.facts()
        assert plan(self.index, self.now) == plan(self.index, self.now)
        assert self.index.facts() == before

    @invariant()
    def a_rebuilt_index_plans_the_same(self) -> None:
        rebuilt = Index.rebuilt(self.index.facts())
        assert plan(rebuilt, self.now) == plan(self.index, self.now)

    @invariant()
    def counters_are_what_a_recount_says(self) -> None:
        plan(self.index, self.now)
        for country, queues in self.index.queues.countries.items():
            mine = [r for r in self.index.requests.values() if r.country == country and not r.state.finished]
            assert queues.unfinished == sum(not r.suspended for r in mine)
            assert queues.running == sum(self.index.gather.runs(r) for r in mine)
        for country, found in self.index.roster.countries.items():
            views = [v for v in self.index.roster.views.values() if v.country == country]
            assert sum(len(found.of(role)) for role in Role) == len(views)
            assert found.counted == sum(v.counted for v in views)

    @invariant()
    def finished_requests_stay_finished(self) -> None:
        """Invariant I4."""
        for uid, request in self.finished.items():
            assert self.index.requests[uid].state.finished
            assert not any(getattr(a, "request", None) == uid for a in plan(self.index, self.now).actions), (
                request
            )


TestAnyFacts = AnyFacts.TestCase
TestAnyFacts.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
