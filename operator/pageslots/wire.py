"""The messages between operator and slot agent: frozen dataclasses, standard library only.

Both sides import this module and nothing else of each other. JSON keys are the field names. A reader ignores
fields that it does not know, and fields with a default may be missing, so that an operator and an agent of
neighbouring versions understand each other. Durations are whole milliseconds; instants are whole milliseconds
since the Unix epoch.

Routes (DESIGN section 8), all under the header `X-Pageslots-Token`:

    GET    /livez                                 200 while the event loop and the browser answer
    GET    /readyz                                200 when the slot takes an attempt
    GET    /v1/status?after=<rev>&wait=<seconds>  AgentStatus; waits until rev > after
    PUT    /v1/attempts/{id}                      AttemptSpec -> AttemptReport; Refusal with 409, 410 or 422
    GET    /v1/attempts/{id}                      AttemptReport, 404
    DELETE /v1/attempts/{id}                      acknowledges an ended attempt: 204; 409 while it runs
    POST   /v1/attempts/{id}/stop                 StopOrder -> AttemptReport; 404
    GET    /v1/attempts/{id}/records?offset=<n>   JSON Lines from record n on (attempts without an output)
    GET    /v1/screenshot                         PNG of the page as it is
    POST   /v1/drain                              DrainOrder -> AgentStatus; Refusal with 409 while busy
    GET    /metrics                               Prometheus text
"""

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Self

TOKEN_HEADER = "X-Pageslots-Token"  # noqa: S105 -- a header's name
MAX_BODY_BYTES = 8 * 1024 * 1024
"""Bound of every message: 1,000 start URLs of 2,048 characters and some room."""


class Outcome(StrEnum):
    """How a page, or an attempt, ended: the closed list of DESIGN section 9."""

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


class Phase(StrEnum):
    """What the agent as a whole is doing."""

    PREPARING = "Preparing"
    READY = "Ready"
    RUNNING = "Running"
    DRAINED = "Drained"  # takes nothing any more, will never again
    GAVE_UP = "GaveUp"  # giveUpAfterFailures reached: wants to be closed


class AttemptState(StrEnum):
    """A known attempt runs or has ended."""

    RUNNING = "Running"
    ENDED = "Ended"


class StopReason(StrEnum):
    """Why the operator ends an attempt early; all of them checkpoint first."""

    STOPPED = "Stopped"  # spec.stop, or the request was deleted
    SUSPENDED = "Suspended"  # spec.suspend: goes back to Queued
    DEADLINE = "Deadline"  # deadlineSeconds of the whole request
    SHUTDOWN = "Shutdown"  # the operator or the machine goes down: goes back to Queued


class WireError(ValueError):
    """A message that is not what this module says; the text names the field."""


class Message:
    """Base of all messages: JSON both ways, checked against the annotations on the way in."""

    __slots__ = ()

    def to_json(self) -> bytes:
        """The message as UTF-8 JSON."""
        itself: Any = self  # a frozen dataclass, which this base class is not
        return json.dumps(asdict(itself), separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, body: bytes | str) -> Self:
        """Read a message; raises WireError."""
        try:
            decoded = json.loads(body)
        except (ValueError, UnicodeDecodeError) as error:
            raise WireError(f"{cls.__name__}: not JSON: {error}") from None
        return cls.from_dict(decoded)

    @classmethod
    def from_dict(cls, decoded: object) -> Self:
        """Read a message from decoded JSON; raises WireError."""
        message = _read(cls, decoded, cls.__name__)
        assert isinstance(message, cls)
        return message


@lru_cache(maxsize=64)
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _read(hint: Any, value: object, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin is types.UnionType or origin is typing.Union:
        if value is None:
            return None
        [inner] = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return _read(inner, value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise WireError(f"{where}: expected a list, got {type(value).__name__}")
        [inner, _] = typing.get_args(hint)
        return tuple(_read(inner, item, f"{where}[{i}]") for i, item in enumerate(value))
    if is_dataclass(hint):
        return _read_fields(hint, value, where)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        try:
            return hint(str(value))
        except ValueError:
            raise WireError(f"{where}: {value!r} is not one of {', '.join(hint)}") from None
    assert isinstance(hint, type)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise WireError(f"{where}: expected {hint.__name__}, got {type(value).__name__}")
    return value


def _read_fields(cls: Any, value: object, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise WireError(f"{where}: expected an object, got {type(value).__name__}")
    hints = _hints(cls)
    known = {
        f.name: _read(hints[f.name], value[f.name], f"{where}.{f.name}")
        for f in fields(cls)
        if f.name in value
    }
    try:
        return cls(**known)
    except TypeError as error:
        raise WireError(f"{where}: {error}") from None


@dataclass(frozen=True, slots=True)
class UrlsFrom(Message):
    """Start URLs in a file: CSV with a `url` column, or JSON Lines. Row i belongs to part i mod count."""

    uri: str
    part_index: int = 0
    part_count: int = 1


@dataclass(frozen=True, slots=True)
class Follow(Message):
    """Which links are followed. `max_depth` None: no limit (start URLs have depth 0)."""

    scope: str  # page | prefix | host | domain
    max_depth: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extract(Message):
    """One named value of a record: exactly one of `css` and `xpath`."""

    name: str
    css: str | None = None
    xpath: str | None = None
    attribute: str | None = None
    all: bool = False


@dataclass(frozen=True, slots=True)
class WaitFor(Message):
    """An element that must be there before a page is read."""

    selector: str
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class AttemptSpec(Message):
    """One try at running a request on a slot; `id` keys everything, the same id again is the same attempt."""

    id: str
    number: int
    request: str  # namespace/name, for people
    request_uid: str
    pod_uid: str  # the only pod that may accept it
    epoch: int  # of the leader that sends it; a lower one than seen is refused
    country: str
    site: str
    start_urls: tuple[str, ...] = ()
    urls_from: UrlsFrom | None = None
    follow: Follow | None = None
    max_pages: int = 0  # 0: the number of start URLs
    extract: tuple[Extract, ...] = ()
    capture: tuple[str, ...] = ()  # text, html, links, screenshot
    capture_on_failure: tuple[str, ...] = ()  # html, screenshot
    wait_for: WaitFor | None = None
    page_timeout_ms: int = 30_000
    page_retries: int = 2
    page_delay_ms: int = 0
    attempt_ms: int = 0  # 0: no limit of its own (a request without an output)
    deadline_ms: int = 3_600_000  # what is left of deadlineSeconds
    output_uri: str | None = None  # a folder; None: records are kept for the preview only
    fresh_context: bool = False
    obey_robots: bool = True  # robots.txt and nofollow, for followed links


@dataclass(frozen=True, slots=True)
class PageCounts(Message):
    """Pages of a request over all its attempts, as the checkpoint knows them."""

    done: int = 0
    failed: int = 0
    blocked: int = 0
    discovered: int = 0


@dataclass(frozen=True, slots=True)
class AttemptReport(Message):
    """What an attempt has done so far, or how it ended."""

    id: str
    request_uid: str
    state: AttemptState
    outcome: Outcome | None = None  # None while it runs
    message: str = ""
    pages: PageCounts = PageCounts()
    new_ok_pages: int = 0  # Ok pages of this attempt alone: progress
    start_pages_ok: int = 0  # start pages that ended Ok, over all attempts
    all_tried_blocked: bool = False  # every page that this attempt tried was Blocked
    records: int = 0  # over all attempts
    bytes: int = 0  # of this attempt
    progress: int = 0  # grows with every page and record: what staleness is judged by
    retry_after_ms: int | None = None
    result_uri: str | None = None
    truncated: bool = False
    stop_reason: StopReason | None = None
    started_ms: int = 0
    ended_ms: int | None = None
    request: str = ""  # namespace/name, as in the specification


@dataclass(frozen=True, slots=True)
class Failure(Message):
    """What went wrong last in a slot."""

    outcome: Outcome
    message: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class AgentStatus(Message):
    """The slot as its agent sees it. `rev` grows with every change (progress: at most once a second)."""

    rev: int
    pod_uid: str
    phase: Phase
    epoch: int = 0
    warm_site: str | None = None
    attempt: AttemptReport | None = None  # the running one, or an ended one that nobody has acknowledged
    pages: int = 0  # since the pod started
    consecutive_failures: int = 0
    last_failure: Failure | None = None
    bytes: int = 0  # since the pod started
    browser_version: str = ""
    ready_ms: int | None = None  # when this pod became ready first
    recycle_due: bool = False  # maxAgeSeconds or maxPages reached: close when free


@dataclass(frozen=True, slots=True)
class StopOrder(Message):
    """Body of POST stop."""

    reason: StopReason
    epoch: int
    pod_uid: str


@dataclass(frozen=True, slots=True)
class DrainOrder(Message):
    """Body of POST drain: from its acceptance on the slot takes nothing, for ever."""

    epoch: int
    pod_uid: str


class RefusalCode(StrEnum):
    """Why the agent said no. The HTTP status tells the kind, the code the case."""

    BUSY = "Busy"  # 409
    OTHER_POD = "OtherPod"  # 409: meant for another pod UID
    OLD_EPOCH = "OldEpoch"  # 409: from a deposed leader
    NOT_READY = "NotReady"  # 409: still preparing
    DRAINED = "Drained"  # 410
    BAD_REQUEST = "BadRequest"  # 422: a message that can't be read
    UNAUTHORISED = "Unauthorised"  # 401
    NO_SUCH_ATTEMPT = "NoSuchAttempt"  # 404


@dataclass(frozen=True, slots=True)
class Refusal(Message):
    """Body of every answer that is not a success."""

    code: RefusalCode
    message: str


@dataclass(frozen=True, slots=True)
class ProxyServer(Message):
    """One upstream proxy. `{session}` in the user name becomes a new random id per browser start."""

    name: str
    server: str  # http://, https:// or socks5:// with host and port, no credentials
    username: str = ""
    password: str = ""
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ExitCheck(Message):
    """A URL whose answer names the country that the site sees."""

    url: str
    country: str


@dataclass(frozen=True, slots=True)
class AgentConfig(Message):
    """All that an agent is told at its start, as a JSON file named by `--config`."""

    pod_name: str
    pod_uid: str
    token: str
    country: str
    locale: str
    time_zone: str
    listen_host: str = "127.0.0.1"
    listen_port: int = 0  # 0: any free one; the address is told on the ready pipe
    scratch_dir: str = ""  # everything that the agent and its browser write goes below it
    chromium: str = ""  # path of the executable; empty: Playwright's own
    chromium_sandbox: bool = False
    target_url: str = ""  # what a preparing slot loads; empty: about:blank
    target_is_request_origin: bool = False  # a SiteError there does not count as a failure
    reopen_after_failures: int = 4
    give_up_after_failures: int = 7
    preparation_ms: int = 120_000
    stale_ms: int = 600_000
    grace_ms: int = 10_000
    recycle_age_ms: int = 3_600_000
    recycle_pages: int = 1_000
    proxies: tuple[ProxyServer, ...] = ()  # empty: direct, which the pool must have said
    exit_check: ExitCheck | None = None
    blocked_resource_types: tuple[str, ...] = ()  # image, font, media, stylesheet …
    blocked_url_patterns: tuple[str, ...] = ()
    allow_private_addresses: bool = False
    allowed_cidrs: tuple[str, ...] = ()
    viewport_width: int = 1280
    viewport_height: int = 800
