"""What `control` needs from the world: objects, pods and agents.

Two implementations each, one contract suite. `ObjectApi`: an API server, or the local store. `SlotRuntime`:
the kubelet, or processes of this machine. Objects are plain JSON as Kubernetes writes it (apiVersion, kind,
metadata, spec, status); Leases follow coordination.k8s.io/v1. Every call ends within a time of its own and
raises one of the errors below.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from pageslots.wire import (
    AgentConfig,
    AgentStatus,
    AttemptReport,
    AttemptSpec,
    DrainOrder,
    Refusal,
    StopOrder,
)

JsonObject = dict[str, Any]


class Kind(StrEnum):
    """The kinds that are watched and written."""

    POOL = "PageSlotPool"
    SLOT = "PageSlot"
    REQUEST = "CrawlRequest"
    LEASE = "Lease"


class ApiError(Exception):
    """The API said no. `str()` is one line for people."""


class NotFoundError(ApiError):
    """404: it does not exist (a live answer, never an assumption)."""


class AlreadyExistsError(ApiError):
    """409 on create: the name is taken."""


class ConflictError(ApiError):
    """409 on update or delete: the resourceVersion or UID is not the one seen."""


class InvalidError(ApiError):
    """422: the object breaks a rule of its kind."""


class ForbiddenError(ApiError):
    """403: permissions, or a quota: back-pressure, not failure."""


class ThrottledError(ApiError):
    """429: try again after `retry_after_ms`."""

    def __init__(self, message: str, retry_after_ms: int) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class UnavailableError(ApiError):
    """No answer, or 5xx. For a write the result is unknown: look before deciding anything."""


@dataclass(frozen=True, slots=True)
class Synced:
    """A complete list: the start of every watch, and again after every gap."""

    objects: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class Changed:
    """One object was created or modified, or (`deleted`) is gone; the object as it was last."""

    object: JsonObject
    deleted: bool = False


class ObjectApi(Protocol):
    """Objects with optimistic concurrency."""

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        """The object as it is now; NotFoundError."""
        ...

    async def list(self, kind: Kind, namespace: str | None = None) -> Sequence[JsonObject]:
        """All objects of the kind (of one namespace) as they are now."""
        ...

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Create it; uid, resourceVersion, creationTimestamp and generation come back. AlreadyExistsError."""
        ...

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: JsonObject,
        *,
        version: str | None = None,
        status: bool = False,
    ) -> JsonObject:
        """JSON merge patch of the object, or of its status alone; ConflictError if `version` is old."""
        ...

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str, version: str | None = None
    ) -> None:
        """Delete exactly this object; NotFoundError, ConflictError. What it owns goes with it."""
        ...

    def watch(self, kind: Kind, namespace: str | None = None) -> AsyncGenerator[Synced | Changed]:
        """`Synced` first, then every change in order; `Synced` again after a gap. Ends only when closed."""
        ...


class PodPhase(StrEnum):
    """See core.model.PodPhase: the same words."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    TERMINATED = "Terminated"


@dataclass(frozen=True, slots=True)
class PodOrder:
    """What is needed to start one slot's browser. `config.pod_uid` is filled in by the runtime."""

    namespace: str
    name: str  # <pool>-browser-<n>: the name is the cap
    pool: str
    pool_uid: str
    number: int
    slot_name: str
    slot_uid: str
    revision: str
    config: AgentConfig
    grace_ms: int
    memory_mib: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod, or the process group of that name, as it is now. Instants: milliseconds since the epoch."""

    namespace: str
    name: str
    uid: str
    pool: str
    pool_uid: str
    number: int
    owner_uid: str | None  # the page slot's UID; None: not ours
    phase: PodPhase
    created: int
    scheduled: int | None = None
    deleting: int | None = None
    revision: str = ""
    message: str = ""
    out_of_memory: bool = False
    reachable: bool = False  # the agent's address is known
    owner_name: str = ""  # the page slot's name: who asks whether the owner still exists asks for it


@dataclass(frozen=True, slots=True)
class PodsSynced:
    """All pods there are: the start of every watch, and again after every gap."""

    pods: Sequence[PodView]


@dataclass(frozen=True, slots=True)
class PodChanged:
    """One pod changed; `gone`: a live look said that nothing of it is left."""

    pod: PodView
    gone: bool = False


class AgentUnreachableError(Exception):
    """The agent gave no answer in time; whether it did what it was asked is unknown."""


class AgentRefusedError(Exception):
    """The agent said no; `refusal.code` tells the case."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"{refusal.code}: {refusal.message}")
        self.refusal = refusal


class AgentClient(Protocol):
    """One pod's agent (wire.py has the routes). Raises AgentUnreachableError and AgentRefusedError."""

    async def status(self, *, after: int, wait_seconds: float) -> AgentStatus:
        """The status once its revision is above `after`, or after `wait_seconds`."""
        ...

    async def put_attempt(self, spec: AttemptSpec) -> AttemptReport:
        """Start it, or learn how the attempt of this id stands."""
        ...

    async def acknowledge(self, attempt_id: str) -> None:
        """The end of the attempt has been recorded; unknown ids are fine."""
        ...

    async def stop(self, attempt_id: str, order: StopOrder) -> AttemptReport:
        """End the attempt early."""
        ...

    async def drain(self, order: DrainOrder) -> AgentStatus:
        """From now on nothing; refused while busy."""
        ...

    async def records(self, attempt_id: str, *, offset: int) -> bytes:
        """JSON Lines from record `offset` on."""
        ...


class SlotRuntime(Protocol):
    """Pods by name. The runtime never has two of one name, whatever is asked.

    `absence_is_end`: whether NotFoundError means that no process of the pod is left. On one machine it does; in a
    cluster the object of a pod may be gone while its node can't be reached.
    """

    @property
    def absence_is_end(self) -> bool:
        """See above."""
        ...

    async def create(self, order: PodOrder) -> PodView:
        """Start it; AlreadyExistsError while anything of that name is left."""
        ...

    async def get(self, namespace: str, name: str) -> PodView:
        """The live truth; NotFoundError only when nothing of it is left."""
        ...

    async def list(self) -> Sequence[PodView]:
        """All pods of this installation."""
        ...

    async def delete(self, namespace: str, name: str, *, uid: str, grace_ms: int) -> None:
        """Begin its end: SIGTERM, after the grace SIGKILL. NotFoundError; ConflictError for another UID."""
        ...

    def watch(self) -> AsyncGenerator[PodsSynced | PodChanged]:
        """`PodsSynced` first, then every change."""
        ...

    def agent(self, pod: PodView) -> AgentClient:
        """The client of this pod's agent (bound to its UID)."""
        ...


class Clock(Protocol):
    """Wall-clock time that never steps while the process lives."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...


Level = Literal["info", "warning"]


class Recorder(Protocol):
    """Where decisions that a person may need to reconstruct are told: Events, or lines in local mode."""

    def event(self, level: Level, name: str, /, **fields: object) -> None:
        """One decision, e.g. `event("info", "slot.ready", slot=…, country=…, seconds=1.4)`."""
        ...
