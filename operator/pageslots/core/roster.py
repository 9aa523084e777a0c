"""All slots of a pool by country and role, kept so that a plan touches only those it decides about.

Fed by `Index`, read by `plan`. A slot's view is derived anew when something about it has changed.
"""

from collections.abc import Callable, Iterator

from pageslots.core.heaps import Timers
from pageslots.core.model import Country, Instant, PodPhase, PoolSettings, SlotUid
from pageslots.core.slots import HOLDING, Role, SlotFacts, SlotView, view
from pageslots.core.sweeps import Due, look_at_slot


class CountrySlots:
    """One country's slots by role, and how many count as the country's."""

    __slots__ = ("by_role", "counted")

    def __init__(self) -> None:
        self.by_role: dict[Role, dict[SlotUid, SlotView]] = {role: {} for role in Role}
        self.counted = 0

    def of(self, role: Role) -> dict[SlotUid, SlotView]:
        """The slots of that role, in no particular order."""
        return self.by_role[role]

    @property
    def held(self) -> int:
        """Permits of slots that are not on their way out."""
        return sum(len(self.by_role[role]) for role in HOLDING)

    @property
    def on_the_way(self) -> int:
        """Permits that come back soon (those of stuck pods don't)."""
        leaving = sum(not v.facts.stuck for v in self.by_role[Role.LEAVING].values())
        return leaving + len(self.by_role[Role.DRAINING])


class Roster:
    """The views of all slots. `facts_of` collects what is known about one slot; None: it is no more."""

    def __init__(self, settings: PoolSettings, facts_of: Callable[[SlotUid], SlotFacts | None]) -> None:
        self._settings = settings
        self._facts_of = facts_of
        self._dirty: set[SlotUid] = set()
        self.views: dict[SlotUid, SlotView] = {}
        self.countries: dict[Country, CountrySlots] = {}
        self.timers: Timers[SlotUid] = Timers()
        self._dues: dict[SlotUid, list[Due]] = {}
        self.outdated: dict[SlotUid, SlotView] = {}
        self.unscheduled: dict[SlotUid, SlotView] = {}

    def country(self, code: Country) -> CountrySlots:
        """The country's slots, made when first asked for."""
        known = self.countries.get(code)
        if known is None:
            known = self.countries[code] = CountrySlots()
        return known

    def use(self, settings: PoolSettings) -> None:
        """The pool's settings have changed."""
        self._settings = settings
        self.touch_all()

    def touch(self, uid: SlotUid) -> None:
        """Something about this slot has changed."""
        self._dirty.add(uid)

    def touch_all(self) -> None:
        """Something about all slots has changed."""
        self._dirty.update(self.views)

    def refresh(self, since: Instant) -> None:
        """Derive the views of what has changed anew."""
        for uid in self._dirty:
            self._remove(uid)
            facts = self._facts_of(uid)
            if facts is not None:
                self._add(view(facts, self._settings), since)
        self._dirty.clear()

    def _remove(self, uid: SlotUid) -> None:
        old = self.views.pop(uid, None)
        if old is None:
            return
        slots = self.country(old.country)
        del slots.by_role[old.role][uid]
        slots.counted -= old.counted
        self.outdated.pop(uid, None)
        self.unscheduled.pop(uid, None)
        self._dues.pop(uid, None)
        self.timers.set(uid, None)

    def _add(self, new: SlotView, since: Instant) -> None:
        uid = new.uid
        self.views[uid] = new
        slots = self.country(new.country)
        slots.by_role[new.role][uid] = new
        slots.counted += new.counted
        pod = new.facts.pod
        if pod is not None and new.role is not Role.LEAVING:
            if pod.revision != self._settings.revision:
                self.outdated[uid] = new
            if pod.phase is PodPhase.PENDING and pod.scheduled is None:
                self.unscheduled[uid] = new
        dues = look_at_slot(new, self._settings, since)
        if dues:
            self._dues[uid] = dues
            self.timers.set(uid, dues[0].at)

    def due(self, now: Instant) -> Iterator[tuple[SlotView, Due]]:
        """What is due on slots, by slot number."""
        views = [self.views[uid] for uid in self.timers.due(now)]
        for each in sorted(views, key=lambda v: v.facts.slot.number):
            for due in self._dues[each.uid]:
                if due.at <= now:
                    yield each, due

    def all_of(self, role: Role) -> Iterator[SlotView]:
        """The slots of that role in all countries, in no particular order."""
        for slots in self.countries.values():
            yield from slots.by_role[role].values()
