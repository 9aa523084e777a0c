"""Every state, outcome and reason that an object can show: closed sets.

A reason is what `kubectl get` prints in its Reason column and what a script compares, so a word that
is not here is never written, and one that is here keeps its meaning.
"""

from enum import StrEnum


class ConditionStatus(StrEnum):
    """What a condition says about its type."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class RequestState(StrEnum):
    """Where a crawl request is. Queued → Running → an end, and back to Queued for another attempt."""

    QUEUED = "Queued"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"


FINISHED_STATES = frozenset({RequestState.SUCCEEDED, RequestState.FAILED, RequestState.STOPPED})


class SlotState(StrEnum):
    """What stands behind a page slot."""

    NO_PAGE = "NoPage"
    PREPARING_PAGE = "PreparingPage"
    PAGE_READY = "PageReady"
    RUNNING = "Running"
    CLOSING_PAGE = "ClosingPage"


class Outcome(StrEnum):
    """How a page, or an attempt, ended."""

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


class RequestReason(StrEnum):
    """Reasons of a crawl request's conditions."""

    # Accepted
    ACCEPTED = "Accepted"
    NO_SUCH_POOL = "NoSuchPool"
    NO_SUCH_COUNTRY = "NoSuchCountry"
    NO_SUCH_OUTPUT = "NoSuchOutput"
    # Dispatched and Finished are False: why it waits
    WAITING_FOR_SLOT = "WaitingForSlot"
    SITE_COOLING_DOWN = "SiteCoolingDown"
    SITE_LIMIT_REACHED = "SiteLimitReached"
    SITE_BACK_OFF = "SiteBackOff"
    COUNTRY_BACK_OFF = "CountryBackOff"
    SUSPENDED = "Suspended"
    POOL_SUSPENDED = "PoolSuspended"
    COUNTRY_SUSPENDED = "CountrySuspended"
    SITE_SUSPENDED = "SiteSuspended"
    WAITING_FOR_POD_TERMINATION = "WaitingForPodTermination"
    RETRY_SCHEDULED = "RetryScheduled"
    NO_SLOTS_FOR_COUNTRY = "NoSlotsForCountry"
    # Dispatched is True
    RUNNING = "Running"
    CHILDREN_RUNNING = "ChildrenRunning"
    STOPPING = "Stopping"
    # Finished is True, Succeeded is True or False: the verdict
    ALL_PAGES_DONE = "AllPagesDone"
    CHILDREN_SUCCEEDED = "ChildrenSucceeded"
    CHILDREN_FAILED = "ChildrenFailed"
    TOO_MANY_FAILED_PAGES = "TooManyFailedPages"
    NO_START_PAGE_SUCCEEDED = "NoStartPageSucceeded"
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
    QUEUE_TIMEOUT = "QueueTimeout"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    OUTPUT_FAILED = "OutputFailed"
    # Succeeded is Unknown
    NOT_FINISHED = "NotFinished"


class SlotReason(StrEnum):
    """Reasons of a page slot's conditions."""

    # Ready
    PAGE_READY = "PageReady"
    RUNNING = "Running"
    PREPARING = "Preparing"
    CLOSING = "Closing"
    NOT_NEEDED = "NotNeeded"
    WAITING_FOR_PERMIT = "WaitingForPermit"
    UNSCHEDULABLE = "Unschedulable"
    POD_REFUSED = "PodRefused"
    STUCK_TERMINATING = "StuckTerminating"
    START_TIMEOUT = "StartTimeout"
    PREPARATION_FAILED = "PreparationFailed"
    WRONG_EXIT_COUNTRY = "WrongExitCountry"
    PROXY_ERROR = "ProxyError"
    SITE_ERROR = "SiteError"
    BROWSER_CRASH = "BrowserCrash"
    OUT_OF_MEMORY = "OutOfMemory"
    SLOT_LOST = "SlotLost"
    # Draining
    NOT_DRAINING = "NotDraining"
    YIELD_PERMIT = "YieldPermit"
    CAP_LOWERED = "CapLowered"
    REALLOCATED = "Reallocated"
    ROLLOUT = "Rollout"
    RECYCLING = "Recycling"
    NODE_DRAIN = "NodeDrain"
    POOL_DELETED = "PoolDeleted"


class PoolReason(StrEnum):
    """Reasons of a pool's conditions."""

    # Ready
    SLOTS_READY = "SlotsReady"
    NOTHING_TO_DO = "NothingToDo"
    NO_SLOT_READY = "NoSlotReady"
    SUSPENDED = "Suspended"
    COUNTRY_BACK_OFF = "CountryBackOff"
    UNSCHEDULABLE = "Unschedulable"
    POD_REFUSED = "PodRefused"
    PERMIT_POISONED = "PermitPoisoned"
    STUCK_TERMINATING = "StuckTerminating"
    INVALID_SPEC = "InvalidSpec"
    # Progressing
    UP_TO_DATE = "UpToDate"
    ROLLING_OUT = "RollingOut"
    LOWERING_CAP = "LoweringCap"
    REALLOCATING = "Reallocating"
