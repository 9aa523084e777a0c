"""Deeds under way, and deeds that were tried: nothing is asked for twice at once, nothing in a hot loop.

A deed is pending from the acceptance of its plan until its result is known. After that the facts speak; when they
still ask for the very same deed, it is asked for again only after a pause.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from pageslots.core.actions import (
    CloseSlot,
    CreatePod,
    CreateSlot,
    Deed,
    DeletePod,
    DeleteSlot,
    FinishRequest,
    FreePermit,
    RequeueRequest,
    SendAttempt,
    StartAttempt,
    StopAttempt,
    TakePermit,
)
from pageslots.core.model import SECOND, Country, Instant, PodUid, RequestUid, SlotUid

DeedKey = tuple[Hashable, ...]

AGAIN_MS = 1 * SECOND
"""Pause before a deed that changed nothing is asked for again."""

REMEMBER_MS = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Tried:
    """When a deed was asked for last."""

    at: Instant


def key_of(deed: Deed) -> DeedKey:
    """What a deed is about: one at a time per key, ("Verdict", request) for both kinds of verdict."""
    about: Hashable
    match deed:
        case CreateSlot() | TakePermit() | CreatePod() | FreePermit():
            about = deed.number
        case DeleteSlot():
            about = deed.slot
        case CloseSlot() | DeletePod():
            about = deed.pod
        case SendAttempt() | StopAttempt():
            about = deed.attempt
        case StartAttempt():
            about = deed.request
        case RequeueRequest() | FinishRequest():
            return ("Verdict", deed.request)
        case _:
            assert_never(deed)
    return (type(deed).__name__, about)


def repeat_key(deed: Deed) -> DeedKey:
    """What makes a deed the very same one: newer facts, or another reason, make it another."""
    details: DeedKey
    match deed:
        case DeleteSlot() | FreePermit() | RequeueRequest() | FinishRequest():
            details = (deed.seen,)
        case TakePermit():
            details = (deed.slot, deed.seen)
        case CreatePod():
            details = (deed.slot,)
        case StartAttempt():
            details = (deed.seen, deed.pod)
        case CloseSlot():
            details = (deed.force,)
        case StopAttempt():
            details = (deed.reason,)
        case CreateSlot() | DeletePod() | SendAttempt():
            details = ()
        case _:
            assert_never(deed)
    return key_of(deed) + details


def pause_ms(deed: Deed, dispatch_ms: int) -> int:
    """How long until the very same deed may be asked for again. Agents get time to do what they were told."""
    return dispatch_ms if isinstance(deed, StopAttempt | SendAttempt | CloseSlot) else AGAIN_MS


class Pending:
    """The deeds of accepted plans."""

    def __init__(self) -> None:
        self._under_way: dict[DeedKey, tuple[Deed, Instant]] = {}
        self._tried: dict[DeedKey, Tried] = {}
        self._order: deque[tuple[Instant, DeedKey]] = deque()
        self.creating: dict[int, Country] = {}  # slots by number
        self.taking: dict[SlotUid, TakePermit] = {}
        self.starting: dict[SlotUid, StartAttempt] = {}
        self.started: dict[RequestUid, Instant] = {}  # requests whose start is under way, and since when
        self.deleting: set[SlotUid] = set()

    def add(self, deed: Deed, at: Instant) -> None:
        """The deed is under way since `at`."""
        self._hold(deed, at)
        self._remember(repeat_key(deed), at)

    def _hold(self, deed: Deed, at: Instant) -> None:
        self._under_way[key_of(deed)] = (deed, at)
        match deed:
            case CreateSlot():
                self.creating[deed.number] = deed.country
            case TakePermit():
                self.taking[deed.slot] = deed
            case StartAttempt():
                self.starting[deed.slot] = deed
                self.started[deed.request] = at
            case DeleteSlot():
                self.deleting.add(deed.slot)
            case _:
                pass

    def _remember(self, key: DeedKey, at: Instant) -> None:
        self._tried[key] = Tried(at)
        self._order.append((at, key))

    def settle(self, deed: Deed) -> bool:
        """Its result is known. False: it was not pending."""
        known = self._under_way.get(key_of(deed))
        if known is None or known[0] != deed:
            return False
        del self._under_way[key_of(deed)]
        match deed:
            case CreateSlot():
                self.creating.pop(deed.number, None)
            case TakePermit():
                self.taking.pop(deed.slot, None)
            case StartAttempt():
                self.starting.pop(deed.slot, None)
                self.started.pop(deed.request, None)
            case DeleteSlot():
                self.deleting.discard(deed.slot)
            case _:
                pass
        return True

    def ends(self, pod: PodUid) -> bool:
        """Whether a deed that ends this pod is under way."""
        under_way = self._under_way
        return bool(under_way) and (("CloseSlot", pod) in under_way or ("DeletePod", pod) in under_way)

    def get(self, *key: Hashable) -> Deed | None:
        """The deed under way with this key."""
        known = self._under_way.get(key)
        return None if known is None else known[0]

    def __iter__(self) -> Iterator[Deed]:
        return (deed for deed, _ in self._under_way.values())

    def again_at(self, deed: Deed, dispatch_ms: int) -> Instant | None:
        """When the very same deed may be asked for again; None: at once."""
        tried = self._tried.get(repeat_key(deed))
        return None if tried is None else Instant(tried.at + pause_ms(deed, dispatch_ms))

    def forget_old(self, now: Instant) -> None:
        """Drop what was tried so long ago that it matters no more."""
        while self._order and self._order[0][0] < now - REMEMBER_MS:
            at, key = self._order.popleft()
            known = self._tried.get(key)
            if known is not None and known.at == at:
                del self._tried[key]

    def snapshot(self) -> tuple[tuple[tuple[Deed, Instant], ...], Mapping[DeedKey, Tried]]:
        """What `restore` takes."""
        return tuple(self._under_way.values()), dict(self._tried)

    def restore(self, under_way: tuple[tuple[Deed, Instant], ...], tried: Mapping[DeedKey, Tried]) -> None:
        """Become what `snapshot` told."""
        for deed, at in under_way:
            self._hold(deed, at)
        for key, was in sorted(tried.items(), key=lambda item: item[1].at):
            self._remember(key, was.at)
