"""PageSlot: a placeholder for one browser page of one country, made by the operator."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pageslots.api.countries import CountryCode
from pageslots.api.fields import ApiModel, Count, Rule, Ruled, items, keyed, text, whole
from pageslots.api.meta import Appearance, Column, Condition, Kind
from pageslots.api.reasons import Outcome, SlotReason, SlotState
from pageslots.api.times import Time
from pageslots.api.values import Name


class PageSlotSpec(Ruled):
    """Which pool and country a slot belongs to, for all its life."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.country == oldSelf.country",
            message="a slot keeps its country: delete it, and the pool makes another",
            check=lambda self, old: self.country == old.country,
            field="country",
        ),
        Rule(
            cel="self.poolName == oldSelf.poolName",
            message="a slot keeps its pool",
            check=lambda self, old: self.pool_name == old.pool_name,
            field="poolName",
        ),
    )

    pool_name: Name
    country: CountryCode


class Failure(ApiModel):
    """The last thing that went wrong in a slot."""

    outcome: Outcome
    message: Annotated[str, text(1024, least=0)] = ""
    time: Time


class SlotCondition(Condition):
    """Ready: it can take a request, or runs one. Draining: it takes no further one."""

    type: Literal["Ready", "Draining"]

    @classmethod
    def because(
        cls,
        type_: Literal["Ready", "Draining"],
        status: Any,
        reason: SlotReason,
        *,
        at: str,
        message: str = "",
    ) -> "SlotCondition":
        """A condition with a reason of the closed set; `at` is a time as in `times`."""
        return cls(type=type_, status=status, reason=reason.value, message=message, last_transition_time=at)


class PageSlotStatus(ApiModel):
    """What a slot is doing. For people: who is busy is told by the requests, permits by their Leases."""

    observed_generation: Count = 0
    state: SlotState = SlotState.NO_PAGE
    permit: Annotated[int, whole(0, 5000)] | None = None
    """Number of the permit that it holds."""
    pod_name: Annotated[str, text(253)] | None = None
    pod_uid: Annotated[str, text(64)] | None = Field(default=None, alias="podUID")
    request: Annotated[str, text(253)] | None = None
    """The request that it runs."""
    site: Annotated[str, text(259)] | None = None
    """What its page is warm for."""
    ready_time: Time | None = None
    idle_since: Time | None = None
    pages: Count = 0
    """Pages that this browser has loaded."""
    consecutive_failures: Count = 0
    last_failure: Failure | None = None
    conditions: Annotated[tuple[SlotCondition, ...], items(8), keyed("type")] = ()


class PageSlot(Kind):
    """A placeholder for one browser page of one country."""

    APPEARANCE: ClassVar[Appearance] = Appearance(
        plural="pageslots",
        short="pgslot",
        columns=(
            Column("Pool", "string", ".spec.poolName"),
            Column("Country", "string", ".spec.country"),
            Column("State", "string", ".status.state"),
            Column("Request", "string", ".status.request"),
            Column("Pages", "integer", ".status.pages"),
            Column("Permit", "integer", ".status.permit"),
            Column("Pod", "string", ".status.podName", priority=1),
            Column("Age", "date", ".metadata.creationTimestamp"),
        ),
        selectable=(".status.state", ".spec.country", ".spec.poolName"),
    )

    kind: Literal["PageSlot"] = "PageSlot"
    spec: PageSlotSpec
    status: PageSlotStatus = Field(default_factory=PageSlotStatus)
