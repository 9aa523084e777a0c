"""What state a page slot is in, derived from permit, pod, agent and running request; never stored as truth.

From the facts about one slot; for `roster`, which keeps the views of all slots. DESIGN section 2 has the states and
their moves, section 8 says when a slot is free.
"""

from dataclasses import dataclass
from enum import IntEnum

from pageslots.core.model import (
    Agent,
    AgentPhase,
    AttemptId,
    Country,
    Drain,
    DrainReason,
    Gone,
    GrantedFor,
    Instant,
    Permit,
    Pod,
    PodPhase,
    PoolSettings,
    RequestUid,
    Site,
    Slot,
    SlotState,
    SlotUid,
)
from pageslots.core.verdict import CLOSES_SLOT

MOVES = frozenset(
    {
        (SlotState.NO_PAGE, SlotState.PREPARING),
        (SlotState.PREPARING, SlotState.READY),
        (SlotState.READY, SlotState.RUNNING),
        (SlotState.RUNNING, SlotState.READY),
        (SlotState.PREPARING, SlotState.CLOSING),
        (SlotState.READY, SlotState.CLOSING),
        (SlotState.RUNNING, SlotState.CLOSING),
        (SlotState.CLOSING, SlotState.NO_PAGE),
        (SlotState.READY, SlotState.PREPARING),
        (SlotState.RUNNING, SlotState.PREPARING),
        (SlotState.PREPARING, SlotState.NO_PAGE),
        (SlotState.READY, SlotState.NO_PAGE),
        (SlotState.RUNNING, SlotState.NO_PAGE),
    }
)
"""The closed list of moves."""


class Role(IntEnum):
    """What a slot is to the planner. Numbers index `CountrySlots.by_role`."""

    VACANT = 0  # no permit, and one may be granted
    ABSENT = 1  # no permit, and none may be granted: about to be deleted, or still named by a request
    PREPARING = 2  # holds a permit, page not ready yet
    FREE = 3  # takes a request this instant
    BUSY = 4  # runs one
    DRAINING = 5  # runs one, takes no further
    LEAVING = 6  # closing, or to be closed at once: its permit is on the way back


HOLDING = frozenset({Role.PREPARING, Role.FREE, Role.BUSY})
"""Permits of these are held by their country; those of DRAINING and LEAVING are on the way."""


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """All that is known about one slot. `number`: of the permit that it holds or is about to get.

    `named`: a Running request names the slot, or a start on it is under way. `closing`: a CloseSlot or
    DeletePod is under way. `closed_at`: when closing it was asked for first.
    """

    slot: Slot
    number: int | None = None
    permit: Permit | None = None
    pod: Pod | None = None
    agent: Agent | None = None
    gone: Gone | None = None
    drain: Drain | None = None
    named: RequestUid | None = None
    named_since: Instant | None = None
    granted_for: GrantedFor = GrantedFor.SPARE
    closing: bool = False
    deleting: bool = False  # a DeleteSlot is under way
    closed_at: Instant | None = None
    stuck: bool = False
    orphan: AttemptId | None = None  # an attempt that the agent runs and no request names


@dataclass(frozen=True, slots=True)
class SlotView:
    """A slot as decisions see it. `doomed`: why it has to go (also while it still runs something)."""

    uid: SlotUid
    country: Country
    facts: SlotFacts
    state: SlotState
    role: Role
    counted: bool  # one of its country's slots; False: on its way out of the pool
    doomed: DrainReason | None

    @property
    def warm_site(self) -> Site | None:
        """The site that its page was used for last."""
        return None if self.facts.agent is None else self.facts.agent.warm_site

    @property
    def idle_since(self) -> Instant:
        """Since when a free slot has had nothing to do."""
        agent = self.facts.agent
        if agent is None:
            return Instant(0)
        return agent.idle_since or agent.ready_since or agent.contact

    @property
    def ran(self) -> int:
        """Attempts that its pod has run."""
        return 0 if self.facts.agent is None else self.facts.agent.ran


def view(facts: SlotFacts, settings: PoolSettings) -> SlotView:
    """The slot's state and role."""
    doomed = _doomed(facts, settings)
    state = state_of(facts)
    counted = not (
        facts.deleting or doomed in (DrainReason.POOL_GONE, DrainReason.ALLOCATION) or facts.slot.deleted
    )
    slot = facts.slot
    return SlotView(slot.uid, slot.country, facts, state, _role(facts, state, doomed), counted, doomed)


def state_of(facts: SlotFacts) -> SlotState:
    """The slot's state (DESIGN section 2)."""
    pod, agent = facts.pod, facts.agent
    if facts.number is None and pod is None:
        return SlotState.NO_PAGE
    if is_closing(facts):
        return SlotState.CLOSING
    if pod is None or pod.phase is not PodPhase.RUNNING:
        return SlotState.PREPARING
    if facts.named is not None or _is_occupied(agent):
        return SlotState.RUNNING
    if agent is not None and agent.phase is AgentPhase.READY:
        return SlotState.READY
    return SlotState.PREPARING


def is_closing(facts: SlotFacts) -> bool:
    """Whether the page is on its way out for certain, or dead."""
    pod, agent = facts.pod, facts.agent
    if pod is None:
        return facts.gone is not None
    if pod.deleting is not None or pod.phase is PodPhase.TERMINATED:
        return True
    return agent is not None and agent.phase in (AgentPhase.DRAINED, AgentPhase.GAVE_UP)


def was_asked_to_close(facts: SlotFacts) -> bool:
    """Whether a drain was sent and nothing has been heard since: it may have been accepted."""
    if facts.closed_at is None or facts.pod is None:
        return False
    return facts.agent is None or facts.agent.contact <= facts.closed_at


def _is_occupied(agent: Agent | None) -> bool:
    if agent is None:
        return False
    return agent.phase is AgentPhase.RUNNING or (agent.report is not None and not agent.report.ended)


def _doomed(facts: SlotFacts, settings: PoolSettings) -> DrainReason | None:
    """Why the slot has to go, the lasting reasons first; None: it may stay."""
    slot, agent = facts.slot, facts.agent
    if settings.deleted:
        return DrainReason.POOL_GONE
    if slot.deleted or slot.country not in settings.countries or slot.number >= settings.max_page_slots:
        return DrainReason.ALLOCATION
    if facts.drain is not None:
        return facts.drain.reason
    if agent is not None:
        report = agent.report
        if report is not None and report.ended and report.outcome in CLOSES_SLOT:
            return DrainReason.FAILED
        if agent.recycle_due:
            return DrainReason.RECYCLE
    return None


def _role(facts: SlotFacts, state: SlotState, doomed: DrainReason | None) -> Role:
    if state is SlotState.NO_PAGE:
        may_take = doomed is None and facts.named is None and not facts.deleting
        return Role.VACANT if may_take else Role.ABSENT
    if state is SlotState.CLOSING or facts.closing or was_asked_to_close(facts):
        return Role.LEAVING  # while the agent may still refuse, the state is the old one
    if state is SlotState.RUNNING or facts.named is not None:
        return Role.BUSY if doomed is None else Role.DRAINING
    if doomed is not None:
        return Role.LEAVING
    return Role.FREE if state is SlotState.READY else Role.PREPARING
