"""All that plans are made from, kept change by change: a plan costs what changed, not what there is.

`put_…` and `drop_…` take facts as they come, in any order and any number of times; `accept` takes a plan that is
being carried out; `settle` ends a deed of it. Law: an index fed change by change plans the same as
`Index.rebuilt(index.facts())`.
"""

from typing import Self

from pageslots.core.actions import (
    CloseSlot,
    Deed,
    Note,
    NoteBackOff,
    NoteDraining,
    Plan,
    TakePermit,
)
from pageslots.core.facts import Facts
from pageslots.core.model import (
    Agent,
    BackOff,
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
    Slot,
    SlotUid,
)
from pageslots.core.reading import Readable
from pageslots.core.runs import look_at_queued


class Index(Readable):
    """One pool's facts and what follows from them."""

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
        if request.last_started is not None:
            self.memory.started(request.country, request.site, request.last_started)
        if request.state is RequestState.QUEUED:
            end = look_at_queued(request)
            self.wait_timers.set(uid, None if end is None else end[0])
            if old is None:  # by far the most, after a restart
                self.records.requests[uid] = request
                self._place_new(request)
                return
        else:
            self.wait_timers.set(uid, None)
            if request.state is not RequestState.RUNNING:
                self.memory.finished(request)
            elif request.attempt is not None:
                self.memory.started(request.country, request.site, request.attempt.started)
        self.records.set_request(uid, request)
        self._request_changed(old, request)

    def drop_request(self, uid: RequestUid) -> None:
        """The request is no more. What it has started and finished is still remembered."""
        old = self.records.set_request(uid, None)
        if old is not None:
            self.wait_timers.set(uid, None)
            self._request_changed(old, None)

    def put_slot(self, slot: Slot) -> None:
        """A page slot as it is now."""
        if self.records.slots.get(slot.uid) == slot:
            return
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
        if self.records.permits.get(number) == permit:
            return
        old = self.records.set_permit(number, permit)
        was = None if old is None else old.holder
        is_ = None if permit is None else permit.holder
        if was != is_:
            self.memory.permit_freed(number)
            self._forget_drain_of_page(was)
        self.numbers.touch(number)
        for holder in {was, is_} - {None}:
            assert holder is not None
            self._touch_slot_and_numbers(holder)

    def _forget_drain_of_page(self, slot: SlotUid | None) -> None:
        """Without a permit there is no page to drain: only what is about the slot itself lasts."""
        if slot is not None and self.gather.number_of(slot) is None:
            self.memory.page_gone(slot)
            self.roster.touch(slot)

    def put_pod(self, pod: Pod) -> None:
        """A pod as it is now; another one of its name is gone then (case D12)."""
        old = self.records.pods.get(pod.number)
        if old == pod:
            return
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
            if isinstance(deed, TakePermit):
                self._forget_drain_of_page(deed.slot)
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
        index.memory.restore(facts)  # what was forgotten since is not learnt again from old requests
        for deed, _ in facts.pending:
            index._touch_deed(deed)
        return index


def _allocation_inputs(settings: PoolSettings) -> tuple[object, ...]:
    return (
        settings.max_page_slots,
        settings.countries,
        settings.unfinished_weight,
        settings.finished_weight,
        settings.min_requests_per_slot,
        settings.deleted,
    )
