"""The raw facts by their ids, and who points at whom. No decisions; `Index` keeps the rest in step with it."""

from collections.abc import Collection, Hashable, Iterable
from typing import Generic, TypeVar

from pageslots.core.model import (
    Agent,
    Permit,
    Pod,
    PodUid,
    Request,
    RequestState,
    RequestUid,
    Slot,
    SlotUid,
)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class Groups(Generic[K, V]):
    """Sets of values by key; a key without values takes no room."""

    def __init__(self) -> None:
        self._members: dict[K, set[V]] = {}

    def of(self, key: K) -> Collection[V]:
        """The values of a key."""
        return self._members.get(key, ())

    def __contains__(self, key: K) -> bool:
        return key in self._members

    def keys(self) -> Iterable[K]:
        """The keys that have values."""
        return self._members.keys()

    def move(self, value: V, old: K | None, new: K | None) -> None:
        """The value leaves one key (None: it had none) and joins another."""
        if old == new:
            return
        if old is not None:
            members = self._members[old]
            members.discard(value)
            if not members:
                del self._members[old]
        if new is not None:
            self._members.setdefault(new, set()).add(value)


class Records:
    """Facts as put, and the relations between them."""

    def __init__(self) -> None:
        self.requests: dict[RequestUid, Request] = {}
        self.running: dict[RequestUid, Request] = {}
        self.slots: dict[SlotUid, Slot] = {}
        self.permits: dict[int, Permit] = {}
        self.pods: dict[int, Pod] = {}
        self.agents: dict[PodUid, Agent] = {}
        self.number_of: dict[PodUid, int] = {}
        self.held_by: Groups[SlotUid, int] = Groups()
        self.owned_by: Groups[SlotUid, int] = Groups()
        self.named_slot: Groups[SlotUid, RequestUid] = Groups()
        self.named_pod: Groups[PodUid, RequestUid] = Groups()

    def set_request(self, uid: RequestUid, new: Request | None) -> Request | None:
        """Put or drop a request; the one known before."""
        old = self.requests.get(uid)
        if new is None:
            self.requests.pop(uid, None)
        else:
            self.requests[uid] = new
        if new is not None and new.state is RequestState.RUNNING:
            self.running[uid] = new
        else:
            self.running.pop(uid, None)
        was = None if old is None else old.attempt
        is_ = None if new is None or new.state is not RequestState.RUNNING else new.attempt
        if old is not None and old.state is not RequestState.RUNNING:
            was = None
        if was is not None or is_ is not None:
            self.named_slot.move(uid, None if was is None else was.slot, None if is_ is None else is_.slot)
            self.named_pod.move(uid, None if was is None else was.pod, None if is_ is None else is_.pod)
        return old

    def set_permit(self, number: int, new: Permit | None) -> Permit | None:
        """Put or drop a permit; the one known before."""
        old = self.permits.get(number)
        if new is None:
            self.permits.pop(number, None)
        else:
            self.permits[number] = new
        self.held_by.move(number, None if old is None else old.holder, None if new is None else new.holder)
        return old

    def set_pod(self, number: int, new: Pod | None) -> Pod | None:
        """Put or drop a pod; the one known before."""
        old = self.pods.get(number)
        if old is not None:
            self.number_of.pop(old.uid, None)
        if new is None:
            self.pods.pop(number, None)
        else:
            self.pods[number] = new
            self.number_of[new.uid] = number
        self.owned_by.move(number, None if old is None else old.owner, None if new is None else new.owner)
        return old

    def pod(self, uid: PodUid) -> Pod | None:
        """The pod of that UID, if it exists."""
        number = self.number_of.get(uid)
        return None if number is None else self.pods[number]

    def main_number(self, slot: SlotUid) -> int | None:
        """The permit that a slot answers for: one that its pod uses, else the lowest that it holds."""
        held = self.held_by.of(slot)
        if not held:
            return None
        numbers = [n for n in held if not self.permits[n].poisoned]
        if len(numbers) < 2:
            return numbers[0] if numbers else None

        def used(number: int) -> bool:
            pod = self.pods.get(number)
            return pod is not None and pod.owner == slot

        return min(numbers, key=lambda n: (not used(n), n))
