"""Requests by country and site, kept so that demand and the next request cost nothing to ask for.

Fed by `Index` change by change, read by `plan`. A queue per (country, site); what time changes (a retry time that
comes, a cooldown that ends) is brought up to date by `refresh(now)`, at the cost of what changed.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from pageslots.core.dispatch import Place, QueueKey, place, queue_key, runnable_since
from pageslots.core.heaps import Timers, in_order
from pageslots.core.model import SECOND, Country, Instant, PoolSettings, Request, RequestUid, Site

SOON_MS = 60 * SECOND
"""Demand counts what becomes runnable within this time."""

QueueId = tuple[Country, Site]


class Waiter:
    """A request in its queue. Left behind in heaps when it leaves (`alive` False)."""

    __slots__ = ("alive", "at", "due", "place", "since", "uid")

    def __init__(self, request: Request) -> None:
        at = request.next_attempt
        self.uid: RequestUid = request.uid
        self.place: Place = place(request)
        self.at: Instant | None = at
        self.since: Instant = request.created if at is None else runnable_since(request)
        self.alive = True
        self.due = at is None

    def __lt__(self, other: "Waiter") -> bool:
        """Heaps compare waiters only when one request is in them twice: any order will do."""
        return False


class SiteQueue:
    """The requests of one (country, site).

    `orphans`: attempts that no request names any more and that have not ended yet: the site still bears them.
    `by_age` exists only while the order of the queue is not that of age anyhow (other priorities, retries).
    """

    __slots__ = (
        "_priority",
        "age",
        "by_age",
        "country",
        "demand",
        "dispatchable",
        "due",
        "due_count",
        "eligible",
        "id",
        "key",
        "later",
        "later_count",
        "orphans",
        "running",
        "site",
    )

    def __init__(self, country: Country, site: Site) -> None:
        self.id: QueueId = (country, site)
        self.country = country
        self.site = site
        self.due: list[tuple[Place, Waiter]] = []
        self.by_age: list[tuple[Instant, RequestUid, Waiter]] | None = None
        self._priority: int | None = None
        self.later: list[tuple[Instant, RequestUid, Waiter]] = []
        self.due_count = 0
        self.later_count = 0
        self.running = 0
        self.orphans = 0
        self.eligible = Instant(0)
        self.demand = 0
        self.dispatchable = 0
        self.key: QueueKey | None = None
        self.age: Instant | None = None

    @property
    def empty(self) -> bool:
        """Nothing waits and nothing runs."""
        return not (self.due_count or self.later_count or self.running or self.orphans)

    def add(self, waiter: Waiter) -> None:
        """A request joins."""
        if waiter.due:
            self.due_count += 1
            self._push(waiter)
        else:
            assert waiter.at is not None
            self.later_count += 1
            heappush(self.later, (waiter.at, waiter.uid, waiter))

    def _push(self, waiter: Waiter) -> None:
        priority = waiter.place[0]
        if self.by_age is None and (self._priority not in (None, priority) or waiter.at is not None):
            self.by_age = [(w.since, w.uid, w) for _, w in self.due if w.alive]
            heapify(self.by_age)
        self._priority = priority
        heappush(self.due, (waiter.place, waiter))
        if self.by_age is not None:
            heappush(self.by_age, (waiter.since, waiter.uid, waiter))

    def remove(self, waiter: Waiter) -> None:
        """A request leaves."""
        waiter.alive = False
        if waiter.due:
            self.due_count -= 1
        else:
            self.later_count -= 1

    def advance(self, now: Instant) -> None:
        """Requests whose retry time has come are due; what has left is swept off the tops."""
        if not self.later and self.by_age is None and len(self.due) == self.due_count:
            return  # nothing has left, nothing comes
        while self.later and (self.later[0][0] <= now or not self.later[0][2].alive):
            _, _, waiter = heappop(self.later)
            if waiter.alive:
                waiter.due = True
                self.later_count -= 1
                self.due_count += 1
                self._push(waiter)
        while self.due and not self.due[0][1].alive:
            heappop(self.due)
        if self.by_age is not None:
            while self.by_age and not self.by_age[0][2].alive:
                heappop(self.by_age)
            if len(self.by_age) > 2 * self.due_count + 32:
                self.by_age = sorted(entry for entry in self.by_age if entry[2].alive)
        if len(self.due) > 2 * self.due_count + 32:
            self.due = sorted(entry for entry in self.due if entry[1].alive)
        if not self.due:
            self.by_age, self._priority = None, None

    def since(self) -> Instant:
        """Since when the longest waiting due request waits; there must be one."""
        return self.due[0][1].since if self.by_age is None else self.by_age[0][0]

    def heads(self) -> Iterator[Waiter]:
        """The due requests in their order."""
        return (waiter for _, waiter in in_order(self.due) if waiter.alive)

    def oldest(self) -> Instant | None:
        """When the longest waiting request was created (as far as retries don't hide it)."""
        first = next(self.heads(), None)
        later = next((w for _, _, w in in_order(self.later) if w.alive), None)
        return min((w.place[1] for w in (first, later) if w is not None), default=None)

    def soon(self, until: Instant, most: int) -> int:
        """Waiting requests that are due at `until`, counted up to `most`."""
        count = self.due_count
        if self.later and count < most:
            for at, _, waiter in in_order(self.later):
                if at > until or count >= most:
                    break
                count += waiter.alive
        return min(count, most)

    def next_change(self, now: Instant, most: int) -> Instant | None:
        """When time alone changes this queue's figures next."""
        gate = self.eligible
        if not self.later:
            if gate <= now or not self.due_count:
                return None
            return Instant(gate - SOON_MS) if gate - SOON_MS > now else gate
        if not (self.due_count or self.later_count):
            return None
        instants = [gate, Instant(gate - SOON_MS), self.later[0][0]]
        if self.due_count < most:
            soonest = zip(in_order(self.later), range(most + 1), strict=False)
            instants.extend(Instant(at - SOON_MS) for (at, _, _), _ in soonest)
        return min((at for at in instants if at > now), default=None)


class CountryQueues:
    """Sums over the queues of one country, and its queues in order."""

    __slots__ = ("ages", "demand", "dispatchable", "queues", "ready", "running", "unfinished", "waiting")

    def __init__(self) -> None:
        self.queues: dict[Site, SiteQueue] = {}
        self.unfinished = 0
        self.running = 0
        self.waiting = 0
        self.demand = 0
        self.dispatchable = 0
        self.ready: list[tuple[QueueKey, Site]] = []
        self.ages: list[tuple[Instant, Site]] = []

    def in_line(self) -> Iterator[tuple[QueueKey, SiteQueue]]:
        """The queues that can start a request this instant, the next first."""
        last: tuple[QueueKey, Site] | None = None
        for entry in in_order(self.ready):
            queue = self.queues.get(entry[1])
            if queue is not None and queue.key == entry[0] and entry != last:
                yield entry[0], queue
            last = entry

    def waiting_since(self, last_start: Instant | None) -> Instant | None:
        """Since when the longest waiting dispatchable request waits; no longer than since the last start."""
        if not self.ages:
            return None
        age = self.ages[0][0]  # `sweep` keeps the top current
        return age if last_start is None else max(age, last_start)

    def oldest(self) -> Instant | None:
        """When the longest waiting queued request was created, whatever holds it back."""
        return min((at for queue in self.queues.values() if (at := queue.oldest()) is not None), default=None)

    def sweep(self) -> None:
        """Take what is out of date off the tops, and rebuild heaps that are mostly out of date."""
        queues = self.queues
        while self.ready and not self._is_current(self.ready[0]):
            heappop(self.ready)
        while self.ages and not self._is_age(self.ages[0]):
            heappop(self.ages)
        if len(self.ready) > 2 * len(queues) + 32:
            self.ready = sorted({entry for entry in self.ready if self._is_current(entry)})
        if len(self.ages) > 2 * len(queues) + 32:
            self.ages = sorted({entry for entry in self.ages if self._is_age(entry)})

    def _is_current(self, entry: tuple[QueueKey, Site]) -> bool:
        queue = self.queues.get(entry[1])
        return queue is not None and queue.key == entry[0]

    def _is_age(self, entry: tuple[Instant, Site]) -> bool:
        queue = self.queues.get(entry[1])
        return queue is not None and queue.age == entry[0]


class Queues:
    """All queues of a pool. `gate` tells when a (country, site) with that cooldown may start its next attempt."""

    def __init__(self, settings: PoolSettings, gate: Callable[[QueueId, int], Instant]) -> None:
        self._settings = settings
        self._usual = (settings.max_per_site, settings.cooldown_ms, False)
        self._gate = gate
        self.countries: dict[Country, CountryQueues] = {}
        self.timers: Timers[QueueId] = Timers()
        self._dirty: set[SiteQueue] = set()
        self._waiters: dict[RequestUid, Waiter] = {}
        self.unfinished = 0

    def country(self, code: Country) -> CountryQueues:
        """The country's queues, made when first asked for."""
        known = self.countries.get(code)
        if known is None:
            known = self.countries[code] = CountryQueues()
        return known

    def queue(self, country: Country, site: Site) -> SiteQueue:
        """The queue, made when first asked for."""
        queues = self.country(country).queues
        known = queues.get(site)
        if known is None:
            known = queues[site] = SiteQueue(country, site)
        return known

    def use(self, settings: PoolSettings) -> None:
        """The pool's settings have changed."""
        self._settings = settings
        self._usual = (settings.max_per_site, settings.cooldown_ms, False)
        self.touch_all()

    def touch(self, country: Country, site: Site) -> None:
        """Something about this queue has changed."""
        known = self.countries.get(country)
        queue = None if known is None else known.queues.get(site)
        if queue is not None:
            self._dirty.add(queue)

    def touch_all(self) -> None:
        """Something about all queues has changed."""
        for known in self.countries.values():
            self._dirty.update(known.queues.values())

    def add(self, request: Request, *, running: bool) -> None:
        """An unfinished request; `running` also while its start is under way."""
        country = self.countries.get(request.country) or self.country(request.country)
        queue = country.queues.get(request.site) or self.queue(request.country, request.site)
        if not request.suspended:
            country.unfinished += 1
            self.unfinished += 1
        if running:
            queue.running += 1
            country.running += 1
        elif is_waiting(request):
            waiter = self._waiters[request.uid] = Waiter(request)
            queue.add(waiter)
            country.waiting += 1
        self._dirty.add(queue)

    def remove(self, request: Request, *, running: bool) -> None:
        """The opposite of `add`, with the same arguments."""
        country = self.country(request.country)
        queue = self.queue(request.country, request.site)
        if not request.suspended:
            country.unfinished -= 1
            self.unfinished -= 1
        if running:
            queue.running -= 1
            country.running -= 1
        elif is_waiting(request):
            queue.remove(self._waiters.pop(request.uid))
            country.waiting -= 1
        self._dirty.add(queue)

    def add_orphans(self, country: Country, site: Site, count: int) -> None:
        """So many more (or fewer) attempts run at the site without a request."""
        queue = self.queue(country, site)
        queue.orphans += count
        self._dirty.add(queue)

    def refresh(self, now: Instant) -> None:
        """Bring figures up to date, at the cost of what has changed and what has become due."""
        for country_site in self.timers.due(now):
            self.touch(*country_site)
        touched = set()
        soon = Instant(now + SOON_MS)
        for queue in self._dirty:
            country = self.countries[queue.country]
            self._refresh(country, queue, now, soon)
            touched.add(country)
        self._dirty.clear()
        for country in touched:
            country.sweep()

    def _refresh(self, country: CountryQueues, queue: SiteQueue, now: Instant, soon: Instant) -> None:
        queue.advance(now)
        most, cooldown, suspended = self.limits(queue.site)
        room = max(0, most - queue.running - queue.orphans)
        gate = queue.eligible = self._gate(queue.id, cooldown)
        demand, dispatchable = queue.running, 0
        if not suspended and room:
            if gate <= soon:
                demand += queue.soon(soon, room)
            if gate <= now:
                dispatchable = min(queue.due_count, 1 if cooldown else room)
        country.demand += demand - queue.demand
        country.dispatchable += dispatchable - queue.dispatchable
        queue.demand, queue.dispatchable = demand, dispatchable
        if dispatchable or queue.key is not None:
            self._line_up(country, queue, gate)
        self.timers.set(queue.id, queue.next_change(now, most))
        if queue.empty:
            country.queues.pop(queue.site, None)

    def _line_up(self, country: CountryQueues, queue: SiteQueue, gate: Instant) -> None:
        key: QueueKey | None = None
        age: Instant | None = None
        if queue.dispatchable:
            head = queue.due[0][1]
            key = queue_key(head.place, max(head.since, gate))
            age = max(queue.since(), gate)
        if key != queue.key:
            queue.key = key
            if key is not None:
                heappush(country.ready, (key, queue.site))
        if age != queue.age:
            queue.age = age
            if age is not None:
                heappush(country.ages, (age, queue.site))

    def ids(self) -> Iterator[QueueId]:
        """All queues that have a request."""
        return ((code, site) for code, known in self.countries.items() for site in known.queues)

    def limits(self, site: Site) -> tuple[int, int, bool]:
        """maxPerSite, cooldown in milliseconds, and whether the site is suspended."""
        settings = self._settings
        own = settings.sites.get(site) if settings.sites else None
        if own is None:
            return self._usual
        return (
            settings.max_per_site if own.max_per_site is None else own.max_per_site,
            settings.cooldown_ms if own.cooldown_ms is None else own.cooldown_ms,
            own.suspended,
        )


def is_waiting(request: Request) -> bool:
    """Whether a queued request wants to be started at all."""
    return not (request.suspended or request.stop or request.deleted)
