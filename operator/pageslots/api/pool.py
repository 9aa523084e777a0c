"""PageSlotPool: the settings of a pool of page slots, and what it is doing."""

import re
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pageslots.api.countries import CountryCode, Locale, PlainCountryCode, TimeZone
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
from pageslots.api.meta import Appearance, Column, Condition, Kind
from pageslots.api.reasons import PoolReason
from pageslots.api.times import Time
from pageslots.api.values import Cidr, HttpUrl, Name, PositiveFraction, Site

MAX_COUNTRIES = 300


class SecretRef(ApiModel):
    """Names a Secret of the namespace; in local mode, a file of that name."""

    name: Name


class Proxy(Ruled):
    """A way out for a country's pages."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!self.server.contains('@')",
            message="credentials don't belong in the address: put them into credentialsSecretRef",
            check=lambda self: "@" not in self.server,
            field="server",
        ),
    )

    name: Name
    """What records and metrics call it."""
    server: Annotated[
        str,
        text(
            300,
            pattern=r"^(http|https|socks5)://[^\s/?#]+:[0-9]{1,5}/?$",
            says="a proxy's address with its port, such as http://proxy.example:8080 or socks5://10.0.0.7:1080",
        ),
    ]
    """Address: http, https or socks5, host and port."""
    credentials_secret_ref: SecretRef | None = None
    """Secret with the keys `username` and `password`.

    `{session}` in the user name becomes a new random id for each browser."""
    weight: Annotated[int, whole(1, 1000)] = 1
    """How often it is chosen, relative to the others."""


class ExitCheck(ApiModel):
    """A page that tells from which country it is seen; asked before a slot is ready."""

    url: HttpUrl
    """A page whose answer contains the two-letter code, alone or as `country` of a JSON object."""
    country: PlainCountryCode | None = None
    """The code that it must name; default: the first two letters of the country's code."""


class Country(Ruled):
    """One country of a pool: how its pages reach the internet, and what they pretend to be."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(has(self.proxies) && size(self.proxies) > 0) != (has(self.direct) && self.direct)",
            message="give it either proxies or `direct: true`: pages never go out directly by omission",
            check=lambda self: bool(self.proxies) != self.direct,
        ),
        Rule(
            cel="!has(self.maxSlots) || !has(self.minReady) || self.minReady <= self.maxSlots",
            message="minReady is more than maxSlots",
            check=lambda self: self.max_slots is None or self.min_ready <= self.max_slots,
            field="minReady",
        ),
    )

    code: CountryCode
    """Two letters of ISO 3166-1, with a variant after a hyphen where one is needed: SG, SG-mobile."""
    proxies: Annotated[tuple[Proxy, ...], items(100), keyed("name")] = ()
    """The ways out; one is chosen for each browser by weight, and the next one after a proxy's error."""
    direct: Flag = False
    """True: no proxy; pages are fetched from the slot's own address."""
    locale: Locale | None = None
    """Browser locale, such as en-SG; default: the first official language of the country."""
    time_zone: TimeZone | None = None
    """IANA time zone, such as Asia/Singapore; default: that of most people of the country."""
    min_ready: Annotated[int, whole(0, 5000)] = 0
    """Slots that are kept ready, even without work."""
    max_slots: Annotated[int, whole(0, 5000)] | None = None
    """The most slots that it gets, whatever its demand."""
    suspend: Flag = False
    """True: none of its requests starts. Running ones go on."""
    exit_check: ExitCheck | None = None


class Allocation(ApiModel):
    """How slots are shared between the countries."""

    interval_seconds: Seconds = 60
    """Time between two allocations."""
    unfinished_weight: Annotated[int, whole(1, 1000)] = 30
    """Score of a request that is not finished."""
    finished_weight: Annotated[int, whole(0, 1000)] = 10
    """Score of a request that finished within the window."""
    sample_size: Annotated[int, whole(0, 100_000)] = 3000
    """The most requests that are scored; unfinished ones all count and come first."""
    window_seconds: Seconds = 600
    """For how long a finished request counts."""
    starvation_seconds: Seconds = 50
    """How long a country's runnable request waits before the country gets a slot at another's cost."""


class Preparation(Ruled):
    """How many slots have a browser, and how a page becomes ready."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.reopenAfterFailures) || !has(self.giveUpAfterFailures)"
            " || self.reopenAfterFailures <= self.giveUpAfterFailures",
            message="reopenAfterFailures is more than giveUpAfterFailures",
            check=lambda self: self.reopen_after_failures <= self.give_up_after_failures,
            field="reopenAfterFailures",
        ),
    )

    min_requests_per_slot: PositiveFraction = Fraction(1, 3)
    """Requests for each open slot: 2 opens one for every two, "1/3" opens three for each."""
    target_url: HttpUrl | None = None
    """The page that a slot loads while it prepares; default: the origin of the request it is prepared for."""
    reuse: Literal["Slot", "Never"] = "Slot"
    """Slot: requests of one site share the prepared page. Never: each one gets a fresh page."""
    reopen_after_failures: Annotated[int, whole(1, 100)] = 4
    """Failures in a row after which the browser is closed and opened again."""
    give_up_after_failures: Annotated[int, whole(1, 100)] = 7
    """Failures in a row after which the slot is closed and its country backs off."""
    idle_seconds: Seconds = 60
    """How long a slot without work stays open."""


class Dispatch(ApiModel):
    """Politeness to sites, unless the site or the request says otherwise."""

    max_per_site: Annotated[int, whole(1, 1000)] = 4
    """Attempts that run at one (country, site) at a time."""
    site_cooldown_seconds: Annotated[int, whole(0, 86_400)] = 1
    """Time between the starts of two attempts at one (country, site)."""


class SiteRules(ApiModel):
    """What holds for one site instead of the pool's `dispatch`."""

    name: Site
    max_per_site: Annotated[int, whole(1, 1000)] | None = None
    cooldown_seconds: Annotated[int, whole(0, 86_400)] | None = None
    page_delay_seconds: Annotated[int, whole(0, 3600)] = 0
    """Time between two pages of one attempt."""
    suspend: Flag = False
    """True: no request of this site starts. Running ones go on."""


class Deadlines(ApiModel):
    """How long things may take, in seconds."""

    start_seconds: Seconds = 300
    """From the pod's scheduling to an agent that answers."""
    preparation_seconds: Seconds = 120
    """From an agent that answers to a ready page."""
    attempt_seconds: Seconds = 900
    """One attempt of a request with an output; it goes on in another attempt from its checkpoint."""
    stale_seconds: Seconds = 600
    """Without a page or a record; then the attempt is given up."""
    unschedulable_seconds: Seconds = 300
    """A pod that finds no node keeps its permit for so long."""
    stuck_terminating_seconds: Seconds = 300
    """A pod that doesn't end; then a condition asks a person for help."""
    dispatch_seconds: Seconds = 10
    """An agent's answer to a dispatch or a drain."""


class Recycle(ApiModel):
    """When a browser is replaced, between two pages."""

    max_age_seconds: Seconds = 3600
    max_pages: Annotated[int, whole(1, 1_000_000)] = 1000


class Rollout(ApiModel):
    """How a changed pod template reaches the slots."""

    max_unavailable: Annotated[int, whole(1, 5000)] = 1
    """Slots that are replaced at a time, idle ones first."""


class Blocking(ApiModel):
    """What a page doesn't load. The page itself is never blocked."""

    resource_types: Annotated[tuple[Literal["image", "font", "media"], ...], items(3), Unique()] = (
        "image",
        "font",
        "media",
    )
    url_patterns: Annotated[tuple[Annotated[str, text(512)], ...], items(200), Unique()] = ()
    """URLs in which `*` stands for any characters: *://*.ads.example/*."""


class Network(ApiModel):
    """Which addresses pages may reach. Public ones always, these besides."""

    allow_private_addresses: Flag = False
    """True: private and loopback addresses too. Metadata services stay closed."""
    allowed_cidrs: Annotated[tuple[Cidr, ...], items(100), Unique()] = ()
    """Ranges of private addresses that pages may reach."""


PLACEHOLDERS = ("namespace", "request", "country", "date")


def _without_placeholders(uri: str) -> str:
    for name in PLACEHOLDERS:
        uri = uri.replace("{" + name + "}", "")
    return uri


class Output(Ruled):
    """A place for records. A request names it and a path below it."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!self.uriPrefix"
            + "".join(f".replace('{{{name}}}', '')" for name in PLACEHOLDERS)
            + ".matches('[{}]')",
            message="knows the placeholders {namespace}, {request}, {country} and {date} only",
            check=lambda self: not re.search("[{}]", _without_placeholders(self.uri_prefix)),
            field="uriPrefix",
        ),
        Rule(
            cel="!self.uriPrefix.contains('::') && !self.uriPrefix.matches('/[.][.](/|$)')",
            message="is one plain location: neither `::` nor `..` in it",
            check=lambda self: "::" not in self.uri_prefix and not re.search(r"/\.\.(/|$)", self.uri_prefix),
            field="uriPrefix",
        ),
        Rule(
            cel="!self.uriPrefix.contains('@') || self.uriPrefix.startsWith('abfs://')",
            message="has no credentials in it",
            check=lambda self: "@" not in self.uri_prefix or self.uri_prefix.startswith("abfs://"),
            field="uriPrefix",
        ),
    )

    name: Name
    uri_prefix: Annotated[
        str,
        text(
            1024,
            pattern=r"^((s3|gs|abfs)://[^\s/?#]+|file://)(/[^\s?#]*)?$",
            says="s3://bucket/…, gs://bucket/…, abfs://container@account/… or file:///folder/…",
        ),
    ]
    """Where records go. {namespace}, {request}, {country} and {date} are filled in.

    The date is that of the first start, in UTC: 2026-05-01."""


class PodTemplate(ApiModel):
    """What the pods, or processes, of slots are like."""

    termination_grace_period_seconds: Annotated[int, whole(5, 3600)] = 10
    """From the polite signal to the hard one; a page that is being loaded has 4 s less."""
    memory_mib: Annotated[int, whole(256, 65_536)] = Field(default=2048, alias="memoryMiB")
    """The most memory of one slot with its browser; a slot beyond it ends as OutOfMemory."""


class PageSlotPoolSpec(Ruled):
    """What a pool should be."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.countries.map(c, has(c.minReady) ? c.minReady : 0).sum() <= self.maxPageSlots",
            message="the countries' minReady add up to more than maxPageSlots",
            check=lambda self: sum(country.min_ready for country in self.countries) <= self.max_page_slots,
            field="countries",
        ),
    )

    max_page_slots: Annotated[int, whole(1, 5000)] = 20
    """Page slots of all countries together."""
    max_concurrent: Annotated[int, whole(0, 5000)] = 8
    """Browsers that exist at a time, whatever happens."""
    suspend: Flag = False
    """True: no request starts. Running ones go on."""
    countries: Annotated[tuple[Country, ...], items(MAX_COUNTRIES), NotEmpty(), keyed("code")]
    allocation: Allocation = Field(default_factory=Allocation)
    preparation: Preparation = Field(default_factory=Preparation)
    dispatch: Dispatch = Field(default_factory=Dispatch)
    sites: Annotated[tuple[SiteRules, ...], items(1000), keyed("name")] = ()
    deadlines: Deadlines = Field(default_factory=Deadlines)
    recycle: Recycle = Field(default_factory=Recycle)
    rollout: Rollout = Field(default_factory=Rollout)
    blocking: Blocking = Field(default_factory=Blocking)
    network: Network = Field(default_factory=Network)
    outputs: Annotated[tuple[Output, ...], items(50), keyed("name")] = ()
    pod_template: PodTemplate = Field(default_factory=PodTemplate)


class CountryStatus(ApiModel):
    """What a country has, and why."""

    code: CountryCode
    score: Count = 0
    allocated: Count = 0
    """Slots that it is given."""
    wanted: Count = 0
    """Slots that should have a browser."""
    ready: Count = 0
    running: Count = 0
    queued: Count = 0
    oldest_queued_time: Time | None = None


class BackOff(ApiModel):
    """A country, or a site of it, that nothing starts at until a time."""

    country: CountryCode
    site: Annotated[str, text(259, least=0)] = ""
    """Empty: the whole country."""
    until: Time
    failures: Count
    """Failures in a row that led to it."""


class PoolCondition(Condition):
    """Ready: requests can start. Progressing: slots are being replaced or moved."""

    type: Literal["Ready", "Progressing"]

    @classmethod
    def because(
        cls,
        type_: Literal["Ready", "Progressing"],
        status: Any,
        reason: PoolReason,
        *,
        at: str,
        message: str = "",
    ) -> "PoolCondition":
        """A condition with a reason of the closed set; `at` is a time as in `times`."""
        return cls(type=type_, status=status, reason=reason.value, message=message, last_transition_time=at)


class PageSlotPoolStatus(ApiModel):
    """What a pool is doing."""

    observed_generation: Count = 0
    slots: Count = 0
    ready: Count = 0
    """Slots whose page is ready and idle."""
    running: Count = 0
    permits_held: Count = 0
    queued: Count = 0
    selector: Annotated[str, text(256, least=0)] = ""
    """Selects the pool's pods."""
    countries: Annotated[tuple[CountryStatus, ...], items(MAX_COUNTRIES), keyed("code")] = ()
    backoffs: Annotated[tuple[BackOff, ...], items(100), keyed("country", "site")] = ()
    conditions: Annotated[tuple[PoolCondition, ...], items(8), keyed("type")] = ()


class PageSlotPool(Kind):
    """A pool of page slots: how many, for which countries, and how they behave."""

    APPEARANCE: ClassVar[Appearance] = Appearance(
        plural="pageslotpools",
        short="slotpool",
        columns=(
            Column("Max", "integer", ".spec.maxConcurrent"),
            Column("Permits", "integer", ".status.permitsHeld"),
            Column("Slots", "integer", ".status.slots"),
            Column("Ready", "integer", ".status.ready"),
            Column("Running", "integer", ".status.running"),
            Column("Queued", "integer", ".status.queued"),
            Column("Age", "date", ".metadata.creationTimestamp"),
        ),
        scale={
            "specReplicasPath": ".spec.maxConcurrent",
            "statusReplicasPath": ".status.permitsHeld",
            "labelSelectorPath": ".status.selector",
        },
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$')",
            message="a pool's name has at most 40 lower-case letters, digits and hyphens:"
            " its pods and permits are named after it",
            check=lambda self: (
                re.fullmatch("[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", self.metadata.name) is not None
            ),
            field="metadata.name",
        ),
    )

    kind: Literal["PageSlotPool"] = "PageSlotPool"
    spec: PageSlotPoolSpec
    status: PageSlotPoolStatus = Field(default_factory=PageSlotPoolStatus)
