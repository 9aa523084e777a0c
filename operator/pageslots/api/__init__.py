"""The kinds `PageSlotPool`, `PageSlot` and `CrawlRequest`: models, CRDs, strict loading of manifests."""

from pageslots.api.meta import API_VERSION, GROUP, VERSION, Condition, Kind, ObjectMeta, OwnerReference
from pageslots.api.pool import PageSlotPool
from pageslots.api.request import CrawlRequest
from pageslots.api.slot import PageSlot

KINDS: dict[str, type[Kind]] = {
    "PageSlotPool": PageSlotPool,
    "PageSlot": PageSlot,
    "CrawlRequest": CrawlRequest,
}

__all__ = [
    "API_VERSION",
    "GROUP",
    "KINDS",
    "VERSION",
    "Condition",
    "CrawlRequest",
    "Kind",
    "ObjectMeta",
    "OwnerReference",
    "PageSlot",
    "PageSlotPool",
]
