"""What the planner remembers beside the facts: what notes said, and what is known only because it was seen.

Kept by `Index`; part of its `Facts`, so that an index can be rebuilt. Lost with the process, except for what pools
and requests show in their status: every rule that reads it says what holds without it.
"""

from bisect import insort
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pageslots.core.actions import (
    Note,
    NoteAllocation,
    NoteBackOff,
    NoteDraining,
    NoteIdleClosing,
    NoteIdlingForgotten,
    NoteUnschedulable,
)
from pageslots.core.facts import Facts
from pageslots.core.model import (
    SECOND,
    Allocation,
    AttemptId,
    BackOff,
    Country,
    Drain,
    DrainReason,
    Finish,
    Gone,
    IdleClosings,
    Instant,
    PodUid,
    PoolSettings,
    Report,
    Request,
    RequestUid,
    Site,
    SlotUid,
)

PRUNE_EVERY_MS = 60 * SECOND


class Memory:
    """See `Facts` for the fields."""

    def __init__(self) -> None:
        self.since: Instant | None = None
        self.allocation: Allocation | None = None
        self.drains: dict[SlotUid, Drain] = {}
        self.idle_closings: dict[Country, IdleClosings] = {}
        self.backoffs: dict[tuple[Country, Site | None], BackOff] = {}
        self.usable: int | None = None
        self.last_starts: dict[tuple[Country, Site], Instant] = {}
        self.country_starts: dict[Country, Instant] = {}
        self.gone: dict[PodUid, Gone] = {}
        self.gone_at: dict[int, PodUid] = {}  # numbers whose permit waits for a vanished pod's last words
        self.closings: dict[PodUid, Instant] = {}
        self.last_words: dict[AttemptId, Report] = {}
        self._finishes: list[tuple[Instant, RequestUid, Country]] = []
        self._finished: set[RequestUid] = set()
        self._pruned = Instant(0)

    # --- starts

    def started(self, country: Country, site: Site, at: Instant) -> None:
        """An attempt at the (country, site) began."""
        key = (country, site)
        if at > self.last_starts.get(key, -1):
            self.last_starts[key] = at
        if at > self.country_starts.get(country, -1):
            self.country_starts[country] = at

    # --- pods that are no more

    def pod_gone(self, gone: Gone) -> None:
        """A pod is no more; its number's permit is not free yet."""
        self.gone[gone.pod] = gone
        if gone.holds:
            self.gone_at[gone.number] = gone.pod

    def permit_freed(self, number: int) -> None:
        """Nothing holds the number any more (or something new does)."""
        pod = self.gone_at.pop(number, None)
        if pod is not None:
            self.gone[pod] = replace(self.gone[pod], holds=False)

    @property
    def unstamped(self) -> bool:
        """Whether a pod went since the last accepted plan."""
        return any(gone.at is None for gone in self.gone.values())

    def page_gone(self, slot: SlotUid) -> None:
        """The slot has neither a permit nor one on the way: reasons to close its page are over."""
        drain = self.drains.get(slot)
        if drain is not None and drain.reason is not DrainReason.ALLOCATION:
            del self.drains[slot]

    def stamp(self, now: Instant) -> list[Gone]:
        """What went since the last accepted plan went now; tells which that was."""
        fresh = [gone for gone in self.gone.values() if gone.at is None]
        for gone in fresh:
            self.gone[gone.pod] = replace(gone, at=now)
        return fresh

    # --- finished requests, for allocation

    def finished(self, request: Request) -> None:
        """The request has come to its end."""
        if request.finished is None or request.uid in self._finished:
            return
        self._finished.add(request.uid)
        insort(self._finishes, (request.finished, request.uid, request.country))

    def finished_lately(self, since: Instant, most: int) -> dict[Country, int]:
        """Finished requests per country, of the newest `most` that finished at `since` or later."""
        counts: dict[Country, int] = {}
        left = most
        for at, _, country in reversed(self._finishes):
            if at < since or left <= 0:
                break
            counts[country] = counts.get(country, 0) + 1
            left -= 1
        return counts

    def finishes(self) -> tuple[Finish, ...]:
        """All remembered ones, oldest first."""
        return tuple(Finish(at, uid, country) for at, uid, country in self._finishes)

    # --- notes

    def apply(self, note: Note, pod_of: PodUid | None) -> None:
        """What a note says. `pod_of`: for NoteDraining, the pod that the slot has now."""
        match note:
            case NoteAllocation():
                self.allocation = Allocation(note.at, dict(note.slots), note.considered)
            case NoteDraining():
                if note.reason is None:
                    self.drains.pop(note.slot, None)
                else:
                    lasting = note.reason is DrainReason.ALLOCATION
                    self.drains[note.slot] = Drain(note.reason, None if lasting else pod_of)
            case NoteIdleClosing():
                known = self.idle_closings.get(note.country)
                count = 1 if known is None else known.count + 1
                self.idle_closings[note.country] = IdleClosings(count, note.demand)
            case NoteIdlingForgotten():
                self.idle_closings.pop(note.country, None)
            case NoteBackOff():
                key = (note.country, note.site)
                if note.until is None:
                    self.backoffs.pop(key, None)
                else:
                    self.backoffs[key] = BackOff(
                        note.country, note.site, note.until, note.failures, note.probing, note.since
                    )
            case NoteUnschedulable():
                self.usable = note.usable

    # --- bounds

    def prune(
        self,
        now: Instant,
        settings: PoolSettings,
        waiting: AbstractSet[tuple[Country, Site]],
        named_pods: AbstractSet[PodUid],
    ) -> None:
        """Forget what can't matter any more.

        `waiting`: the (country, site)s that have unfinished requests. `named_pods`: of Running requests.
        """
        self._pruned = now
        longest = max([settings.cooldown_ms, *(s.cooldown_ms or 0 for s in settings.sites.values())])
        old = now - longest
        for key in [k for k, at in self.last_starts.items() if at < old and k not in waiting]:
            del self.last_starts[key]
        kept = [f for f in self._finishes[-settings.sample_size :] if f[0] >= now - settings.window_ms]
        self._finishes = kept
        self._finished = {uid for _, uid, _ in kept}
        for gone_key in [k for k, b in self.backoffs.items() if _is_over(b, now, waiting)]:
            del self.backoffs[gone_key]
        for pod in [g.pod for g in self.gone.values() if not g.holds and g.pod not in named_pods]:
            del self.gone[pod]

    def is_prune_due(self, now: Instant) -> bool:
        """Whether it is worth looking for what can be forgotten."""
        return now >= self._pruned + PRUNE_EVERY_MS

    def restore(self, facts: Facts) -> None:
        """Become what `facts` tells."""
        self.since = facts.since
        self.allocation = facts.allocation
        self.drains = dict(facts.drains)
        self.idle_closings = dict(facts.idle_closings)
        self.backoffs = {(b.country, b.site): b for b in facts.backoffs}
        self.usable = facts.usable
        self.last_starts = dict(facts.last_starts)
        self.country_starts = dict(facts.country_starts)
        self.closings = dict(facts.closings)
        self.last_words = dict(facts.last_words)
        for gone in facts.gone:
            self.pod_gone(gone)
        self._finishes = [(f.at, f.request, f.country) for f in facts.finishes]
        self._finished = {f.request for f in facts.finishes}


def _is_over(backoff: BackOff, now: Instant, busy: AbstractSet[tuple[Country, Site]]) -> bool:
    """A site's back-off ends for good when it has been over for an hour and nobody asks for the site."""
    if backoff.site is None or (backoff.country, backoff.site) in busy:
        return False
    return backoff.until < now - 3_600 * SECOND
