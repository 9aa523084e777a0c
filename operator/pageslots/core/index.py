"""All that plans are made from, kept change by change: a plan costs what changed, not what there is.

`put_…` and `drop_…` take facts as they come, in any order and any number of times; `accept` takes a plan that is
being carried out; `settle` ends a deed of it. Law: an index fed change by change plans the same as
`Index.rebuilt(index.facts())`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Self

from pageslots.core.actions import (
    CloseSlot,
    CreatePod,
    CreateSlot,
    Deed,
    DeletePod,
    DeleteSlot,
    FinishRequest,
    FreePermit,
    Note,
    NoteBackOff,
    NoteDraining,
    Plan,
    RequeueRequest,
    SendAttempt,
    StartAttempt,
    StopAttempt,
    TakePermit,
)
from pageslots.core.counting import CountryCounts, counts
from pageslots.core.facts import Facts
from pageslots.core.gathering import Gatherer
from pageslots.core.heaps import Timers
from pageslots.core.memory import Memory
from pageslots.core.model import (
    Agent,
    BackOff,
    Country,
    Drain,
    Gone,
    Instant,
    Permit,
    Pod,
    PodPhase,
    PodUid,
    PoolSettings,
    Request,
    RequestState,
    RequestUid,
    Site,
    Slot,
    SlotState,
    SlotUid,
)
from pageslots.core.numbers import Numbers
from pageslots.core.pending import Pending
from pageslots.core.queues import QueueId, Queues
from pageslots.core.records import Records
from pageslots.core.roster import Roster
from pageslots.core.runs import Outlook, look_at_queued, look_at_running
from pageslots.core.slots import SlotFacts, SlotView
from pageslots.core.sweeps import AT_ONCE


class Index:
    """One pool's facts and what follows from them."""

    def __init__(self, settings: PoolSettings) -> None:
        self.settings = settings
        self.records = Records()
        self.memory = Memory()
        self.pending = Pending()
        self.gather = Gatherer(self.records, self.memory, self.pending)
        self.queues = Queues(settings, self._gate)
        self.roster = Roster(settings, self._slot_facts)
        self.numbers = Numbers(settings, self.gather.number_facts)
        self.run_timers: Timers[RequestUid] = Timers()
        self.wait_timers: Timers[RequestUid] = Timers()
        self._dirty_runs: set[RequestUid] = set()
        self._outlooks: dict[RequestUid, Outlook] = {}
        self._placed: dict[RequestUid, tuple[Request, bool]] = {}
        self._starts: dict[QueueId, dict[RequestUid, Instant]] = {}
        self._start_of: dict[RequestUid, QueueId] = {}
        self._now = Instant(0)

    # --- facts in

    def set_pool(self, settings: PoolSettings) -> None:
        """The pool's spec has changed (or is known now). A change of what allocation rests on makes it due."""
        old, self.settings = self.settings, settings
        if old == settings:
            return
        if _allocation_inputs(old) != _allocation_inputs(settings):
            self.memory.allocation = None
        self.queues.use(settings)
        self.roster.use(settings)
        self.numbers.use(settings)
        self._dirty_runs.update(self.records.running)

    def put_request(self, request: Request) -> None:
        """A request as it is now. A finished one stays finished, whatever comes later (invariant I4)."""
        uid = request.uid
        old = self.records.requests.get(uid)
        if old is not None and (old == request or (old.state.finished and not request.state.finished)):
            return
        self.records.set_request(uid, request)
        if request.last_started is not None:
            self.memory.started(request.country, request.site, request.last_started)
        if request.state is RequestState.QUEUED:
            end = look_at_queued(request)
            self.wait_timers.set(uid, None if end is None else end[0])
        else:
            self.wait_timers.set(uid, None)
            if request.state is not RequestState.RUNNING:
                self.memory.finished(request)
            elif request.attempt is not None:
                self.memory.started(request.country, request.site, request.attempt.started)
        self._request_changed(old, request)

    def drop_request(self, uid: RequestUid) -> None:
        """The request is no more. What it has started and finished is still remembered."""
        old = self.records.set_request(uid, None)
        if old is not None:
            self.wait_timers.set(uid, None)
            self._request_changed(old, None)

    def put_slot(self, slot: Slot) -> None:
        """A page slot as it is now."""
        self.records.slots[slot.uid] = slot
        self._touch_slot_and_numbers(slot.uid)

    def drop_slot(self, uid: SlotUid) -> None:
        """The page slot is no more."""
        if self.records.slots.pop(uid, None) is not None:
            self.memory.drains.pop(uid, None)
            self._touch_slot_and_numbers(uid)

    def put_permit(self, permit: Permit) -> None:
        """A permit as it is now."""
        self._set_permit(permit.number, permit)

    def drop_permit(self, number: int) -> None:
        """The permit's Lease is no more: the number is free."""
        self._set_permit(number, None)

    def _set_permit(self, number: int, permit: Permit | None) -> None:
        old = self.records.set_permit(number, permit)
        was = None if old is None else old.holder
        is_ = None if permit is None else permit.holder
        if was != is_:
            self.memory.permit_freed(number)
        self.numbers.touch(number)
        for holder in {was, is_} - {None}:
            assert holder is not None
            self._touch_slot_and_numbers(holder)

    def put_pod(self, pod: Pod) -> None:
        """A pod as it is now; another one of its name is gone then (case D12)."""
        old = self.records.pods.get(pod.number)
        if old is not None and old.uid != pod.uid:
            self.drop_pod(old.number, old.uid)
        self.memory.permit_freed(pod.number)
        self.records.set_pod(pod.number, pod)
        self._touch_pod(pod)

    def drop_pod(self, number: int, uid: PodUid, *, terminated: bool = False) -> None:
        """The pod of that UID is no more; one of another UID stays.

        `terminated`: it is certain that none of its processes is left. Without it (and without having been seen
        terminated) its permit and its attempt are held for the grace period and 5 s more (invariant I3).
        """
        pod = self.records.pods.get(number)
        if pod is None or pod.uid != uid:
            return
        self.drop_agent(uid)
        self.records.set_pod(number, None)
        never_ran = pod.phase is PodPhase.PENDING and pod.scheduled is None
        ended = terminated or never_ran or pod.phase is PodPhase.TERMINATED
        permit = self.records.permits.get(number)
        holds = permit is not None and permit.holder is not None
        self.memory.pod_gone(Gone(uid, number, ended, pod.out_of_memory, holds=holds))
        self.memory.closings.pop(uid, None)
        if pod.owner is not None:
            drain = self.memory.drains.get(pod.owner)
            if drain is not None and drain.pod == uid:
                del self.memory.drains[pod.owner]
        self._touch_pod(pod)

    def put_agent(self, agent: Agent) -> None:
        """An agent's latest answer."""
        self.records.agents[agent.pod] = agent
        self._touch_agent(agent.pod)

    def drop_agent(self, pod: PodUid) -> None:
        """Nobody will answer for that pod any more; what it said of the end of an attempt still counts."""
        agent = self.records.agents.pop(pod, None)
        if agent is None:
            return
        if agent.report is not None and agent.report.ended:
            request = self.records.running.get(agent.report.request)
            if request is not None and request.attempt is not None and request.attempt.id == agent.report.id:
                self.memory.last_words[agent.report.id] = agent.report
        self._touch_agent(pod)

    def put_backoff(self, backoff: BackOff) -> None:
        """A back-off as a pool's status shows it. After the first accepted plan our own memory is the newer one."""
        if self.memory.since is None:
            self.memory.backoffs[(backoff.country, backoff.site)] = backoff
            self._touch_backoff(backoff.country, backoff.site)

    # --- plans in

    def accept(self, plan: Plan, now: Instant) -> None:
        """The plan is being carried out: its notes hold, its deeds are pending until they are settled."""
        if self.memory.since is None:
            self.memory.since = now
            self._touch_everything()
        for gone in self.memory.stamp(now):
            self._dirty_runs.update(self.records.named_pod.of(gone.pod))
            self._touch_holder(gone.number)
        for action in plan.actions:
            if isinstance(action, Note):
                self._apply(action)
            else:
                self.pending.add(action, now)
                if isinstance(action, CloseSlot):
                    self._closing_asked(action, now)
                self._touch_deed(action)
        self.pending.forget_old(now)
        if self.memory.is_prune_due(now):
            named = set(self.records.named_pod.keys())
            self.memory.prune(now, self.settings, set(self.queues.ids()), named)

    def _apply(self, note: Note) -> None:
        pod_of: PodUid | None = None
        if isinstance(note, NoteDraining):
            number = self.gather.number_of(note.slot)
            pod = None if number is None else self.records.pods.get(number)
            pod_of = None if pod is None else pod.uid
        self.memory.apply(note, pod_of)
        if isinstance(note, NoteDraining):
            self.roster.touch(note.slot)
        elif isinstance(note, NoteBackOff):
            self._touch_backoff(note.country, note.site)

    def _closing_asked(self, deed: CloseSlot, now: Instant) -> None:
        """Remember since when the agent has not answered a drain; an answer in between starts it anew."""
        first = self.memory.closings.get(deed.pod)
        agent = self.records.agents.get(deed.pod)
        if first is None or (agent is not None and agent.contact > first):
            self.memory.closings[deed.pod] = now

    def settle(self, deed: Deed) -> None:
        """The deed's result is known (facts were put before), or it failed for certain."""
        if self.pending.settle(deed):
            self._touch_deed(deed)

    # --- everything in, everything out

    def facts(self) -> Facts:
        """All that this index knows."""
        records, memory = self.records, self.memory
        under_way, tried = self.pending.snapshot()
        return Facts(
            settings=self.settings,
            requests=tuple(records.requests.values()),
            slots=tuple(records.slots.values()),
            permits=tuple(records.permits.values()),
            pods=tuple(records.pods.values()),
            agents=tuple(records.agents.values()),
            since=memory.since,
            backoffs=tuple(memory.backoffs.values()),
            last_starts=dict(memory.last_starts),
            country_starts=dict(memory.country_starts),
            finishes=memory.finishes(),
            allocation=memory.allocation,
            drains=dict(memory.drains),
            idle_closings=dict(memory.idle_closings),
            gone=tuple(memory.gone.values()),
            closings=dict(memory.closings),
            last_words=dict(memory.last_words),
            usable=memory.usable,
            pending=under_way,
            tried=tried,
        )

    @classmethod
    def rebuilt(cls, facts: Facts) -> Self:
        """An index of these facts."""
        index = cls(facts.settings)
        index.memory.restore(facts)
        index.pending.restore(facts.pending, facts.tried)
        for slot in facts.slots:
            index.put_slot(slot)
        for permit in facts.permits:
            index.records.set_permit(permit.number, permit)
            index.numbers.touch(permit.number)
        for pod in facts.pods:
            index.records.set_pod(pod.number, pod)
            index.numbers.touch(pod.number)
        for agent in facts.agents:
            index.records.agents[agent.pod] = agent
        for request in facts.requests:
            index.put_request(request)
        for deed, _ in facts.pending:
            index._touch_deed(deed)
        return index

    # --- keeping derived state in step

    def refresh(self, now: Instant) -> None:
        """Bring everything derived up to `now`. Changes no fact; called by `plan` and by readers."""
        if now < self._now:
            self._start_over()
        if self.memory.since is None and now != self._now:
            self._touch_everything()  # what is unknown is counted from now as long as nothing was accepted
        if now != self._now:
            self._outlooks.clear()
        self._now = now
        self.queues.refresh(now)
        for number in self.numbers.refresh(now):
            self._touch_holder(number)
        self.roster.refresh(self.since)
        for uid in self._dirty_runs:
            request = self.records.running.get(uid)
            if request is None:
                self.run_timers.set(uid, None)
                continue
            outlook = look_at_running(self.gather.run_facts(request), self.settings, self.since, now)
            self.run_timers.set(uid, AT_ONCE if outlook.deed is not None else outlook.again)
            self._outlooks[uid] = outlook
        self._dirty_runs.clear()

    def _start_over(self) -> None:
        """Time went back (only tests and simulations do that): what it had made due is derived anew."""
        self.queues = Queues(self.settings, self._gate)
        placed, self._placed = self._placed, {}
        for uid, (request, running) in placed.items():
            self.queues.add(request, running=running)
            self._placed[uid] = (request, running)
        self.numbers.stuck.clear()
        self.numbers.use(self.settings)
        self._touch_everything()

    @property
    def since(self) -> Instant:
        """When this index began to watch."""
        return self._now if self.memory.since is None else self.memory.since

    def outlook(self, request: Request) -> Outlook:
        """What is due on a Running request, as of the last refresh."""
        known = self._outlooks.get(request.uid)
        if known is None:
            known = look_at_running(self.gather.run_facts(request), self.settings, self.since, self._now)
            self._outlooks[request.uid] = known
        return known

    def _slot_facts(self, uid: SlotUid) -> SlotFacts | None:
        return self.gather.slot_facts(uid, self.numbers.stuck)

    def _gate(self, country: Country, site: Site, cooldown: int) -> Instant:
        """When the next attempt at the (country, site) may start; one of unknown history waits one cooldown."""
        last = self.memory.last_starts.get((country, site))
        gate = (self.since if last is None else last) + cooldown if cooldown else 0
        under_way = self._starts.get((country, site))
        if under_way:
            gate = max(gate, max(under_way.values()) + cooldown)
        known = self.memory.backoffs.get((country, site))
        return Instant(gate if known is None else max(gate, known.until))

    def _request_changed(self, old: Request | None, new: Request | None) -> None:
        known = new if new is not None else old
        assert known is not None
        self._place(known.uid)
        for request in (old, new):
            if request is not None and request.state is RequestState.RUNNING:
                self._dirty_runs.add(request.uid)
                if request.attempt is not None:
                    self.roster.touch(request.attempt.slot)
        if old is not None and old.attempt is not None and (new is None or new.attempt != old.attempt):
            self.memory.last_words.pop(old.attempt.id, None)

    def _place(self, uid: RequestUid) -> None:
        """Keep the request's place in the queues in step with its facts."""
        request = self.records.requests.get(uid)
        before = self._placed.get(uid)
        after: tuple[Request, bool] | None = None
        if request is not None and not request.state.finished:
            after = (request, self.gather.runs(request))
        if before is not None and after is not None and _same_place(before, after):
            return
        if before is not None:
            self.queues.remove(before[0], running=before[1])
            del self._placed[uid]
        if after is not None:
            self.queues.add(after[0], running=after[1])
            self._placed[uid] = after

    def _touch_slot_and_numbers(self, uid: SlotUid) -> None:
        self.roster.touch(uid)
        for number in (*self.records.held_by.of(uid), *self.records.owned_by.of(uid)):
            self.numbers.touch(number)

    def _touch_pod(self, pod: Pod) -> None:
        self.numbers.touch(pod.number)
        self._touch_holder(pod.number)
        if pod.owner is not None:
            self._touch_slot_and_numbers(pod.owner)
        self._dirty_runs.update(self.records.named_pod.of(pod.uid))

    def _touch_agent(self, uid: PodUid) -> None:
        pod = self.records.pod(uid)
        if pod is not None and pod.owner is not None:
            self.roster.touch(pod.owner)
        self._dirty_runs.update(self.records.named_pod.of(uid))

    def _touch_holder(self, number: int) -> None:
        permit = self.records.permits.get(number)
        if permit is not None and permit.holder is not None:
            self._touch_slot_and_numbers(permit.holder)

    def _touch_backoff(self, country: Country, site: Site | None) -> None:
        if site is not None:
            self.queues.touch(country, site)

    def _touch_everything(self) -> None:
        self.queues.touch_all()
        self.roster.touch_all()
        self._dirty_runs.update(self.records.running)

    def _touch_deed(self, deed: Deed) -> None:
        """A deed became pending or was settled: what it is about is looked at anew."""
        match deed:
            case CreateSlot():
                return
            case DeleteSlot():
                self.roster.touch(deed.slot)
            case TakePermit() | CreatePod():
                self.numbers.touch(deed.number)
                self._touch_slot_and_numbers(deed.slot)
            case FreePermit():
                self.numbers.touch(deed.number)
                self._touch_holder(deed.number)
            case CloseSlot() | DeletePod():
                pod = self.records.pod(deed.pod)
                if pod is not None:
                    self._touch_pod(pod)
            case StartAttempt():
                self._start_changed(deed)
                self.roster.touch(deed.slot)
                self._touch_request(deed.request)
            case SendAttempt():
                self._touch_request(deed.request)
            case StopAttempt():
                self.roster.touch(deed.slot)
            case RequeueRequest() | FinishRequest():
                self._touch_request(deed.request)

    def _start_changed(self, deed: StartAttempt) -> None:
        """A start under way cools its site like one that has happened."""
        uid = deed.request
        begun = self.pending.begun("StartAttempt", uid)
        before = self._start_of.pop(uid, None)
        if before is not None:
            self._starts[before].pop(uid, None)
            if not self._starts[before]:
                del self._starts[before]
            self.queues.touch(*before)
        request = self.records.requests.get(uid)
        if begun is not None and request is not None:
            queue = self._start_of[uid] = (request.country, request.site)
            self._starts.setdefault(queue, {})[uid] = begun

    def _touch_request(self, uid: RequestUid) -> None:
        request = self.records.requests.get(uid)
        self._place(uid)
        if request is not None:
            self.queues.touch(request.country, request.site)
            self._dirty_runs.add(uid)

    # --- read side

    @property
    def requests(self) -> Mapping[RequestUid, Request]:
        """All known requests, finished ones too."""
        return MappingProxyType(self.records.requests)

    @property
    def slots(self) -> Mapping[SlotUid, Slot]:
        """All page slots."""
        return MappingProxyType(self.records.slots)

    @property
    def permits(self) -> Mapping[int, Permit]:
        """All permits that have a Lease, by number."""
        return MappingProxyType(self.records.permits)

    @property
    def pods(self) -> Mapping[int, Pod]:
        """All pods, by number."""
        return MappingProxyType(self.records.pods)

    @property
    def agents(self) -> Mapping[PodUid, Agent]:
        """The agents' latest answers, by pod."""
        return MappingProxyType(self.records.agents)

    def queued_requests(self) -> Iterator[tuple[RequestUid, Request]]:
        """All queued requests, the longest known first."""
        return (
            (uid, request)
            for uid, request in self.records.requests.items()
            if request.state is RequestState.QUEUED
        )

    def running_requests(self) -> Iterator[Request]:
        """All Running requests."""
        return iter(self.records.running.values())

    def pod_number(self, uid: PodUid) -> int | None:
        """The number of that pod, if it exists."""
        return self.records.number_of.get(uid)

    def slot_view(self, uid: SlotUid, now: Instant | None = None) -> SlotView | None:
        """A slot as decisions see it; None: there is none."""
        self.refresh(self._now if now is None else now)
        return self.roster.views.get(uid)

    def slot_state(self, uid: SlotUid, now: Instant | None = None) -> SlotState:
        """A slot's state; of one that doesn't exist: NoPage."""
        known = self.slot_view(uid, now)
        return SlotState.NO_PAGE if known is None else known.state

    def counts(self, now: Instant | None = None) -> Mapping[Country, CountryCounts]:
        """Figures of every country of the pool, as of `now` (None: of the last plan)."""
        return counts(self, self._now if now is None else now)

    def backoffs(self) -> tuple[BackOff, ...]:
        """All back-offs, over ones too: they count failures in a row."""
        return tuple(self.memory.backoffs.values())

    def draining(self, uid: SlotUid) -> Drain | None:
        """Why the slot takes no further request."""
        return self.memory.drains.get(uid)


def _same_place(before: tuple[Request, bool], after: tuple[Request, bool]) -> bool:
    """Whether nothing that queues look at has changed."""
    a, b = before[0], after[0]
    return before[1] == after[1] and (
        a is b
        or (
            a.country == b.country
            and a.site == b.site
            and a.suspended == b.suspended
            and a.stop == b.stop
            and a.deleted == b.deleted
            and a.priority == b.priority
            and a.created == b.created
            and a.next_attempt == b.next_attempt
        )
    )


def _allocation_inputs(settings: PoolSettings) -> tuple[object, ...]:
    return (
        settings.max_page_slots,
        settings.countries,
        settings.unfinished_weight,
        settings.finished_weight,
        settings.min_requests_per_slot,
        settings.deleted,
    )
