"""CrawlRequest: one unit of work, and how far it is."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pageslots.api.countries import CountryCode
from pageslots.api.fields import (
    ApiModel,
    Count,
    Flag,
    NotEmpty,
    Rule,
    Ruled,
    Seconds,
    Unique,
    items,
    keyed,
    text,
    whole,
)
from pageslots.api.immutability import frozen_after_start
from pageslots.api.meta import Appearance, Column, Condition, Kind
from pageslots.api.reasons import FINISHED_STATES, Outcome, RequestReason, RequestState
from pageslots.api.times import Time
from pageslots.api.values import HttpUrl, Name, Site

MAX_START_URLS = 1000
MAX_PARALLELISM = 1000
_URI_SCHEMES = "(file|http|https|s3|gs|abfs)://"

Selector = Annotated[str, text(1024)]
UrlPattern = Annotated[str, text(512)]


class Part(Ruled):
    """A slice of the rows: row i (from 0) belongs to it when i mod `count` is `index`."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.index < self.count",
            message="index must be less than count",
            check=lambda self: self.index < self.count,
            field="index",
        ),
    )

    index: Annotated[int, whole(0, MAX_PARALLELISM - 1)]
    count: Annotated[int, whole(1, MAX_PARALLELISM)]


class UrlsFrom(Ruled):
    """A file of URLs: CSV with a column `url`, or JSON Lines with a key `url`.

    The other columns appear in each record as `input`.
    """

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!self.uri.contains('::')",
            message="is one plain location: no `::` in it",
            check=lambda self: "::" not in self.uri,
            field="uri",
        ),
        Rule(
            cel="!self.uri.contains('://') || self.uri.matches('^(file|http|https|s3|gs|abfs)://')",
            message="knows file, http, https, s3, gs and abfs",
            check=lambda self: "://" not in self.uri or re.match(_URI_SCHEMES, self.uri) is not None,
            field="uri",
        ),
    )

    uri: Annotated[str, text(2048, pattern=r"^[^\s].*$")]
    """Where the file is; in a manifest a path is relative to the manifest's folder."""
    part: Part | None = None
    """Set in the children of a parallel request."""


class Follow(ApiModel):
    """Which links of a page are crawled too."""

    scope: Literal["page", "prefix", "host", "domain"] = "host"
    """Which links are in scope.

    page: the start pages only. prefix: below the folder of a start URL. host: the same host.
    domain: the same registrable domain."""
    max_depth: Annotated[int, whole(0, 1000)] | None = None
    """Links away from a start page; default: no limit."""
    include: Annotated[tuple[UrlPattern, ...], items(100)] = ()
    """If given, only URLs that match one of these; `*` stands for any characters."""
    exclude: Annotated[tuple[UrlPattern, ...], items(100)] = ()
    """No URL that matches one of these; `*` stands for any characters."""


class Extract(Ruled):
    """One field of a page's record."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.css) != has(self.xpath)",
            message="give it either css or xpath",
            check=lambda self: (self.css is None) != (self.xpath is None),
        ),
    )

    name: Annotated[
        str,
        text(63, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", says="letters, digits and underscores, a letter first"),
    ]
    css: Selector | None = None
    xpath: Selector | None = None
    attribute: Annotated[str, text(128, pattern=r"^[^\s\"'<>/=]+$", says="an attribute's name")] | None = None
    """The attribute whose value is taken; default: the element's text."""
    all: Flag = False
    """True: a list of every match. False: the first one, or null."""


class WaitFor(ApiModel):
    """What must be on the page before it is read."""

    selector: Selector
    """CSS."""
    timeout_seconds: Annotated[int, whole(1, 600)] = 10
    """Counted within pageTimeoutSeconds."""


class FailWhen(ApiModel):
    """When a request whose pages partly failed is a failure."""

    failed_pages_percent: Annotated[int, whole(0, 100)] = 10
    """More failed pages than this: TooManyFailedPages."""


class Retries(ApiModel):
    """Attempts in a row without a new good page, by what ended them, before the request fails."""

    blocked: Annotated[int, whole(0, 100)] = 3
    proxy_error: Annotated[int, whole(0, 100)] = 5
    site_error: Annotated[int, whole(0, 100)] = 2
    crash: Annotated[int, whole(0, 100)] = 2
    """BrowserCrash and OutOfMemory."""
    slot_lost: Annotated[int, whole(0, 100)] = 5


class OutputRef(Ruled):
    """Where the records go: one of the pool's outputs, and a path below it."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.path) || !self.path.matches('(^|/)[.][.]?(/|$)|::|[{}]|//|^/')",
            message="is a plain path below the output: no leading `/`, no `..`, no `::`, no `{}`",
            check=lambda self: (
                self.path is None or not re.search(r"(^|/)\.\.?(/|$)|::|[{}]|//|^/", self.path)
            ),
            field="path",
        ),
    )

    name: Name
    path: Annotated[str, text(512, pattern=r"^[^\s?#\\]+$", says="a relative path without spaces")] | None = (
        None
    )
    """Default: the request's name, unless the output's prefix contains {request}."""


class CrawlRequestSpec(Ruled):
    """What to crawl."""

    MUTABLE_ALWAYS: ClassVar[frozenset[str]] = frozenset(
        {"suspend", "stop", "priority", "ttl_seconds_after_finished"}
    )
    """The fields that may change after the first attempt has started."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.startUrls) != has(self.urlsFrom)",
            message="give it either startUrls or urlsFrom",
            check=lambda self: (self.start_urls is None) != (self.urls_from is None),
        ),
        Rule(
            cel="!has(self.follow) || !has(self.parallelism) || self.parallelism == 1",
            message="parallelism and follow don't go together",
            check=lambda self: self.follow is None or self.parallelism == 1,
            field="parallelism",
        ),
        Rule(
            cel="!has(self.urlsFrom) || !has(self.urlsFrom.part)"
            " || !has(self.parallelism) || self.parallelism == 1",
            message="a part of a file is not split again",
            check=lambda self: self.urls_from is None or self.urls_from.part is None or self.parallelism == 1,
            field="parallelism",
        ),
    )

    pool_name: Name = "default"
    country: CountryCode
    start_urls: Annotated[tuple[HttpUrl, ...], items(MAX_START_URLS), NotEmpty()] | None = None
    urls_from: UrlsFrom | None = None
    parallelism: Annotated[int, whole(1, MAX_PARALLELISM)] = 1
    """Child requests that the URLs are split among."""
    follow: Follow | None = None
    """Default: no links are followed."""
    max_pages: Annotated[int, whole(1, 10_000_000)] | None = None
    """Default: the number of start URLs; with `follow`, 1000."""
    extract: Annotated[tuple[Extract, ...], items(100), keyed("name")] = ()
    capture: Annotated[tuple[Literal["text", "html", "links", "screenshot"], ...], items(4), Unique()] = ()
    """What of each page goes into its record besides the extracted fields."""
    capture_on_failure: Annotated[tuple[Literal["html", "screenshot"], ...], items(2), Unique()] = ()
    """What is kept of the first five pages that fail."""
    wait_for: WaitFor | None = None
    site: Site | None = None
    """The key of politeness; default: the registrable domain of the first URL."""
    priority: Annotated[int, whole(-100, 100)] = 0
    """-100 bulk, 0, 100 urgent."""
    deadline_seconds: Seconds = 3600
    """For the whole request, from its first start."""
    page_timeout_seconds: Annotated[int, whole(1, 600)] = 30
    page_retries: Annotated[int, whole(0, 10)] = 2
    """Further tries of a page after SiteError."""
    queue_timeout_seconds: Seconds | None = None
    """The longest wait for the first start; default: no limit."""
    fail_when: FailWhen = Field(default_factory=FailWhen)
    retries: Retries = Field(default_factory=Retries)
    output: OutputRef | None = None
    """Default: a preview of the records is kept in the cluster, and an attempt can't be resumed."""
    suspend: Flag = False
    """True: it doesn't start; a running one saves its place and goes back to the queue."""
    stop: Flag = False
    """True: it ends as Stopped and keeps what it has."""
    ttl_seconds_after_finished: Annotated[int, whole(0, 31_536_000)] = 86_400
    """How long the object stays after its end."""

    def page_limit(self) -> int | None:
        """The most pages that it loads; None when that is the number of rows of `urlsFrom`."""
        if self.max_pages is not None:
            return self.max_pages
        if self.follow is not None:
            return 1000
        return None if self.start_urls is None else len(self.start_urls)


class Attempt(ApiModel):
    """The latest try at running the request."""

    id: Annotated[str, text(128)]
    """Request UID and number."""
    number: Annotated[int, whole(1, 1_000_000)]
    pod_uid: Annotated[str, text(64)] = Field(alias="podUID")
    started_time: Time
    finished_time: Time | None = None
    observed_generation: Count = 0


class AttemptCount(ApiModel):
    """How many attempts ended so."""

    outcome: Outcome
    count: Count
    since_progress: Count = 0
    """Of these, the ones in a row without a new Ok page: what `retries` limits."""


class Pages(ApiModel):
    """How far it is."""

    done: Count = 0
    failed: Count = 0
    blocked: Count = 0
    discovered: Count = 0
    """Pages known, whether done or not."""


class Children(ApiModel):
    """The parts of a parallel request."""

    total: Count
    succeeded: Count = 0
    failed: Count = 0
    stopped: Count = 0


class Result(ApiModel):
    """Where the records are."""

    uri: Annotated[str, text(2048)] | None = None
    records: Count = 0
    truncated: Flag = False
    """True: a preview that doesn't hold all records."""


ConditionType = Literal["Accepted", "Dispatched", "Finished", "Succeeded"]


class RequestCondition(Condition):
    """One of four things to know about a request.

    Accepted: pool and country exist. Dispatched: it runs, or ran to its end. Finished: it ended, in
    any way. Succeeded: how. While a request is not finished, Finished=False has the reason why it waits.
    """

    type: ConditionType

    @classmethod
    def because(
        cls, type_: ConditionType, status: Any, reason: RequestReason, *, at: str, message: str = ""
    ) -> "RequestCondition":
        """A condition with a reason of the closed set; `at` is a time as in `times`."""
        return cls(type=type_, status=status, reason=reason.value, message=message, last_transition_time=at)


class CrawlRequestStatus(ApiModel):
    """How far a request is."""

    observed_generation: Count = 0
    state: RequestState = RequestState.QUEUED
    slot_name: Annotated[str, text(253)] | None = None
    attempt: Attempt | None = None
    attempts: Annotated[tuple[AttemptCount, ...], items(16), keyed("outcome")] = ()
    first_start_time: Time | None = None
    finish_time: Time | None = None
    next_attempt_time: Time | None = None
    pages: Pages = Field(default_factory=Pages)
    bytes: Count = 0
    """Traffic of all attempts, both ways."""
    children: Children | None = None
    result: Result | None = None
    conditions: Annotated[tuple[RequestCondition, ...], items(8), keyed("type")] = ()

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, in any way."""
        return self.state in FINISHED_STATES

    @property
    def has_started(self) -> bool:
        """Whether an attempt has started or children exist: from then on its spec is frozen."""
        return self.first_start_time is not None or self.children is not None


class CrawlRequest(Kind):
    """One unit of work: URLs, a country, what to extract."""

    APPEARANCE: ClassVar[Appearance] = Appearance(
        plural="crawlrequests",
        short="crawlreq",
        columns=(
            Column("Country", "string", ".spec.country"),
            Column("State", "string", ".status.state"),
            Column("Slot", "string", ".status.slotName"),
            Column("Pages", "integer", ".status.pages.done"),
            Column("Attempts", "integer", ".status.attempt.number"),
            Column("Reason", "string", '.status.conditions[?(@.type=="Finished")].reason'),
            Column("Age", "date", ".metadata.creationTimestamp"),
        ),
        selectable=(".status.state", ".spec.country", ".spec.poolName"),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="size(self.metadata.name) <= 63",
            message="a request's name has at most 63 characters: it is a label of what belongs to it",
            check=lambda self: len(self.metadata.name) <= 63,
            field="metadata.name",
        ),
        Rule(
            cel="!has(self.spec.parallelism) || self.spec.parallelism == 1 || size(self.metadata.name) <= 58",
            message="a parallel request's name has at most 58 characters: its children are named after it",
            check=lambda self: self.spec.parallelism == 1 or len(self.metadata.name) <= 58,
            field="metadata.name",
        ),
        *frozen_after_start(CrawlRequestSpec),
    )

    kind: Literal["CrawlRequest"] = "CrawlRequest"
    spec: CrawlRequestSpec
    status: CrawlRequestStatus = Field(default_factory=CrawlRequestStatus)
