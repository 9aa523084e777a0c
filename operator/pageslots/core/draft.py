"""A plan in the making: its actions so far, and the earliest instant at which there may be more.

What is pending already is not asked for again; what changed nothing when it was asked for is asked for again only
after a pause; deeds that would get in each other's way wait for each other.
"""

from collections.abc import Hashable

from pageslots.core.actions import (
    Action,
    CloseSlot,
    CreatePod,
    Deed,
    FreePermit,
    Note,
    NoteBackOff,
    Plan,
    StartAttempt,
)
from pageslots.core.derived import Derived
from pageslots.core.model import BackOff, Country, Instant, RequestUid, Site, SlotUid
from pageslots.core.pending import key_of


class Draft:
    """Collects actions.

    `taken`: slots that this plan has already decided about. `leaving`: those of them whose permit their country
    gives up by this plan. `kept`: draining ones that this plan keeps. `ended`: requests with a verdict.
    """

    def __init__(self, index: Derived, now: Instant) -> None:
        self.index = index
        self.now = now
        self.taken: set[SlotUid] = set()
        self.leaving: set[SlotUid] = set()
        self.kept: set[SlotUid] = set()
        self.ended: set[RequestUid] = set()
        self._actions: list[Action] = []
        self._keys: set[tuple[Hashable, ...]] = set()
        self._backoffs: dict[tuple[Country, Site | None], BackOff | None] = {}
        self._next_wake: Instant | None = None

    def wake(self, at: Instant | None) -> None:
        """The plan may differ from `at` on, without news."""
        if at is not None and at > self.now and (self._next_wake is None or at < self._next_wake):
            self._next_wake = at

    def emit(self, deed: Deed) -> bool:
        """Ask for a deed. False: it is under way, has just been tried, or something else must end first."""
        key = key_of(deed)
        if key in self._keys or self.index.pending.get(*key) is not None or self._must_wait(deed):
            return False
        again = self.index.pending.again_at(deed, self.index.settings.dispatch_ms)
        if again is not None and again > self.now:
            self.wake(again)
            return False
        self._keys.add(key)
        self._actions.append(deed)
        return True

    def _must_wait(self, deed: Deed) -> bool:
        pending = self.index.pending
        match deed:
            case FreePermit():
                return (
                    pending.get("CreatePod", deed.number) is not None
                    or pending.get("TakePermit", deed.number) is not None
                )
            case CreatePod():
                return pending.get("FreePermit", deed.number) is not None
            case CloseSlot():
                return pending.get("DeletePod", deed.pod) is not None
            case StartAttempt():
                return pending.get("Verdict", deed.request) is not None
            case _:
                return False

    def note(self, note: Note) -> None:
        """Change the planner's memory; what follows from that is planned right after it holds."""
        self._actions.append(note)
        self.wake(Instant(self.now + 1))
        if isinstance(note, NoteBackOff):
            self._backoffs[(note.country, note.site)] = (
                None
                if note.until is None
                else BackOff(note.country, note.site, note.until, note.failures, note.probing, note.since)
            )

    def backoff(self, country: Country, site: Site | None) -> BackOff | None:
        """The back-off as it will be after this plan."""
        key = (country, site)
        if key in self._backoffs:
            return self._backoffs[key]
        return self.index.memory.backoffs.get(key)

    def done(self) -> Plan:
        """The plan."""
        return Plan(tuple(self._actions), self._next_wake)
