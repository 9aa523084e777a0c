"""What is sent out: the order for a slot's pod, and the specification of an attempt."""

import secrets

from pageslots import wire
from pageslots.api import CrawlRequest, PageSlotPool
from pageslots.api.countries import default_locale, default_time_zone
from pageslots.api.pool import Country
from pageslots.control.context import Context
from pageslots.control.names import browser_name
from pageslots.control.ports import PodOrder
from pageslots.control.site import origin_of_url
from pageslots.control.translate import revision_of
from pageslots.core.model import SECOND, RequestUid, Slot


def pod_order(
    context: Context, pool: PageSlotPool, slot: Slot, *, number: int, prepare_for: RequestUid | None
) -> PodOrder:
    """The pod of permit `number` for a slot."""
    name = browser_name(pool.name, number)
    country = next(c for c in pool.spec.countries if c.code == slot.country)
    grace_ms = pool.spec.pod_template.termination_grace_period_seconds * SECOND
    return PodOrder(
        namespace=pool.metadata.namespace,
        name=name,
        pool=pool.name,
        pool_uid=pool.metadata.uid,
        number=number,
        slot_name=slot.name,
        slot_uid=slot.uid,
        revision=revision_of(pool),
        config=_agent_config(context, pool, country, name=name, prepare_for=prepare_for),
        grace_ms=grace_ms,
        memory_mib=pool.spec.pod_template.memory_mib,
    )


def _agent_config(
    context: Context, pool: PageSlotPool, country: Country, *, name: str, prepare_for: RequestUid | None
) -> wire.AgentConfig:
    spec = pool.spec
    target = str(spec.preparation.target_url or "")
    origin = "" if target else _origin(context, prepare_for)
    exit_check = None
    if country.exit_check is not None:
        exit_check = wire.ExitCheck(country.exit_check.url, country.exit_check.country or country.code[:2])
    return wire.AgentConfig(
        pod_name=name,
        pod_uid="",
        token=secrets.token_urlsafe(32),
        country=country.code,
        locale=country.locale or default_locale(country.code),
        time_zone=country.time_zone or default_time_zone(country.code),
        chromium=context.settings.chromium,
        chromium_sandbox=context.settings.chromium_sandbox,
        target_url=target or origin,
        target_is_request_origin=bool(origin),
        reopen_after_failures=spec.preparation.reopen_after_failures,
        give_up_after_failures=spec.preparation.give_up_after_failures,
        preparation_ms=spec.deadlines.preparation_seconds * SECOND,
        stale_ms=spec.deadlines.stale_seconds * SECOND,
        grace_ms=spec.pod_template.termination_grace_period_seconds * SECOND,
        recycle_age_ms=spec.recycle.max_age_seconds * SECOND,
        recycle_pages=spec.recycle.max_pages,
        proxies=tuple(
            _proxy(context, pool, p.name, p.server, p.weight, p.credentials_secret_ref)
            for p in country.proxies
        ),
        exit_check=exit_check,
        blocked_resource_types=spec.blocking.resource_types,
        blocked_url_patterns=spec.blocking.url_patterns,
        allow_private_addresses=spec.network.allow_private_addresses,
        allowed_cidrs=spec.network.allowed_cidrs,
    )


def _proxy(
    context: Context, pool: PageSlotPool, name: str, server: str, weight: int, ref: object
) -> wire.ProxyServer:
    username = password = ""
    secret = getattr(ref, "name", None)
    if secret is not None:
        username, password = context.settings.proxy_credentials(pool.metadata.namespace, secret)
    return wire.ProxyServer(name=name, server=server, username=username, password=password, weight=weight)


def _origin(context: Context, uid: RequestUid | None) -> str:
    """The origin of the request that a slot is prepared for; empty when it is gone or reads its URLs from a file."""
    obj = None if uid is None else context.cache.by_uid(uid)
    if obj is None:
        return ""
    urls = obj["spec"].get("startUrls") or ()
    try:
        return origin_of_url(urls[0]) if urls else ""
    except ValueError:
        return ""


def attempt_spec(
    context: Context,
    pool: PageSlotPool,
    request: CrawlRequest,
    *,
    site: str,
    attempt_id: str,
    number: int,
    pod_uid: str,
    left_ms: int,
) -> wire.AttemptSpec:
    """All that an agent needs to run an attempt; `left_ms` is what is left of the request's deadline."""
    spec = request.spec
    rules = next((s for s in pool.spec.sites if s.name == site), None)
    output_uri = context.settings.output_uri(request, pool, parent_of(context, request))
    urls_from = None
    if spec.urls_from is not None:
        part = spec.urls_from.part
        urls_from = wire.UrlsFrom(
            spec.urls_from.uri, 0 if part is None else part.index, 1 if part is None else part.count
        )
    follow = None
    if spec.follow is not None:
        follow = wire.Follow(
            spec.follow.scope, spec.follow.max_depth, tuple(spec.follow.include), tuple(spec.follow.exclude)
        )
    wait_for = None
    if spec.wait_for is not None:
        wait_for = wire.WaitFor(spec.wait_for.selector, spec.wait_for.timeout_seconds * SECOND)
    return wire.AttemptSpec(
        id=attempt_id,
        number=number,
        request=f"{request.metadata.namespace}/{request.name}",
        request_uid=request.metadata.uid,
        pod_uid=pod_uid,
        epoch=context.leadership.epoch(),
        country=spec.country,
        site=site,
        start_urls=tuple(spec.start_urls or ()),
        urls_from=urls_from,
        follow=follow,
        max_pages=spec.page_limit() or 0,
        extract=tuple(wire.Extract(e.name, e.css, e.xpath, e.attribute, e.all) for e in spec.extract),
        capture=spec.capture,
        capture_on_failure=spec.capture_on_failure,
        wait_for=wait_for,
        page_timeout_ms=spec.page_timeout_seconds * SECOND,
        page_retries=spec.page_retries,
        page_delay_ms=0 if rules is None else rules.page_delay_seconds * SECOND,
        attempt_ms=pool.spec.deadlines.attempt_seconds * SECOND if output_uri is not None else 0,
        deadline_ms=left_ms,
        output_uri=output_uri,
        fresh_context=pool.spec.preparation.reuse == "Never",
    )


def parent_of(context: Context, request: CrawlRequest) -> CrawlRequest | None:
    """The parallel request that this one is a child of."""
    for owner in request.metadata.owner_references:
        if owner.kind == "CrawlRequest":
            obj = context.cache.by_uid(owner.uid)
            return None if obj is None else CrawlRequest.model_validate(obj)
    return None
