"""What every part of `control` works with: the ports, and the way back from results to facts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pageslots.api import CrawlRequest, PageSlotPool
from pageslots.control.cache import ObjectCache
from pageslots.control.names import Key
from pageslots.control.ports import (
    Clock,
    JsonObject,
    Kind,
    ObjectApi,
    PodView,
    Recorder,
    SlotRuntime,
)
from pageslots.wire import AgentStatus, AttemptReport


class NotLeadingError(Exception):
    """This process may not write (any more)."""


class Leadership(Protocol):
    """Who may write. On one machine: always this process, with the store's version at start as epoch."""

    def epoch(self) -> int:
        """Grows with every change of leader; agents refuse a lower one than they have seen."""
        ...

    def check(self) -> None:
        """Raises NotLeadingError; called before every write."""
        ...


@dataclass(frozen=True, slots=True)
class AlwaysLeading:
    """Leadership of the only process there is."""

    number: int

    def epoch(self) -> int:
        """The number given."""
        return self.number

    def check(self) -> None:
        """Never refuses."""


class Intake(Protocol):
    """Results and events become facts here; every call may make pools dirty."""

    def observe(self, kind: Kind, obj: JsonObject) -> None:
        """An object as the API answered or told."""
        ...

    def forget(self, kind: Kind, obj: JsonObject) -> None:
        """An object that is gone for certain."""
        ...

    def pod_seen(self, pod: PodView) -> None:
        """A pod as it is now."""
        ...

    def pod_gone(self, pod: PodView) -> None:
        """Nothing of this pod is left: a live answer."""
        ...

    def agent_said(self, pod: PodView, status: AgentStatus) -> None:
        """An agent's answer."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What differs between one machine, a cluster and the simulator."""

    output_uri: Callable[[CrawlRequest, PageSlotPool, CrawlRequest | None], str | None]
    """Where a request's records go (request, pool, its parent): a folder's URI, None for a preview only."""
    site_of: Callable[[CrawlRequest], str]
    """The politeness key of a request."""
    row_count: Callable[[str, int], int | None]
    """How many URLs a `urlsFrom` file has, counted up to a limit; None where only the agent can read it."""
    proxy_credentials: Callable[[str, str], tuple[str, str]]
    """User name and password of a secret (namespace, name)."""
    chromium: str = ""
    chromium_sandbox: bool = False
    delete_finished: bool = True
    """Whether ttlSecondsAfterFinished applies (on one machine finished requests stay: a next run skips them)."""
    writes_statuses: bool = True
    """Whether statuses are written for people to read; in a simulation nobody does."""
    most_deeds: int = 32
    """Deeds under way at once, in all pools."""


@dataclass(frozen=True, slots=True)
class Context:
    """The ports and the cache, as one value."""

    api: ObjectApi
    runtime: SlotRuntime
    clock: Clock
    recorder: Recorder
    leadership: Leadership
    cache: ObjectCache
    intake: Intake
    settings: Settings
    reports: dict[str, AttemptReport] = field(default_factory=dict)
    """The last report of every attempt that a request still names, by attempt id."""

    def pool(self, key: Key) -> PageSlotPool | None:
        """The pool of that name as last seen, if there is one."""
        obj = self.cache.get(Kind.POOL, key)
        return None if obj is None else PageSlotPool.model_validate(obj)
