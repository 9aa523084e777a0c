"""Where each country stands at this instant: the figures that all later parts of a plan rest on."""

from collections import Counter
from dataclasses import dataclass, field

from pageslots.core import backoff, preparation
from pageslots.core.actions import NoteBackOff, NoteIdlingForgotten
from pageslots.core.draft import Draft
from pageslots.core.model import EPOCH, BackOff, Country, CountrySettings, Instant, PoolSettings, SlotUid
from pageslots.core.permits import Standing, Target, targets
from pageslots.core.queues import CountryQueues
from pageslots.core.roster import CountrySlots
from pageslots.core.slots import HOLDING, Role, SlotView


@dataclass(slots=True)
class Situation:
    """One country. `demand` and what follows from it is 0 for what may not start (suspended, backing off).

    `free`: slots that can take a request now. `started`, `granted`, `left`: what this plan has done already:
    requests started, permits granted, permits given up.
    """

    code: Country
    settings: CountrySettings
    queues: CountryQueues
    slots: CountrySlots
    runnable: bool = True
    backs_off: bool = False
    may_grow: bool = True
    demand: int = 0
    needed: int = 0
    wanted: int = 0
    kept: int = 0
    dispatchable: int = 0
    waited_ms: int | None = None
    started: int = 0
    granted: int = 0
    left: int = 0
    free: dict[SlotUid, SlotView] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """Permits that the country holds after what this plan has done."""
        return self.slots.held + self.granted - self.left

    def leave(self, draft: Draft, view: SlotView) -> None:
        """The slot's permit is on its way back from now on (at once, or when its request has ended)."""
        draft.taken.add(view.uid)
        self.free.pop(view.uid, None)
        if view.role in HOLDING and view.uid not in draft.leaving:
            draft.leaving.add(view.uid)
            self.left += 1

    def standing(self) -> Standing:
        """For the rules about permits."""
        roles = self.slots.by_role
        return Standing(
            self.code,
            needed=self.needed,
            wanted=self.wanted,
            slots=self.slots.counted,
            held=self.slots.held + self.granted - self.left,
            vacant=len(roles[Role.VACANT]) if self.may_grow else 0,
            preparing=len(roles[Role.PREPARING]) + self.granted,
            dispatchable=self.dispatchable - self.started,
            waited_ms=self.waited_ms,
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """All countries of the pool by code, P, and how many permits each country should hold."""

    situations: dict[Country, Situation]
    usable: int
    aims: dict[Country, Target]


def survey(draft: Draft) -> Survey:
    """Look at every country once."""
    index = draft.index
    settings = index.settings
    situations = {}
    left = Counter(index.roster.views[uid].country for uid in draft.leaving)
    if not settings.deleted:
        for code in sorted(settings.countries):
            situations[code] = _look(draft, settings, settings.countries[code])
            situations[code].left = left[code]
    usable = index.numbers.usable(index.memory.usable)
    aims = targets(usable, [s.standing() for s in situations.values()], settings.starvation_ms)
    return Survey(situations, usable, aims)


def _look(draft: Draft, settings: PoolSettings, country: CountrySettings) -> Situation:
    index, code = draft.index, country.code
    queues = index.queues.countries.get(code) or CountryQueues()
    slots = index.roster.country(code)
    found = Situation(code, country, queues, slots, free=dict(slots.of(Role.FREE)))
    known = _recover(draft, found)
    suspended = settings.suspended or country.suspended
    found.backs_off = backoff.holds_back(known)
    found.runnable = not suspended and not found.backs_off
    found.demand = queues.demand if found.runnable else queues.running
    found.needed = preparation.needed(slots.counted, found.demand)
    if found.runnable:
        found.dispatchable = queues.dispatchable
        _measure_waiting(draft, found, EPOCH)
    _forget_idling(draft, found)
    found.kept = preparation.kept(slots.counted, found.demand, country.min_ready)
    if found.backs_off and known is not None:
        _hold_back(draft, found, known, suspended=suspended)
    elif suspended:
        found.wanted = max(found.needed, min(slots.held, found.kept))
    else:
        found.wanted = preparation.wanted(
            slots.counted,
            found.demand,
            country.min_ready,
            settings.min_requests_per_slot,
            index.memory.idle_closings.get(code),
        )
    return found


def _measure_waiting(draft: Draft, found: Situation, not_before: Instant) -> None:
    """How long the country's longest waiting dispatchable request has waited, and when it would starve."""
    since = found.queues.waiting_since(draft.index.memory.country_starts.get(found.code))
    if since is not None and found.dispatchable:
        since = max(since, not_before)
        found.waited_ms = max(0, draft.now - since)
        draft.wake(Instant(since + draft.index.settings.starvation_ms + 1))


def _forget_idling(draft: Draft, found: Situation) -> None:
    closings = draft.index.memory.idle_closings.get(found.code)
    if closings is not None and preparation.forgotten(closings, found.demand):
        draft.note(NoteIdlingForgotten(found.code))


def _recover(draft: Draft, found: Situation) -> BackOff | None:
    """The country's back-off, unless a page has become ready since its last failure and its time is over."""
    known = draft.backoff(found.code, None)
    if known is None or not backoff.holds_back(known) or draft.now < known.until:
        return known
    for view in found.free.values():
        agent = view.facts.agent
        if agent is not None and agent.ready_since is not None and agent.ready_since > known.since:
            note = backoff.country_recovered(known, country=found.code)
            assert note is not None
            draft.note(note)
            return None
    return known


def _hold_back(draft: Draft, found: Situation, known: BackOff, *, suspended: bool) -> None:
    """Backing off: pages that are there stay, no new ones; when the time is over, one probe."""
    slots = found.slots
    good = len(slots.of(Role.FREE)) + len(slots.of(Role.BUSY))
    found.wanted = max(found.needed, min(slots.counted, good))
    found.may_grow = False
    if draft.now < known.until:
        draft.wake(known.until)
        return
    asked = found.queues.demand > found.queues.running or found.settings.min_ready > good
    if suspended or not asked:
        return
    found.wanted = min(slots.counted, found.wanted + 1)
    found.needed = min(found.wanted, found.needed + 1)
    found.may_grow = not slots.of(Role.PREPARING)
    if found.queues.dispatchable:
        # the probe works for a request that could start if it were ready: others yield to it as to that request
        found.dispatchable = 1
        _measure_waiting(draft, found, known.until)
    if not known.probing:
        draft.note(
            NoteBackOff(known.country, None, known.until, known.failures, probing=True, since=known.since)
        )
