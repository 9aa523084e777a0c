"""What happens in a simulated world: how pods start and how attempts go."""

from dataclasses import dataclass, field
from typing import Protocol

from pageslots.control.ports import PodOrder
from pageslots.wire import AttemptSpec, Outcome, PageCounts

ONE_PAGE = PageCounts(done=1, discovered=1)


@dataclass(frozen=True, slots=True)
class PodCourse:
    """How one pod lives. Durations in milliseconds.

    `schedule_ms` None: there is no room for it. `failure`: preparation ends after `prepare_ms` with the
    agent giving up for this outcome. `end_ms`: from SIGTERM, or from the end of the attempt under way then,
    until nothing is left.
    """

    schedule_ms: int | None = 0
    start_ms: int = 500
    prepare_ms: int = 1_500
    failure: Outcome | None = None
    message: str = ""
    end_ms: int = 200


@dataclass(frozen=True, slots=True)
class AttemptCourse:
    """How one attempt goes, if nothing ends it before. Durations in milliseconds.

    `counts`, `start_pages_ok` and `new_ok_pages` are what the final report says; `page_ms` is how long
    a stop waits for the page under way; `progresses` False: the attempt hangs, for `staleSeconds` to find.
    `pod_dies`: at the end of the duration the pod ends instead of the attempt.
    """

    duration_ms: int = 3_000
    outcome: Outcome = Outcome.OK
    message: str = ""
    counts: PageCounts = field(default=ONE_PAGE)
    new_ok_pages: int = 1
    start_pages_ok: int = 1
    all_tried_blocked: bool = False
    retry_after_ms: int | None = None
    records: tuple[bytes, ...] = ()
    bytes: int = 0
    page_ms: int = 500
    progresses: bool = True
    pod_dies: bool = False
    out_of_memory: bool = False

    @classmethod
    def failing(cls, outcome: Outcome, *, duration_ms: int = 3_000, message: str = "") -> "AttemptCourse":
        """An attempt that ends with `outcome` and not one good page."""
        blocked = outcome is Outcome.BLOCKED
        counts = PageCounts(failed=int(not blocked), blocked=int(blocked), discovered=1)
        return cls(
            duration_ms=duration_ms,
            outcome=outcome,
            message=message or f"simulated {outcome.value}",
            counts=counts,
            new_ok_pages=0,
            start_pages_ok=0,
            all_tried_blocked=blocked,
        )


class Script(Protocol):
    """Decides the courses; asked once per pod and once per accepted attempt, in the order of events."""

    def pod(self, order: PodOrder) -> PodCourse:
        """How this pod will live."""
        ...

    def attempt(self, order: PodOrder, spec: AttemptSpec) -> AttemptCourse:
        """How this attempt will go on that pod."""
        ...


@dataclass(slots=True)
class Always:
    """The same for every pod and every attempt, except where `attempts` names the request's UID."""

    every_pod: PodCourse = PodCourse()
    every_attempt: AttemptCourse = AttemptCourse()
    attempts: dict[str, AttemptCourse] = field(default_factory=dict)

    def pod(self, order: PodOrder) -> PodCourse:
        """See `Script`."""
        del order
        return self.every_pod

    def attempt(self, order: PodOrder, spec: AttemptSpec) -> AttemptCourse:
        """See `Script`."""
        del order
        return self.attempts.get(spec.request_uid, self.every_attempt)
