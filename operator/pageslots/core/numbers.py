"""Permits and pods by number: which are free, which are out of use, which belong to nobody.

Fed by `Index`, read by `plan`. A number is free when its Lease is empty or absent *and* no pod of its name is known
(invariant I2); the doer looks at both again before it takes it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pageslots.core.heaps import Timers
from pageslots.core.model import Gone, Instant, Permit, Pod, PoolSettings
from pageslots.core.sweeps import Due, look_at_number, stuck_at


@dataclass(frozen=True, slots=True)
class NumberFacts:
    """All that is known about one number. `taking`, `freeing`: a TakePermit or FreePermit is under way."""

    permit: Permit | None
    pod: Pod | None
    gone: Gone | None
    taking: bool
    freeing: bool
    holder_known: bool
    owner_known: bool
    is_main: bool


class Numbers:
    """The state of every number that has a permit, a pod, or a deed under way."""

    def __init__(self, settings: PoolSettings, facts_of: Callable[[int], NumberFacts]) -> None:
        self._settings = settings
        self._facts_of = facts_of
        self._dirty: set[int] = set()
        self.occupied: set[int] = set()  # held, or with a pod of its name
        self._freeing: set[int] = set()
        self.unusable: set[int] = set()  # poisoned, foreign or stuck: held by no country
        self.stuck: set[int] = set()
        self._known: set[int] = set()
        self._dues: dict[int, list[Due]] = {}
        self._stuck_timers: Timers[int] = Timers()
        self._due_timers: Timers[int] = Timers()

    def use(self, settings: PoolSettings) -> None:
        """The pool's settings have changed."""
        self._settings = settings
        self._dirty.update(self._known)

    def touch_all(self) -> None:
        """Something about all numbers has changed."""
        self._dirty.update(self._known)

    def touch(self, number: int) -> None:
        """Something about this number has changed."""
        self._dirty.add(number)

    def refresh(self, now: Instant, since: Instant) -> list[int]:
        """Bring up to date what has changed; tells which numbers have become stuck or are no longer."""
        self._dirty.update(n for n in self._stuck_timers.due(now) if n not in self.stuck)
        turned: list[int] = []
        for number in self._dirty:
            was = number in self.stuck
            self._refresh(number, now, since)
            if was != (number in self.stuck):
                turned.append(number)
        self._dirty.clear()
        return turned

    def _refresh(self, number: int, now: Instant, since: Instant) -> None:
        facts = self._facts_of(number)
        permit, pod = facts.permit, facts.pod
        holder = None if permit is None else permit.holder
        poisoned = permit is not None and permit.poisoned
        foreign = pod is not None and pod.owner is None
        at = stuck_at(pod, self._settings)
        stuck = at is not None and at <= now
        self._stuck_timers.set(number, at)
        _put(self._known, number, present=permit is not None or pod is not None or facts.taking)
        _put(self._freeing, number, present=facts.freeing)
        _put(
            self.occupied,
            number,
            present=holder is not None or pod is not None or poisoned or facts.taking,
        )
        _put(self.unusable, number, present=poisoned or foreign or stuck)
        _put(self.stuck, number, present=stuck)
        dues = look_at_number(
            number,
            permit,
            pod,
            holder_known=facts.holder_known,
            owner_known=facts.owner_known,
            is_main=facts.is_main,
            settings=self._settings,
            gone=facts.gone,
            since=since,
        )
        if dues:
            self._dues[number] = dues
        else:
            self._dues.pop(number, None)
        self._due_timers.set(number, dues[0].at if dues else None)

    def due(self, now: Instant) -> Iterator[Due]:
        """What is due on numbers that no slot answers for, lowest first."""
        for number in self._due_timers.due(now):
            yield from self._dues[number]

    @property
    def ownerless(self) -> int:
        """Numbers that no slot answers for and that are being cleared."""
        return sum(number in self.occupied for number in self._dues)

    def next_after(self, now: Instant) -> Instant | None:
        """When time alone makes something due, or a terminating pod stuck."""
        instants = (self._stuck_timers.next_after(now), self._due_timers.next_after(now))
        return min((at for at in instants if at is not None), default=None)

    @property
    def held(self) -> int:
        """Usable permits that are held, or on their way from or to someone."""
        return len(self.occupied) - len(self.unusable)

    def usable(self, limit: int | None) -> int:
        """P: maxConcurrent without those out of use; `limit`: lowered further while pods can't be scheduled."""
        usable = max(0, self._settings.max_concurrent - len(self.unusable))
        return usable if limit is None else min(usable, limit)

    def free(self) -> Iterator[int]:
        """Numbers that may be granted, lowest first."""
        return (
            n
            for n in range(self._settings.max_concurrent)
            if n not in self.occupied and n not in self._freeing
        )


def _put(members: set[int], number: int, *, present: bool) -> None:
    if present:
        members.add(number)
    else:
        members.discard(number)
