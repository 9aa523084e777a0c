"""All that an index is built from, as one frozen value: what is, and what the planner remembers.

Law: an index maintained change by change plans the same as one built from its facts, after any sequence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pageslots.core.actions import Deed
from pageslots.core.model import (
    Agent,
    Allocation,
    AttemptId,
    BackOff,
    Country,
    Drain,
    Finish,
    Gone,
    IdleClosings,
    Instant,
    Permit,
    Pod,
    PodUid,
    PoolSettings,
    Report,
    Request,
    Site,
    Slot,
    SlotUid,
)
from pageslots.core.pending import Tried


@dataclass(frozen=True, slots=True)
class Facts:
    """What is (settings, objects, pods, agents' words) and what is remembered.

    `since`: when this index began to watch (None: no plan was accepted yet); what happened before is
    unknown. `last_starts`: of attempts per (country, site), also of requests that are gone by now.
    """

    settings: PoolSettings
    requests: tuple[Request, ...] = ()
    slots: tuple[Slot, ...] = ()
    permits: tuple[Permit, ...] = ()
    pods: tuple[Pod, ...] = ()
    agents: tuple[Agent, ...] = ()
    since: Instant | None = None
    backoffs: tuple[BackOff, ...] = ()
    last_starts: Mapping[tuple[Country, Site], Instant] = field(default_factory=dict)
    country_starts: Mapping[Country, Instant] = field(default_factory=dict)
    finishes: tuple[Finish, ...] = ()
    allocation: Allocation | None = None
    drains: Mapping[SlotUid, Drain] = field(default_factory=dict)
    idle_closings: Mapping[Country, IdleClosings] = field(default_factory=dict)
    gone: tuple[Gone, ...] = ()
    closings: Mapping[PodUid, Instant] = field(default_factory=dict)
    last_words: Mapping[AttemptId, Report] = field(default_factory=dict)
    usable: int | None = None
    pending: tuple[tuple[Deed, Instant], ...] = ()
    tried: Mapping[tuple[object, ...], Tried] = field(default_factory=dict)
