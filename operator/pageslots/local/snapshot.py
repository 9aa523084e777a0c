"""What a run looks like at one instant: what the live table, the plain lines and the tests read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CountryRow:
    """One country of a pool. Slots by state add up to `slots`."""

    pool: str
    country: str
    allocated: int
    slots: int
    preparing: int
    ready: int
    running: int
    closing: int
    queued: int
    finished: int
    direct: bool


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One request of the manifests (children of parallel ones are counted in their parent)."""

    name: str
    country: str
    state: str  # Queued, Running, Succeeded, Failed, Stopped
    reason: str  # why it waits, or how it ended: a CamelCase word
    message: str
    pages_done: int
    pages_failed: int
    pages_discovered: int
    attempts: int
    records: int
    result: str  # folder of its records, "" before the first
    seconds: float  # since its first start, or how long it took
    skipped: bool  # was finished before this run began


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole run."""

    now_ms: int
    seconds: float
    countries: tuple[CountryRow, ...]
    requests: tuple[RequestRow, ...]
    permits_held: int
    permits_max: int
    browsers: int  # pods that exist
    pages: int  # done by this run
    pages_per_second: float  # over the last 10 s
    bytes: int
    stopping: bool
