"""The names that enforce the cap, and the Leases that say who holds a permit (DESIGN section 7)."""

import re
from dataclasses import dataclass
from typing import Any

from pageslots.control.ports import JsonObject

GROUP = "pageslots.dev"
API_VERSION = f"{GROUP}/v1alpha1"
POOL_LABEL = f"{GROUP}/pool"
PARENT_LABEL = f"{GROUP}/parent"
GRANTED_FOR = f"{GROUP}/granted-for"
SLOT_NAME = f"{GROUP}/slot"


def slot_name(pool: str, number: int) -> str:
    """The page slot k of a pool."""
    return f"{pool}-slot-{number}"


def permit_name(pool: str, number: int) -> str:
    """The Lease of permit n."""
    return f"{pool}-permit-{number}"


def browser_name(pool: str, number: int) -> str:
    """The only pod that permit n can have."""
    return f"{pool}-browser-{number}"


def child_name(parent: str, number: int) -> str:
    """The child request n of a parallel one."""
    return f"{parent}-{number}"


_PERMIT = re.compile(r"(?P<pool>.+)-permit-(?P<number>\d{1,6})")
_SLOT = re.compile(r"(?P<pool>.+)-slot-(?P<number>\d{1,6})")


def _numbered(pattern: re.Pattern[str], name: str) -> tuple[str, int] | None:
    match = pattern.fullmatch(name)
    return (match["pool"], int(match["number"])) if match else None


def permit_of(name: str) -> tuple[str, int] | None:
    """Pool and number of a permit's Lease, None for any other Lease."""
    return _numbered(_PERMIT, name)


def slot_of(name: str) -> tuple[str, int] | None:
    """Pool and number of a page slot, None for a name that we never give."""
    return _numbered(_SLOT, name)


@dataclass(frozen=True, slots=True)
class Key:
    """Where an object lives."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def key_of(obj: JsonObject) -> Key:
    """Namespace and name of an object."""
    metadata: dict[str, Any] = obj["metadata"]
    return Key(metadata.get("namespace", "default"), metadata["name"])


def uid_of(obj: JsonObject) -> str:
    """The UID that the API gave."""
    return str(obj["metadata"]["uid"])


def version_of(obj: JsonObject) -> str:
    """The resourceVersion as read."""
    return str(obj["metadata"]["resourceVersion"])


def owner_reference(owner: JsonObject) -> JsonObject:
    """What makes the API delete an object with its owner."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }
