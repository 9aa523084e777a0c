"""What an index shows to status, tables, metrics and reasons: read-only, and the same that decisions rest on."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pageslots.core.counting import CountryCounts, counts
from pageslots.core.derived import Derived
from pageslots.core.model import (
    Agent,
    BackOff,
    Country,
    Drain,
    Instant,
    Permit,
    Pod,
    PodUid,
    Request,
    RequestState,
    RequestUid,
    Slot,
    SlotState,
    SlotUid,
)
from pageslots.core.slots import SlotView


class Readable(Derived):
    """The read side of `Index`."""

    @property
    def requests(self) -> Mapping[RequestUid, Request]:
        """All known requests, finished ones too."""
        return MappingProxyType(self.records.requests)

    @property
    def slots(self) -> Mapping[SlotUid, Slot]:
        """All page slots."""
        return MappingProxyType(self.records.slots)

    @property
    def permits(self) -> Mapping[int, Permit]:
        """All permits that have a Lease, by number."""
        return MappingProxyType(self.records.permits)

    @property
    def pods(self) -> Mapping[int, Pod]:
        """All pods, by number."""
        return MappingProxyType(self.records.pods)

    @property
    def agents(self) -> Mapping[PodUid, Agent]:
        """The agents' latest answers, by pod."""
        return MappingProxyType(self.records.agents)

    def queued_requests(self) -> Iterator[tuple[RequestUid, Request]]:
        """All queued requests, the longest known first."""
        return (
            (uid, request)
            for uid, request in self.records.requests.items()
            if request.state is RequestState.QUEUED
        )

    def running_requests(self) -> Iterator[Request]:
        """All Running requests."""
        return iter(self.records.running.values())

    def pod_number(self, uid: PodUid) -> int | None:
        """The number of that pod, if it exists."""
        return self.records.number_of.get(uid)

    def slot_view(self, uid: SlotUid, now: Instant | None = None) -> SlotView | None:
        """A slot as decisions see it; None: there is none."""
        self.refresh(self._now if now is None else now)
        return self.roster.views.get(uid)

    def slot_state(self, uid: SlotUid, now: Instant | None = None) -> SlotState:
        """A slot's state; of one that doesn't exist: NoPage."""
        known = self.slot_view(uid, now)
        return SlotState.NO_PAGE if known is None else known.state

    def counts(self, now: Instant | None = None) -> Mapping[Country, CountryCounts]:
        """Figures of every country of the pool, as of `now` (None: of the last plan)."""
        return counts(self, self._now if now is None else now)

    def backoffs(self) -> tuple[BackOff, ...]:
        """All back-offs, over ones too: they count failures in a row."""
        return tuple(self.memory.backoffs.values())

    def draining(self, uid: SlotUid) -> Drain | None:
        """Why the slot takes no further request."""
        return self.memory.drains.get(uid)
