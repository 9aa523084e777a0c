"""The kinds `PageSlotPool`, `PageSlot` and `CrawlRequest`: models, CRDs, strict loading of manifests."""

from pageslots.api.changes import check_change
from pageslots.api.crds import crd_documents, render_crds
from pageslots.api.faults import ManifestError, ManifestErrors
from pageslots.api.loading import LoadedManifests, LoadedObject, load_manifests
from pageslots.api.meta import API_VERSION, GROUP, VERSION, Condition, Kind, ObjectMeta, OwnerReference
from pageslots.api.pool import PageSlotPool
from pageslots.api.references import check_references
from pageslots.api.request import CrawlRequest
from pageslots.api.slot import PageSlot

KINDS: dict[str, type[Kind]] = {
    "PageSlotPool": PageSlotPool,
    "PageSlot": PageSlot,
    "CrawlRequest": CrawlRequest,
}
"""Every kind of the group by its name."""

__all__ = [
    "API_VERSION",
    "GROUP",
    "KINDS",
    "VERSION",
    "Condition",
    "CrawlRequest",
    "Kind",
    "LoadedManifests",
    "LoadedObject",
    "ManifestError",
    "ManifestErrors",
    "ObjectMeta",
    "OwnerReference",
    "PageSlot",
    "PageSlotPool",
    "check_change",
    "check_references",
    "crd_documents",
    "load_manifests",
    "render_crds",
]
