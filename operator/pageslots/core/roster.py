"""All slots of a pool by country and role, kept so that a plan touches only those it decides about.

Fed by `Index`, read by `plan`. A slot's view is derived anew when something about it has changed.
"""

from collections.abc import Callable, Iterator

from pageslots.core.heaps import Timers
from pageslots.core.model import Country, Instant, PodPhase, PoolSettings, Site, SlotUid
from pageslots.core.slots import HOLDING, Role, SlotFacts, SlotView, view
from pageslots.core.sweeps import Due, look_at_slot


class CountrySlots:
    """One country's slots by role.

    `counted`: how many count as the country's. `held`: permits of slots that are not on their way out.
    `on_the_way`: permits that come back soon (those of stuck pods don't).
    """

    __slots__ = ("by_role", "counted", "held", "on_the_way")

    def __init__(self) -> None:
        self.by_role: list[dict[SlotUid, SlotView]] = [{} for _ in Role]
        self.counted = 0
        self.held = 0
        self.on_the_way = 0

    def of(self, role: Role) -> dict[SlotUid, SlotView]:
        """The slots of that role, in no particular order."""
        return self.by_role[role]

    def add(self, view: SlotView) -> None:
        """A slot of the country."""
        self.by_role[view.role][view.uid] = view
        self._count(view, 1)

    def remove(self, view: SlotView) -> None:
        """The opposite of `add`."""
        del self.by_role[view.role][view.uid]
        self._count(view, -1)

    def _count(self, view: SlotView, one: int) -> None:
        if view.counted:
            self.counted += one
        if view.role in HOLDING:
            self.held += one
        elif view.role is Role.DRAINING or (view.role is Role.LEAVING and not view.facts.stuck):
            self.on_the_way += one


class Roster:
    """The views of all slots.

    `facts_of` collects what is known about one slot; None: it is no more. `orphaned` is told of attempts that a
    slot runs without a request (country, site, one more or one less).
    """

    def __init__(
        self,
        settings: PoolSettings,
        facts_of: Callable[[SlotUid], SlotFacts | None],
        orphaned: Callable[[Country, Site, int], None],
    ) -> None:
        self._settings = settings
        self._facts_of = facts_of
        self._orphaned = orphaned
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
            if facts is None:
                self.timers.set(uid, None)
            else:
                self._add(view(facts, self._settings), since)
        self._dirty.clear()

    def _remove(self, uid: SlotUid) -> None:
        old = self.views.pop(uid, None)
        if old is None:
            return
        self.countries[old.country].remove(old)
        self._count_orphan(old, -1)
        self.outdated.pop(uid, None)
        self.unscheduled.pop(uid, None)
        self._dues.pop(uid, None)

    def _add(self, new: SlotView, since: Instant) -> None:
        uid = new.uid
        self.views[uid] = new
        self.country(new.country).add(new)
        self._count_orphan(new, 1)
        pod = new.facts.pod
        if pod is not None and new.role is not Role.LEAVING:
            if pod.revision != self._settings.revision:
                self.outdated[uid] = new
            if pod.phase is PodPhase.PENDING and pod.scheduled is None:
                self.unscheduled[uid] = new
        dues = look_at_slot(new, self._settings, since)
        if dues:
            self._dues[uid] = dues
        self.timers.set(uid, dues[0].at if dues else None)

    def _count_orphan(self, view: SlotView, one: int) -> None:
        if view.facts.orphan is not None and view.warm_site is not None:
            self._orphaned(view.country, view.warm_site, one)

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
