"""A pool in virtual time: carries out what plans ask for, and checks the invariants after every step.

Objects, pods and agents are plain values here; deeds take as long as `latency` says, pods start and requests run as
long as the course says. The planner sees only what it would see: results of its deeds, and agents' words.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from tests.world import NOON, S

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
    NoteDraining,
    RequeueRequest,
    SendAttempt,
    StartAttempt,
    StopAttempt,
    TakePermit,
)
from pageslots.core.index import Index
from pageslots.core.model import (
    SECOND,
    Agent,
    AgentPhase,
    AttemptId,
    Country,
    DrainReason,
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
    SlotState,
    SlotUid,
    Version,
)
from pageslots.core.plan import Plan, plan
from pageslots.core.slots import MOVES

KINDLY = {"Idle", "Allocation", "YieldPermit", "Rollout", "Shrink", "Recycle"}
"""Reasons that never end a running request (invariant I6)."""


@dataclass
class Course:
    """How things go: durations in milliseconds, and how attempts end."""

    pod_ms: Callable[[], int] = lambda: 1_000
    prepare_ms: Callable[[], int] = lambda: 1_000
    run_ms: Callable[[Request], int] = lambda _: 2_000
    end: Callable[[Request, int], dict[str, Any]] = lambda _request, _attempt: {}
    deed_ms: Callable[[Deed], int] = lambda _: 5
    gives_up: Callable[[Country], bool] = lambda _: False


@dataclass
class Browser:
    """A pod and its agent."""

    pod: Pod
    agent: Agent | None = None
    running: AttemptId | None = None
    drained: bool = False


@dataclass
class Seen:
    """What happened, for assertions."""

    starts: list[tuple[int, Request, SlotUid]] = field(default_factory=list)
    plans: int = 0
    deeds: Counter[str] = field(default_factory=Counter)
    pods_created: Counter[Country] = field(default_factory=Counter)
    closings: list[tuple[int, SlotUid, str]] = field(default_factory=list)
    yields: int = 0
    most_pods: int = 0
    most_slots: int = 0
    waits: dict[RequestUid, int] = field(default_factory=dict)


class TinyWorld:
    """One pool and its planner. `rebuilt_every`: compare every nth plan with that of a rebuilt index."""

    def __init__(
        self, settings: PoolSettings, course: Course | None = None, *, rebuilt_every: int = 5
    ) -> None:
        self.now: Instant = NOON
        self.settings = settings
        self.course = course or Course()
        self.seen = Seen()
        self.slots: dict[SlotUid, Slot] = {}
        self.leases: dict[int, Permit] = {}
        self.browsers: dict[int, Browser] = {}
        self.requests: dict[RequestUid, Request] = {}
        self.index = Index(settings)
        self.up = True
        self.rebuilt_every = rebuilt_every
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._asked = 0
        self._wake: Instant | None = None
        self._dirty = True
        self._generation = 0
        self._running_sites: dict[tuple[Country, Site], dict[AttemptId, int]] = defaultdict(dict)
        self._states: dict[SlotUid, SlotState] = {}
        self._ghosts: dict[int, int] = {}
        self._ghost_runs: dict[RequestUid, int] = {}
        self._last_site_start: dict[tuple[Country, Site], int] = {}

    # --- from outside

    def ask(self, country: str, *, site: str | None = None, **more: Any) -> Request:
        """Somebody applies a request."""
        number = self._asked
        self._asked += 1
        uid = RequestUid(f"r{number:05}")
        request = Request(
            uid, uid, Country(country), Site(site or f"s{number}.example"), self.now, self._version(), **more
        )
        self._put_request(request)
        return request

    def edit(self, uid: RequestUid, **changes: Any) -> None:
        """Somebody edits a request."""
        self._put_request(replace(self.requests[uid], seen=self._version(), **changes))

    def delete(self, uid: RequestUid) -> None:
        """Somebody deletes a request."""
        del self.requests[uid]
        self.index.drop_request(uid)
        self._dirty = True

    def edit_pool(self, **changes: Any) -> None:
        """Somebody edits the pool."""
        self.settings = replace(self.settings, **changes)
        self.index.set_pool(self.settings)
        self._dirty = True

    def kill_pod(self, number: int, *, unseen: bool = False) -> None:
        """A pod's containers end, or (`unseen`) its node vanishes with it."""
        browser = self.browsers.get(number)
        if browser is None:
            return
        if unseen and browser.pod.phase is not PodPhase.TERMINATED:
            end = self.now + self.settings.grace_ms + 5 * S
            self._ghosts[number] = end
            if browser.running is not None and browser.agent is not None and browser.agent.report is not None:
                self._ghost_runs[browser.agent.report.request] = end
            self._finish_running(browser)
            self._remove_pod(browser.pod.uid, number)
        elif unseen:
            self._remove_pod(browser.pod.uid, number)
        else:
            self._finish_running(browser)
            browser.pod = replace(browser.pod, phase=PodPhase.TERMINATED)
            self.index.put_pod(browser.pod)
        self._dirty = True

    def restart(self) -> None:
        """The operator starts anew, knowing only what the API shows; agents answer a little later."""
        self._generation += 1
        self._states.clear()
        old = self.index
        self.index = Index(self.settings)
        for slot in self.slots.values():
            self.index.put_slot(slot)
        for lease in self.leases.values():
            self.index.put_permit(lease)
        for browser in self.browsers.values():
            self.index.put_pod(browser.pod)
            self.after(200, lambda uid=browser.pod.uid: self._poll(uid))
        for request in self.requests.values():
            if not request.state.finished:
                self.index.put_request(request)
        for backoff in old.backoffs():
            self.index.put_backoff(backoff)
        self._dirty = True

    # --- time

    def after(self, ms: int, what: Callable[[], None]) -> None:
        """Do it in `ms`."""
        self._serial += 1
        heappush(self._events, (self.now + max(0, ms), self._serial, what))

    def run(self, ms: int) -> "TinyWorld":
        """Let `ms` pass."""
        end = Instant(self.now + ms)
        steps = 0
        while True:
            if self._dirty:
                self._plan()
            due = [at for at in (self._events[0][0] if self._events else None, self._wake) if at is not None]
            if not due or min(due) > end:
                self.now = end
                return self
            self.now = Instant(max(self.now, min(due)))
            if self._wake is not None and self._wake <= self.now:
                self._dirty = True
            while self._events and self._events[0][0] <= self.now:
                heappop(self._events)[2]()
            steps += 1
            assert steps < 200_000, "a hot loop"

    def settle(self, limit_ms: int = 3_600 * S) -> "TinyWorld":
        """Run until every request has ended."""
        end = self.now + limit_ms
        while any(not r.state.finished for r in self.requests.values()):
            assert self.now < end, f"not settled: {self.unfinished()}"
            self.run(1 * S)
        return self

    def unfinished(self) -> list[Request]:
        """Requests that have not ended."""
        return [r for r in self.requests.values() if not r.state.finished]

    def _plan(self) -> None:
        self._dirty = False
        self._watch_states()
        made = plan(self.index, self.now)
        assert plan(self.index, self.now) == made, "a plan is a pure read"
        if self.seen.plans % self.rebuilt_every == 0:
            rebuilt = Index.rebuilt(self.index.facts())
            anew = plan(rebuilt, self.now)
            assert anew == made, f"an index kept change by change equals a rebuilt one: {made} != {anew}"
        self.index.accept(made, self.now)
        self._watch_states()
        self._wake = made.next_wake
        self.seen.plans += 1
        for action in made.actions:
            self.seen.deeds[type(action).__name__] += 1
            if isinstance(action, NoteDraining) and action.reason is DrainReason.YIELD_PERMIT:
                self.seen.yields += 1
            if not isinstance(action, Note):
                self._begin(action)
        again = plan(self.index, self.now)
        if not any(isinstance(action, Note) for action in made.actions):
            deeds = [a for a in again.actions if not isinstance(a, Note)]
            assert not deeds, f"asked for at once again: {deeds} after {made.actions}"

    def _watch_states(self) -> None:
        """Slots move as DESIGN section 2 says, and in no other way."""
        for uid in self.slots:
            view = self.index.slot_view(uid, self.now)
            assert view is not None
            pod, before = view.facts.pod, self._states.get(uid, view.state)
            if pod is not None and pod.phase is PodPhase.RUNNING and view.facts.agent is None:
                continue  # after a restart nobody knows yet what it does
            assert before is view.state or (before, view.state) in MOVES, f"{uid}: {before} to {view.state}"
            self._states[uid] = view.state

    def _begin(self, deed: Deed) -> None:
        if isinstance(deed, CloseSlot):
            self._check_closing(deed)
        generation = self._generation

        def carry_out() -> None:
            if generation != self._generation:
                return  # the operator that wanted it has died before it did it
            self._do(deed)
            self.index.settle(deed)
            self._dirty = True
            self.check()

        self.after(self.course.deed_ms(deed), carry_out)

    def _check_closing(self, deed: CloseSlot) -> None:
        self.seen.closings.append((self.now, deed.slot, deed.reason))
        if deed.reason in KINDLY:
            named = [r for r in self.requests.values() if r.attempt and r.attempt.slot == deed.slot]
            assert not named, f"{deed} although {named[0].uid} runs there"

    # --- deeds

    def _version(self) -> Version:
        self._serial += 1
        return Version(str(self._serial))

    def _put_request(self, request: Request) -> None:
        self.requests[request.uid] = request
        self.index.put_request(request)
        self._dirty = True

    def _do(self, deed: Deed) -> None:
        hands: dict[type, Callable[[Any], None]] = {
            CreateSlot: self._create_slot,
            DeleteSlot: self._delete_slot,
            TakePermit: self._take_permit,
            FreePermit: self._free_permit,
            CreatePod: self._create_pod,
            CloseSlot: self._close_slot,
            DeletePod: self._delete_pod,
            StartAttempt: self._start_attempt,
            SendAttempt: self._send_attempt,
            StopAttempt: self._stop_attempt,
            RequeueRequest: self._requeue_request,
            FinishRequest: self._finish_request,
        }
        hands[type(deed)](deed)

    def _create_slot(self, deed: CreateSlot) -> None:
        assert all(s.number != deed.number for s in self.slots.values())
        uid = SlotUid(f"slot-{deed.number}-{self._version()}")
        self.slots[uid] = Slot(uid, f"pool-slot-{deed.number}", deed.number, deed.country, self._version())
        self.index.put_slot(self.slots[uid])

    def _delete_slot(self, deed: DeleteSlot) -> None:
        del self.slots[deed.slot]
        self.index.drop_slot(deed.slot)

    def _take_permit(self, deed: TakePermit) -> None:
        lease = self.leases.get(deed.number)
        assert (None if lease is None else lease.seen) == deed.seen
        assert lease is None or lease.holder is None
        assert deed.number not in self.browsers
        assert self._ghosts.get(deed.number, 0) <= self.now, "I2: what ran there may still run"
        self.leases[deed.number] = Permit(deed.number, self._version(), deed.slot, deed.granted_for, self.now)
        self.index.put_permit(self.leases[deed.number])

    def _free_permit(self, deed: FreePermit) -> None:
        if deed.number in self.browsers:
            self.index.put_pod(self.browsers[deed.number].pod)
            return
        assert self.leases[deed.number].seen == deed.seen
        if deed.remove:
            del self.leases[deed.number]
            self.index.drop_permit(deed.number)
            return
        self.leases[deed.number] = Permit(deed.number, self._version())
        self.index.put_permit(self.leases[deed.number])

    def _create_pod(self, deed: CreatePod) -> None:
        if deed.number in self.browsers:
            self.index.put_pod(self.browsers[deed.number].pod)
            return
        uid = PodUid(f"pod-{deed.number}-{self._version()}")
        pod = Pod(
            deed.number,
            uid,
            deed.slot,
            PodPhase.STARTING,
            self.now,
            scheduled=self.now,
            revision=self.settings.revision,
        )
        self.browsers[deed.number] = Browser(pod)
        self.index.put_pod(pod)
        slot = self.slots.get(deed.slot)
        if slot is not None:
            self.seen.pods_created[slot.country] += 1
        self.after(self.course.pod_ms(), lambda: self._pod_runs(deed.number, uid))

    def _pod_runs(self, number: int, uid: PodUid) -> None:
        browser = self._browser(number, uid)
        if browser is None or browser.pod.phase is PodPhase.TERMINATED:
            return
        browser.pod = replace(browser.pod, phase=PodPhase.RUNNING)
        browser.agent = Agent(uid, AgentPhase.PREPARING, self.now, self.now)
        self.index.put_pod(browser.pod)
        self._poll(uid)
        self._keep_polling(uid)
        self.after(self.course.prepare_ms(), lambda: self._page_ready(number, uid))

    def _page_ready(self, number: int, uid: PodUid) -> None:
        browser = self._browser(number, uid)
        if browser is None or browser.agent is None or browser.drained:
            return
        slot = self.slots.get(browser.pod.owner) if browser.pod.owner else None
        if slot is not None and self.course.gives_up(slot.country):
            browser.agent = replace(browser.agent, phase=AgentPhase.GAVE_UP, consecutive_failures=7)
        else:
            browser.agent = replace(
                browser.agent, phase=AgentPhase.READY, ready_since=self.now, idle_since=self.now
            )
        self._poll(uid)

    def _browser(self, number: int, uid: PodUid) -> Browser | None:
        browser = self.browsers.get(number)
        return browser if browser is not None and browser.pod.uid == uid else None

    def _poll(self, uid: PodUid) -> None:
        """The operator hears what the agent says now."""
        for browser in self.browsers.values():
            if browser.pod.uid == uid and browser.agent is not None and browser.pod.phase is PodPhase.RUNNING:
                browser.agent = replace(browser.agent, contact=self.now, progress=self.now)
                self.index.put_agent(browser.agent)
                self._dirty = True

    def _keep_polling(self, uid: PodUid) -> None:
        """A long poll ends after 25 s at the latest."""
        if any(browser.pod.uid == uid for browser in self.browsers.values()):
            self._poll(uid)
            self.after(25 * S, lambda: self._keep_polling(uid))

    def _close_slot(self, deed: CloseSlot) -> None:
        browser = self._browser(deed.number, deed.pod)
        if browser is None:
            return
        if browser.running is not None and not deed.force:
            self._poll(deed.pod)
            return
        browser.drained = True
        if browser.agent is not None:
            browser.agent = replace(browser.agent, phase=AgentPhase.DRAINED)
            self._poll(deed.pod)
        self._begin_end(browser)

    def _delete_pod(self, deed: DeletePod) -> None:
        browser = self._browser(deed.number, deed.pod)
        if browser is not None:
            self._begin_end(browser)

    def _begin_end(self, browser: Browser) -> None:
        if browser.pod.deleting is not None:
            return
        browser.pod = replace(browser.pod, deleting=self.now)
        self.index.put_pod(browser.pod)
        self.after(300, lambda: self._containers_end(browser))

    def _containers_end(self, browser: Browser) -> None:
        if self._browser(browser.pod.number, browser.pod.uid) is None:
            return
        self._finish_running(browser)
        browser.pod = replace(browser.pod, phase=PodPhase.TERMINATED)
        self.index.put_pod(browser.pod)
        self._dirty = True
        self.after(10, lambda: self._remove_pod(browser.pod.uid, browser.pod.number))

    def _remove_pod(self, uid: PodUid, number: int) -> None:
        if self._browser(number, uid) is not None:
            del self.browsers[number]
            self.index.drop_pod(number, uid)
            self._dirty = True

    def _start_attempt(self, deed: StartAttempt) -> None:
        request = self.requests.get(deed.request)
        if request is None or request.seen != deed.seen:
            return
        assert request.state is RequestState.QUEUED
        attempt = RunningAttempt(
            AttemptId(f"{request.uid}-{deed.number}"), deed.number, deed.slot, deed.pod, self.now
        )
        self._put_request(
            replace(
                request,
                seen=self._version(),
                state=RequestState.RUNNING,
                attempt=attempt,
                attempts=deed.number,
                last_started=self.now,
                first_started=request.first_started or self.now,
                next_attempt=None,
            )
        )
        self._give(self.requests[request.uid])

    def _send_attempt(self, deed: SendAttempt) -> None:
        request = self.requests.get(deed.request)
        if request is not None and request.attempt is not None and request.attempt.id == deed.attempt:
            self._give(request)

    def _give(self, request: Request) -> None:
        attempt = request.attempt
        assert attempt is not None
        browser = next((b for b in self.browsers.values() if b.pod.uid == attempt.pod), None)
        if browser is None or browser.agent is None or browser.pod.phase is not PodPhase.RUNNING:
            return
        refused = browser.drained or browser.agent.phase is not AgentPhase.READY
        if refused or (browser.running is not None and browser.running != attempt.id):
            self._poll(attempt.pod)
            return
        if browser.agent.report is not None and browser.agent.report.id == attempt.id:
            self._poll(attempt.pod)
            return
        browser.running = attempt.id
        browser.agent = replace(
            browser.agent,
            phase=AgentPhase.RUNNING,
            warm_site=request.site,
            report=Report(attempt.id, request.uid, ended=False),
            idle_since=None,
            ran=browser.agent.ran + 1,
        )
        self._note_start(request, attempt)
        self._poll(attempt.pod)
        self.after(self.course.run_ms(request), lambda: self._attempt_ends(browser, attempt.id, {}))

    def _note_start(self, request: Request, attempt: RunningAttempt) -> None:
        key = (request.country, request.site)
        own = self.settings.sites.get(request.site)
        most = own.max_per_site if own and own.max_per_site is not None else self.settings.max_per_site
        cooldown = own.cooldown_ms if own and own.cooldown_ms is not None else self.settings.cooldown_ms
        others = [b for b in self.browsers.values() if b.running is not None and b.running != attempt.id]
        assert all(
            b.agent is None or b.agent.report is None or b.agent.report.request != request.uid for b in others
        ), f"I3: two attempts of {request.uid} at once"
        assert self._ghost_runs.get(request.uid, 0) <= self.now, (
            f"I3: the attempt of {request.uid} may still run"
        )
        running = self._running_sites[key]
        running[attempt.id] = self.now
        assert len(running) <= most, f"I8: {len(running)} attempts at {key} at once"
        last = self._last_site_start.get(key)
        assert last is None or attempt.started - last >= cooldown, (
            f"I8: {attempt.started - last} ms apart at {key}"
        )
        self._last_site_start[key] = attempt.started
        self.seen.starts.append((self.now, request, attempt.slot))
        self.seen.waits.setdefault(request.uid, self.now - request.created)

    def _attempt_ends(self, browser: Browser, attempt: AttemptId, forced: dict[str, Any]) -> None:
        if browser.running != attempt or browser.agent is None or browser.agent.report is None:
            return
        request = self.requests.get(browser.agent.report.request)
        number = int(attempt.rpartition("-")[2])
        end = forced or (self.course.end(request, number) if request is not None else {})
        self._finish_running(browser)
        fields = {"outcome": Outcome.OK, **end}
        if fields["outcome"] is Outcome.OK and not end:
            fields |= {"done": 1, "new_ok_pages": 1, "start_pages_ok": 1}
        browser.agent = replace(
            browser.agent,
            phase=AgentPhase.READY,
            report=replace(browser.agent.report, ended=True, **fields),
            idle_since=self.now,
        )
        self._poll(browser.pod.uid)

    def _finish_running(self, browser: Browser) -> None:
        if browser.running is not None:
            for running in self._running_sites.values():
                running.pop(browser.running, None)
            browser.running = None

    def _stop_attempt(self, deed: StopAttempt) -> None:
        browser = next((b for b in self.browsers.values() if b.pod.uid == deed.pod), None)
        if browser is None or browser.running != deed.attempt:
            self._poll(deed.pod)
            return
        end = {
            "outcome": Outcome.STOPPED,
            "suspended": deed.reason in ("Suspended", "Shutdown"),
            "deadline": deed.reason == "Deadline",
        }
        self.after(50, lambda: self._attempt_ends(browser, deed.attempt, end))

    def _requeue_request(self, deed: RequeueRequest) -> None:
        request = self.requests.get(deed.request)
        if request is None or request.seen != deed.seen:
            return
        counts = {} if deed.progressed else dict(request.since_progress)
        if deed.outcome is not None and deed.charged:
            counts[deed.outcome] = counts.get(deed.outcome, 0) + 1
        self._put_request(
            replace(
                request,
                seen=self._version(),
                state=RequestState.QUEUED,
                attempt=None,
                next_attempt=deed.next_attempt,
                since_progress=counts,
            )
        )

    def _finish_request(self, deed: FinishRequest) -> None:
        request = self.requests.get(deed.request)
        if request is None or request.seen != deed.seen:
            return
        assert not request.state.finished, "I4: a second verdict"
        self._put_request(
            replace(request, seen=self._version(), state=deed.state, attempt=None, finished=self.now)
        )

    # --- invariants

    def check(self) -> None:
        """What is true after every step."""
        self.seen.most_pods = max(self.seen.most_pods, len(self.browsers))
        for number, browser in self.browsers.items():
            lease = self.leases.get(number)
            holder = None if lease is None else lease.holder
            assert holder == browser.pod.owner, f"I1: pod {number} without its permit"
        numbers = [slot.number for slot in self.slots.values()]
        assert len(numbers) == len(set(numbers)), "I5: two slots of one name"
        self.seen.most_slots = max(self.seen.most_slots, len(numbers))

    def check_settled(self) -> None:
        """I11: permits held = live pods; no slot says that it runs."""
        held = {n for n, lease in self.leases.items() if lease.holder is not None}
        assert held == set(self.browsers), f"I11: permits {sorted(held)}, pods {sorted(self.browsers)}"
        states = {uid: self.index.slot_state(uid, self.now) for uid in self.slots}
        assert SlotState.RUNNING not in states.values()


def randomly(seed: int, low: int, high: int) -> Callable[..., int]:
    """Durations between low and high."""
    dice = random.Random(seed)
    return lambda *_: dice.randint(low, high)


__all__ = ["SECOND", "Course", "Plan", "TinyWorld", "randomly"]
