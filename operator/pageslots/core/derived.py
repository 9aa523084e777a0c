"""What follows from the facts, kept in step with them: places in queues, views of slots, timers.

The lower half of `Index`. A change marks what it touches; `refresh(now)` derives that anew, and what time has made due.
"""

from pageslots.core.actions import (
    CloseSlot,
    CreatePod,
    CreateSlot,
    Deed,
    DeletePod,
    DeleteSlot,
    FinishRequest,
    FreePermit,
    RequeueRequest,
    SendAttempt,
    StartAttempt,
    StopAttempt,
    TakePermit,
)
from pageslots.core.gathering import Gatherer
from pageslots.core.heaps import Timers
from pageslots.core.memory import Memory
from pageslots.core.model import (
    Country,
    Instant,
    Pod,
    PodUid,
    PoolSettings,
    Request,
    RequestState,
    RequestUid,
    Site,
    SlotUid,
)
from pageslots.core.numbers import Numbers
from pageslots.core.pending import Pending
from pageslots.core.queues import QueueId, Queues
from pageslots.core.records import Records
from pageslots.core.roster import Roster
from pageslots.core.runs import Outlook, look_at_running
from pageslots.core.slots import SlotFacts
from pageslots.core.sweeps import AT_ONCE


class Derived:
    """Facts, memory and pending deeds, and everything that is derived from them."""

    def __init__(self, settings: PoolSettings) -> None:
        self.settings = settings
        self.records = Records()
        self.memory = Memory()
        self.pending = Pending()
        self.gather = Gatherer(self.records, self.memory, self.pending)
        self.queues = Queues(settings, self._gate)
        self.roster = Roster(settings, self._slot_facts, self._orphaned)
        self.numbers = Numbers(settings, self.gather.number_facts)
        self.run_timers: Timers[RequestUid] = Timers()
        self.wait_timers: Timers[RequestUid] = Timers()
        self._dirty_runs: set[RequestUid] = set()
        self._outlooks: dict[RequestUid, Outlook] = {}
        self._placed: dict[RequestUid, tuple[Request, bool]] = {}
        self._starts: dict[QueueId, dict[RequestUid, Instant]] = {}
        self._start_of: dict[RequestUid, QueueId] = {}
        self._now = Instant(0)

    def refresh(self, now: Instant) -> None:
        """Bring everything derived up to `now`. Changes no fact; called by `plan` and by readers."""
        if now < self._now:
            self._start_over()
        if self.memory.since is None and now != self._now:
            self._touch_everything()  # what is unknown is counted from now as long as nothing was accepted
        if now != self._now:
            self._outlooks.clear()
        self._now = now
        for number in self.numbers.refresh(now, self.since):
            self._touch_holder(number)
        self.roster.refresh(self.since)
        self.queues.refresh(now)
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
        for view in self.roster.views.values():
            if view.facts.orphan is not None and view.warm_site is not None:
                self.queues.add_orphans(view.country, view.warm_site, 1)
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

    def _orphaned(self, country: Country, site: Site, count: int) -> None:
        self.queues.add_orphans(country, site, count)

    def _slot_facts(self, uid: SlotUid) -> SlotFacts | None:
        return self.gather.slot_facts(uid, self.numbers.stuck)

    def _gate(self, queue: QueueId, cooldown: int) -> Instant:
        """When the next attempt at the (country, site) may start; one of unknown history waits one cooldown."""
        last = self.memory.last_starts.get(queue)
        # without a cooldown too waiting counts from the last start
        gate = last + cooldown if last is not None else self.since + cooldown if cooldown else 0
        if queue in self._starts:
            gate = max(gate, max(self._starts[queue].values()) + cooldown)
        known = self.memory.backoffs.get(queue)
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

    def _place_new(self, request: Request) -> None:
        """Give a queued request that was unknown its place."""
        running = self.gather.is_starting(request.uid)
        self.queues.add(request, running=running)
        self._placed[request.uid] = (request, running)

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
        self.numbers.touch_all()
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
        begun = self.pending.started.get(uid)
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
