"""What a plan asks for. Each action carries its own precondition, so that doing it late is harmless.

`Note…` actions change only the planner's memory (the index applies them when a plan is accepted); all
others are carried out by `pageslots.control` and stay *pending* in the index until their result is known.
"""

from dataclasses import dataclass

from pageslots.core.model import (
    EPOCH,
    AttemptId,
    Country,
    DrainReason,
    GrantedFor,
    Instant,
    Outcome,
    PodUid,
    RequestState,
    RequestUid,
    Site,
    SlotUid,
    Version,
)


@dataclass(frozen=True, slots=True)
class CreateSlot:
    """Create the page slot number `number`; its name is the precondition."""

    number: int
    country: Country


@dataclass(frozen=True, slots=True)
class DeleteSlot:
    """Delete a slot that has no page and no permit."""

    slot: SlotUid
    seen: Version


@dataclass(frozen=True, slots=True)
class TakePermit:
    """Write the slot into permit `number`, if the pod's name answers 404 and the Lease is as seen."""

    number: int
    slot: SlotUid
    seen: Version | None  # None: the Lease does not exist yet
    granted_for: GrantedFor
    prepare_for: RequestUid | None  # whose origin the new page loads when the pool has no targetUrl


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create the pod of a held permit; AlreadyExists leads to a live look and adoption or deletion."""

    number: int
    slot: SlotUid
    prepare_for: RequestUid | None


@dataclass(frozen=True, slots=True)
class FreePermit:
    """Empty the Lease, only after a live GET of the pod's name said 404.

    `remove`: n ≥ maxConcurrent, or the pool is gone: delete the Lease instead.
    """

    number: int
    seen: Version
    remove: bool = False


@dataclass(frozen=True, slots=True)
class CloseSlot:
    """Ask the agent to drain; when it agrees (or is out of reach for long enough) delete the pod."""

    slot: SlotUid
    number: int
    pod: PodUid
    reason: str
    force: bool = False  # the drain's deadline has passed: delete without the agent's word


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod by name and UID: ended, stale, ownerless, or already drained."""

    number: int
    pod: PodUid
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Write Running into the request (as seen), then give the attempt to the agent."""

    request: RequestUid
    seen: Version
    slot: SlotUid
    pod: PodUid
    number: int


@dataclass(frozen=True, slots=True)
class SendAttempt:
    """Give an attempt that the request already names to the agent (again): the other half of StartAttempt."""

    request: RequestUid
    attempt: AttemptId
    slot: SlotUid
    pod: PodUid


@dataclass(frozen=True, slots=True)
class StopAttempt:
    """Tell the agent to end an attempt early. `reason` is a wire.StopReason."""

    attempt: AttemptId
    slot: SlotUid
    pod: PodUid
    reason: str


@dataclass(frozen=True, slots=True)
class RequeueRequest:
    """Running → Queued for the next attempt.

    `outcome` None: the attempt never started, or was suspended: it costs no budget.
    """

    request: RequestUid
    seen: Version
    outcome: Outcome | None
    progressed: bool
    next_attempt: Instant | None
    message: str
    charged: bool = True  # False: the outcome is told in the counts, but spends nothing of the budget


@dataclass(frozen=True, slots=True)
class FinishRequest:
    """The verdict. `reason` is a CamelCase condition reason."""

    request: RequestUid
    seen: Version
    state: RequestState  # Succeeded, Failed or Stopped
    outcome: Outcome | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class NoteAllocation:
    """Remember the allocation computed at `at`."""

    at: Instant
    slots: tuple[tuple[Country, int], ...]
    considered: frozenset[Country] = frozenset()  # had unfinished requests then


@dataclass(frozen=True, slots=True)
class NoteDraining:
    """The slot takes no further request (reason None: withdrawn)."""

    slot: SlotUid
    reason: DrainReason | None


@dataclass(frozen=True, slots=True)
class NoteIdleClosing:
    """A slot of the country was closed for idleness while demand was `demand`."""

    country: Country
    demand: int


@dataclass(frozen=True, slots=True)
class NoteIdlingForgotten:
    """Demand has risen above what it was when slots were closed for idleness: they count no longer."""

    country: Country


@dataclass(frozen=True, slots=True)
class NoteBackOff:
    """Set (or with `until` None clear) the back-off of a country or of a (country, site)."""

    country: Country
    site: Site | None
    until: Instant | None
    failures: int
    probing: bool = False
    since: Instant = EPOCH


@dataclass(frozen=True, slots=True)
class NoteUnschedulable:
    """Usable permits are lowered to `usable` (None: restored)."""

    usable: int | None


Note = NoteAllocation | NoteDraining | NoteIdleClosing | NoteIdlingForgotten | NoteBackOff | NoteUnschedulable
Deed = (
    CreateSlot
    | DeleteSlot
    | TakePermit
    | CreatePod
    | FreePermit
    | CloseSlot
    | DeletePod
    | StartAttempt
    | SendAttempt
    | StopAttempt
    | RequeueRequest
    | FinishRequest
)
Action = Note | Deed


@dataclass(frozen=True, slots=True)
class Plan:
    """What should happen now, in the order of its importance, and when to look again without news."""

    actions: tuple[Action, ...]
    next_wake: Instant | None
