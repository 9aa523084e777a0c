"""What every kind has: apiVersion, kind, metadata, conditions, and how it appears in a cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field

from pageslots.api.fields import ApiModel, Count, Flag, Ruled, text
from pageslots.api.reasons import ConditionStatus
from pageslots.api.times import Time

GROUP = "pageslots.dev"
VERSION = "v1alpha1"
API_VERSION: Literal["pageslots.dev/v1alpha1"] = "pageslots.dev/v1alpha1"


ObjectName = Annotated[
    str,
    text(
        253,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
        says='a name of lower-case letters, digits, "-" and "."',
    ),
]
"""A name of an object, as the server wants it (a DNS-1123 subdomain)."""


class OwnerReference(ApiModel):
    """An object whose end is the end of this one."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: Flag = False
    block_owner_deletion: Flag = False


class ObjectMeta(ApiModel):
    """Name and identity. All but name, namespace, labels and annotations is set by the server."""

    name: ObjectName
    namespace: str = "default"
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Condition(ApiModel):
    """One thing that is true, false or unknown about an object, since when, and why.

    The reason is written from the closed sets in `reasons`, and read as any CamelCase word: an older
    program must not choke on the word of a newer one.
    """

    type: Annotated[str, text(64, pattern=r"^[A-Z][A-Za-z]*$")]
    status: ConditionStatus
    reason: Annotated[str, text(64, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    message: Annotated[str, text(1024, least=0)] = ""
    last_transition_time: Time
    observed_generation: Count = 0


C = TypeVar("C", bound=Condition)


def find_condition(conditions: Iterable[C], type_: str) -> C | None:
    """The condition of that type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def set_condition(conditions: Iterable[C], new: C) -> tuple[C, ...]:
    """The conditions with `new` in its type's place; its time stays when its status did not change."""
    listed = tuple(conditions)
    old = find_condition(listed, new.type)
    if old is None:
        return (*listed, new)
    if old.status is new.status:
        new = new.model_copy(update={"last_transition_time": old.last_transition_time})
    return tuple(new if condition is old else condition for condition in listed)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. Those of priority 1 appear with `-o wide`."""

    name: str
    type: Literal["string", "integer", "date"]
    path: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Appearance:
    """How a kind is called and shown in a cluster."""

    plural: str
    short: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    scale: Mapping[str, str] | None = None


class Kind(Ruled):
    """An object of the group. Its kinds add `api_version`, `kind`, `spec` and `status`."""

    APPEARANCE: ClassVar[Appearance]

    api_version: Literal["pageslots.dev/v1alpha1"] = API_VERSION
    kind: str
    metadata: ObjectMeta

    @property
    def name(self) -> str:
        """Its name within the namespace."""
        return self.metadata.name

    def to_dict(self) -> dict[str, Any]:
        """The object as JSON has it: camelCase, without fields that have no value."""
        document = self.model_dump(mode="json", exclude_none=True)
        document["metadata"] = {key: value for key, value in document["metadata"].items() if value}
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The object of a JSON document. pydantic.ValidationError when it is not one."""
        return cls.model_validate(document)
