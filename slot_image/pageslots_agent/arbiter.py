"""Who may use the slot: the agent is the arbiter of its own slot (DESIGN section 8).

Pure rules, no I/O and no clock: the phases and their moves, what is refused and with which code, and which
ended attempts are still known. `slot` carries out what is decided here.

    Preparing ⇄ Ready ⇄ Running;  Running → Preparing (the browser must be reopened);
    Preparing → GaveUp;  Preparing | Ready | GaveUp → Drained, for ever.
"""

from collections import OrderedDict
from enum import Enum, auto

from pageslots.wire import (
    AttemptReport,
    AttemptSpec,
    AttemptState,
    DrainOrder,
    Phase,
    Refusal,
    RefusalCode,
    StopOrder,
)

KNOWN_ENDED = 256
"""Ended attempts whose report is remembered: a repeated PUT must never run one of them again."""


class RefusedError(Exception):
    """A call that the slot does not carry out; `status` is the HTTP status that tells the kind."""

    def __init__(self, status: int, code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.refusal = Refusal(code, message)


class Admission(Enum):
    """What becomes of a PUT that is not refused."""

    START = auto()
    KNOWN = auto()  # the same attempt again


class Arbiter:
    """State of one slot. All methods return at once; refusals are `RefusedError`."""

    def __init__(self, pod_uid: str) -> None:
        self.pod_uid = pod_uid
        self.phase = Phase.PREPARING
        self.epoch = 0
        self.running: AttemptSpec | None = None
        self.unacknowledged: AttemptReport | None = None
        self._ended: OrderedDict[str, AttemptReport] = OrderedDict()
        self._closing = False

    def admit(self, spec: AttemptSpec) -> Admission:
        """Take an attempt, or recognise it; starting one acknowledges the one before."""
        self._check_sender(spec.pod_uid, spec.epoch)
        if self.is_running(spec.id) or spec.id in self._ended:
            return Admission.KNOWN
        if self.phase is Phase.DRAINED or self._closing:
            raise RefusedError(410, RefusalCode.DRAINED, "this slot is drained: it takes no further attempt")
        if self.running is not None:
            message = f"attempt {self.running.id} is running; one slot runs one attempt"
            raise RefusedError(409, RefusalCode.BUSY, message)
        if self.phase is not Phase.READY:
            raise RefusedError(409, RefusalCode.NOT_READY, f"the slot is {self.phase}, not {Phase.READY}")
        self.running = spec
        self.unacknowledged = None
        self.phase = Phase.RUNNING
        return Admission.START

    def end(self, report: AttemptReport, *, browser_usable: bool) -> None:
        """The running attempt has ended; the slot is ready again, or must prepare anew."""
        assert self.running is not None
        assert report.id == self.running.id
        assert report.state is AttemptState.ENDED
        self.running = None
        self.unacknowledged = report
        self._ended[report.id] = report
        while len(self._ended) > KNOWN_ENDED:
            self._ended.popitem(last=False)
        if self._closing:
            self.phase = Phase.DRAINED
        else:
            self.phase = Phase.READY if browser_usable else Phase.PREPARING

    def is_running(self, attempt_id: str) -> bool:
        """Whether this is the attempt under way."""
        return self.running is not None and self.running.id == attempt_id

    def ended(self, attempt_id: str) -> AttemptReport | None:
        """The report of an attempt that has ended here, acknowledged or not."""
        return self._ended.get(attempt_id)

    def acknowledge(self, attempt_id: str) -> None:
        """Somebody has the report: the status shows it no longer."""
        if self.is_running(attempt_id):
            raise RefusedError(409, RefusalCode.BUSY, f"attempt {attempt_id} is running; stop it first")
        if attempt_id not in self._ended:
            raise no_such_attempt(attempt_id)
        if self.unacknowledged is not None and self.unacknowledged.id == attempt_id:
            self.unacknowledged = None

    def check_stop(self, attempt_id: str, order: StopOrder) -> bool:
        """Whether there is something to stop: False for an attempt that has ended."""
        self._check_sender(order.pod_uid, order.epoch)
        if self.is_running(attempt_id):
            return True
        if attempt_id not in self._ended:
            raise no_such_attempt(attempt_id)
        return False

    def drain(self, order: DrainOrder) -> None:
        """Take nothing from here on; refused while an attempt runs."""
        self._check_sender(order.pod_uid, order.epoch)
        if self.running is not None:
            raise RefusedError(409, RefusalCode.BUSY, f"attempt {self.running.id} is running")
        self.phase = Phase.DRAINED

    def shut_down(self) -> None:
        """The agent ends: like a drain, but an attempt under way may still end and be reported."""
        self._closing = True
        if self.running is None:
            self.phase = Phase.DRAINED

    def prepared(self) -> None:
        """The page is ready for attempts; without effect once drained."""
        if self.phase is Phase.PREPARING:
            self.phase = Phase.READY

    def browser_lost(self) -> None:
        """An idle slot has lost its browser and prepares again."""
        if self.phase is Phase.READY:
            self.phase = Phase.PREPARING

    def gave_up(self) -> None:
        """Preparation failed too often: the slot wants to be closed."""
        if self.phase is Phase.PREPARING:
            self.phase = Phase.GAVE_UP

    def _check_sender(self, pod_uid: str, epoch: int) -> None:
        if pod_uid != self.pod_uid:
            message = f"meant for pod {pod_uid}; this is {self.pod_uid}"
            raise RefusedError(409, RefusalCode.OTHER_POD, message)
        if epoch < self.epoch:
            message = f"epoch {epoch} is over: {self.epoch} has been seen"
            raise RefusedError(409, RefusalCode.OLD_EPOCH, message)
        self.epoch = epoch


def no_such_attempt(attempt_id: str) -> RefusedError:
    """The refusal for an id that this agent does not know."""
    return RefusedError(404, RefusalCode.NO_SUCH_ATTEMPT, f"no attempt {attempt_id} is known here")
