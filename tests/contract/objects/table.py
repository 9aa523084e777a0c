"""Good and bad objects, and good and bad changes: one table for everything that judges objects.

The models are held against it here; a real API server with the generated CRDs has to say the same. An
entry is JSON as a user would send it. `field` is where a bad object is wrong, as the API server writes
it; `rule` is the message of the rule that it breaks, which both sides show. Without a `rule` it breaks
the schema (a type, a bound, a pattern), and each side words that on its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Good:
    """An object that must be accepted."""

    name: str
    object: Json


@dataclass(frozen=True)
class Bad:
    """An object that must be refused, at a field."""

    name: str
    object: Json
    field: str
    rule: str | None = None


@dataclass(frozen=True)
class Change:
    """From one object to the next; `rule` is what forbids it, None when it is allowed."""

    name: str
    old: Json
    new: Json
    rule: str | None = None


def an_object(kind: str, spec: Any, *, name: str, status: Mapping[str, Any] | None = None) -> Json:
    made: Json = {
        "apiVersion": "pageslots.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    return made if status is None else made | {"status": dict(status)}


def a_request(*, name: str = "shop-sg", status: Mapping[str, Any] | None = None, **spec: Any) -> Json:
    """A request for one page of SG; a field given as None is left out."""
    whole = {"country": "SG", "startUrls": ["https://shop.example/"]} | spec
    kept = {key: value for key, value in whole.items() if value is not None}
    return an_object("CrawlRequest", kept, name=name, status=status)


def a_pool(*, name: str = "default", **spec: Any) -> Json:
    """A pool with SG, directly."""
    whole = {"countries": [{"code": "SG", "direct": True}]} | spec
    return an_object(
        "PageSlotPool", {key: value for key, value in whole.items() if value is not None}, name=name
    )


def a_country(**fields: Any) -> Json:
    """A pool with one country."""
    return a_pool(countries=[{"code": "SG", "direct": True} | fields])


def a_proxy(**fields: Any) -> Json:
    """A pool whose country has one proxy."""
    proxy = {"name": "one", "server": "http://proxy.example:8080"} | fields
    return a_pool(countries=[{"code": "SG", "proxies": [proxy]}])


def an_output(prefix: Any) -> Json:
    """A pool with one output."""
    return a_pool(outputs=[{"name": "records", "uriPrefix": prefix}])


def a_slot(*, status: Mapping[str, Any] | None = None, **spec: Any) -> Json:
    """A page slot of SG."""
    return an_object(
        "PageSlot", {"poolName": "default", "country": "SG"} | spec, name="default-slot-0", status=status
    )


NOW = "2026-05-01T12:00:00Z"


def a_condition(**fields: Any) -> Json:
    return {
        "type": "Finished",
        "status": "True",
        "reason": "AllPagesDone",
        "lastTransitionTime": NOW,
    } | fields
