"""The facts that decisions are made from: plain frozen values, the words of DESIGN section 2.

Instants are whole milliseconds since the Unix epoch, durations whole milliseconds (`…_ms`). Nothing
here knows Kubernetes, processes or files: `pageslots.control` translates objects into these facts, and
actions back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import NewType

Instant = NewType("Instant", int)
Country = NewType("Country", str)
Site = NewType("Site", str)
RequestUid = NewType("RequestUid", str)
SlotUid = NewType("SlotUid", str)
PodUid = NewType("PodUid", str)
AttemptId = NewType("AttemptId", str)
Version = NewType("Version", str)
"""The resourceVersion that a fact was read at: the precondition of every write that follows from it."""

SECOND = 1_000
"""Milliseconds in a second."""

EPOCH = Instant(0)
"""Before everything."""


class SlotState(StrEnum):
    """States of a page slot; derived from permit, pod, agent and running request, never stored as truth."""

    NO_PAGE = "NoPage"
    PREPARING = "PreparingPage"
    READY = "PageReady"
    RUNNING = "Running"
    CLOSING = "ClosingPage"


class RequestState(StrEnum):
    """States of a crawl request."""

    QUEUED = "Queued"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"

    @property
    def finished(self) -> bool:
        """True at any end."""
        return self in (RequestState.SUCCEEDED, RequestState.FAILED, RequestState.STOPPED)


class Outcome(StrEnum):
    """How an attempt ended: DESIGN section 9 (the same words as on the wire)."""

    OK = "Ok"
    NOT_FOUND = "NotFound"
    BLOCKED = "Blocked"
    PROXY_ERROR = "ProxyError"
    SITE_ERROR = "SiteError"
    BROWSER_CRASH = "BrowserCrash"
    OUT_OF_MEMORY = "OutOfMemory"
    SLOT_LOST = "SlotLost"
    TIMEOUT = "Timeout"
    BAD_REQUEST = "BadRequest"
    STOPPED = "Stopped"


class DrainReason(StrEnum):
    """Why a slot takes no further request."""

    YIELD_PERMIT = "YieldPermit"  # another country needs the permit; withdrawn when the waiter is gone
    ALLOCATION = "Allocation"  # its country has fewer slots now
    SHRINK = "Shrink"  # maxConcurrent was lowered below its permit's number
    ROLLOUT = "Rollout"  # an old revision, chosen for replacement
    RECYCLE = "Recycle"  # maxAgeSeconds or maxPages
    FAILED = "Failed"  # Blocked, ProxyError, crash: a new browser is due
    POOL_GONE = "PoolGone"


@dataclass(frozen=True, slots=True)
class CountrySettings:
    """One country of a pool. `max_slots` None: no bound of its own."""

    code: Country
    min_ready: int = 0
    max_slots: int | None = None
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """What a pool says about one site; None: the pool's general value."""

    name: Site
    max_per_site: int | None = None
    cooldown_ms: int | None = None
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """All that a pool's spec says about decisions: the API's names, durations in milliseconds."""

    name: str
    uid: str = ""
    max_page_slots: int = 20
    max_concurrent: int = 8
    suspended: bool = False
    deleted: bool = False  # deletionTimestamp set, or gone: drain everything
    countries: Mapping[Country, CountrySettings] = field(default_factory=dict)
    sites: Mapping[Site, SiteSettings] = field(default_factory=dict)
    interval_ms: int = 60 * SECOND
    unfinished_weight: int = 30
    finished_weight: int = 10
    sample_size: int = 3_000
    window_ms: int = 600 * SECOND
    starvation_ms: int = 50 * SECOND
    min_requests_per_slot: Fraction = Fraction(1, 3)
    reopen_after_failures: int = 4
    give_up_after_failures: int = 7
    idle_ms: int = 60 * SECOND
    max_per_site: int = 4
    cooldown_ms: int = 1 * SECOND
    start_ms: int = 300 * SECOND
    preparation_ms: int = 120 * SECOND
    attempt_ms: int = 900 * SECOND
    stale_ms: int = 600 * SECOND
    unschedulable_ms: int = 300 * SECOND
    stuck_terminating_ms: int = 300 * SECOND
    dispatch_ms: int = 10 * SECOND
    grace_ms: int = 10 * SECOND
    max_unavailable: int = 1
    revision: str = ""  # hash of the pod template; pods of another revision are replaced


@dataclass(frozen=True, slots=True)
class Budgets:
    """Consecutive attempts without a new Ok page that a request may spend, per kind of outcome."""

    blocked: int = 3
    proxy_error: int = 5
    site_error: int = 2
    crash: int = 2  # BrowserCrash and OutOfMemory together
    slot_lost: int = 5


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """The attempt that a Running request names. `accepted`: the agent is known to have taken it."""

    id: AttemptId
    number: int
    slot: SlotUid
    pod: PodUid
    started: Instant


@dataclass(frozen=True, slots=True)
class Request:
    """One unit of work: a crawl request, or a child of a parallel one (parents never come here)."""

    uid: RequestUid
    name: str
    country: Country
    site: Site
    created: Instant
    seen: Version
    state: RequestState = RequestState.QUEUED
    priority: int = 0
    suspended: bool = False
    stop: bool = False
    deleted: bool = False
    attempt: RunningAttempt | None = None  # only while Running
    attempts: int = 0  # number of the latest attempt; numbers are never reused
    last_started: Instant | None = None  # of the latest attempt, running or not
    next_attempt: Instant | None = None  # not before (its own retry time)
    since_progress: Mapping[Outcome, int] = field(default_factory=dict)  # what budgets are counted on
    first_started: Instant | None = None
    finished: Instant | None = None
    resumable: bool = False  # has an output: attemptSeconds applies, the next attempt continues
    deadline_ms: int = 3_600 * SECOND
    queue_timeout_ms: int | None = None
    failed_pages_percent: int = 10
    budgets: Budgets = Budgets()


@dataclass(frozen=True, slots=True)
class Slot:
    """A page slot as an object: identity and what only its status can tell after a restart."""

    uid: SlotUid
    name: str
    number: int
    country: Country
    seen: Version
    deleted: bool = False


class GrantedFor(StrEnum):
    """What a permit was taken for: decides when its slot may be made to yield."""

    NEEDED = "Needed"
    SPARE = "Spare"


@dataclass(frozen=True, slots=True)
class Permit:
    """The Lease `<pool>-permit-<n>`. A number without a Permit fact is free and its Lease does not exist."""

    number: int
    seen: Version
    holder: SlotUid | None = None  # None: the Lease exists and is empty
    granted_for: GrantedFor = GrantedFor.SPARE
    taken: Instant | None = None
    poisoned: bool = False  # a foreign pod or an unreadable holder: never touched, counts as held by nobody


class PodPhase(StrEnum):
    """How far the pod (or process group) of a permit is."""

    PENDING = "Pending"  # not scheduled yet
    STARTING = "Starting"  # scheduled; containers not running yet
    RUNNING = "Running"
    TERMINATED = "Terminated"  # all containers reported terminated; the object still exists


@dataclass(frozen=True, slots=True)
class Pod:
    """The pod `<pool>-browser-<n>` of permit n, as last seen."""

    number: int
    uid: PodUid
    owner: SlotUid | None  # None: not ours
    phase: PodPhase
    created: Instant
    scheduled: Instant | None = None
    deleting: Instant | None = None  # when its deletion began
    revision: str = ""
    message: str = ""  # the scheduler's or the kubelet's words
    out_of_memory: bool = False


class AgentPhase(StrEnum):
    """The agent's own word (see wire.Phase)."""

    PREPARING = "Preparing"
    READY = "Ready"
    RUNNING = "Running"
    DRAINED = "Drained"
    GAVE_UP = "GaveUp"


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent says of the attempt that it has, or had last."""

    id: AttemptId
    request: RequestUid
    ended: bool
    outcome: Outcome | None = None
    message: str = ""
    done: int = 0
    failed: int = 0
    blocked: int = 0
    new_ok_pages: int = 0
    start_pages_ok: int = 0
    all_tried_blocked: bool = False
    retry_after_ms: int | None = None
    suspended: bool = False  # ended by StopReason Suspended or Shutdown: back to Queued, free
    deadline: bool = False  # ended by the deadline of the whole request


@dataclass(frozen=True, slots=True)
class Agent:
    """The last answer of a pod's agent in this operator's life; without one a slot is never free."""

    pod: PodUid
    phase: AgentPhase
    contact: Instant  # when this answer came
    progress: Instant  # when progress was last seen, by our own clock
    warm_site: Site | None = None
    report: Report | None = None
    recycle_due: bool = False
    ready_since: Instant | None = None  # of this pod
    idle_since: Instant | None = None
    consecutive_failures: int = 0
    failure: Outcome | None = None
    failure_message: str = ""
    ran: int = 0  # attempts that this pod has run


@dataclass(frozen=True, slots=True)
class BackOff:
    """A country (site None) or a (country, site) that gets nothing new until `until`."""

    country: Country
    site: Site | None
    until: Instant
    failures: int  # in a row
    probing: bool = False  # country: one probe slot is on its way
    since: Instant = Instant(
        0
    )  # when the latest failure was counted: attempts begun before are the same wave


@dataclass(frozen=True, slots=True)
class Allocation:
    """How many slots each country got at `at`, and which countries had unfinished requests then."""

    at: Instant
    slots: Mapping[Country, int]
    considered: frozenset[Country] = frozenset()


@dataclass(frozen=True, slots=True)
class IdleClosings:
    """Slots of a country that were closed for idleness while its demand was no higher than `demand`."""

    count: int
    demand: int


@dataclass(frozen=True, slots=True)
class Gone:
    """A pod that is no more. `at` None: noticed since the last accepted plan."""

    pod: PodUid
    number: int
    terminated: bool  # its containers were reported terminated: nothing of it can still run
    out_of_memory: bool = False
    at: Instant | None = None
    holds: bool = True  # its number's permit has not been freed yet


@dataclass(frozen=True, slots=True)
class Drain:
    """A slot takes no further request. `pod` None: whatever pod it has (it is about the slot itself)."""

    reason: DrainReason
    pod: PodUid | None


@dataclass(frozen=True, slots=True)
class Finish:
    """A finished request as allocation remembers it."""

    at: Instant
    request: RequestUid
    country: Country
