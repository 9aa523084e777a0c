"""What the fields of the kinds are made of: bounded types, and rules that are checked twice.

A `Rule` holds the same sentence three times: as CEL for the API server, as a Python check for
`model_validate`, and as the message that both show. It is the metadata of a type or the entry of a
model's `RULES`, so neither side can have a rule that the other one lacks. CRD generation reads
nothing but the JSON schema that pydantic makes of these types.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

VALIDATIONS = "x-kubernetes-validations"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
SAYS = "x-pageslots-says"
"""Key of a phrase for people that says what a pattern expects; generation drops it."""

MAX_INT = 2**53 - 1
"""The largest whole number that JSON readers agree on."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A law about one value or one object.

    `cel` may use `self` and, when the law is about a change, `oldSelf`. `check` gets the value, or
    the new and the old one. `field` is the dotted path of the culprit below the object, "" for itself.
    """

    cel: str
    message: str
    check: Callable[..., bool]
    field: str = ""

    @property
    def is_about_change(self) -> bool:
        """Whether it compares an object with its former self (CEL calls that a transition rule)."""
        return "oldSelf" in self.cel

    def validation(self) -> dict[str, str]:
        """The entry of `x-kubernetes-validations`."""
        entry = {"rule": self.cel, "message": self.message}
        if self.field and not self.field.startswith(
            "metadata."
        ):  # a schema has no fields of metadata to name
            entry["fieldPath"] = f".{self.field}"
        if self.is_about_change:
            entry["reason"] = "FieldValueForbidden"
        return entry

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        check, message = self.check, self.message

        def judge(value: Any) -> Any:
            if not check(value):
                raise broken([(self.field, message)])
            return value

        return core_schema.no_info_after_validator_function(judge, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        described = handler(schema)
        described.setdefault(VALIDATIONS, []).append(self.validation())
        return described


def broken(rules: Iterable[tuple[str, str]]) -> PydanticCustomError:
    """The error for broken rules, as (field below the object, message); errors of type "rule"."""
    listed = [{"field": field, "message": message} for field, message in rules]
    text = "; ".join(entry["message"] for entry in listed)
    return PydanticCustomError("rule", "{text}", {"text": text, "broken": listed})


@dataclass(frozen=True, slots=True)
class Keyed:
    """A list whose entries are told apart by their keys (`listType: map`): no two are alike."""

    keys: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        keys = self.keys
        first = keys[0]

        def judge(entries: Any) -> Any:
            if len(entries) > 1:
                found: list[Hashable] = (
                    [getattr(entry, first) for entry in entries]
                    if len(keys) == 1
                    else [tuple(getattr(entry, key) for key in keys) for entry in entries]
                )
                _refuse_twins(found, what="/".join(keys))
            return entries

        return core_schema.no_info_after_validator_function(judge, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {LIST_TYPE: "map", LIST_KEYS: list(self.keys)}


@dataclass(frozen=True, slots=True)
class Unique:
    """A list of plain values in which none stands twice (`listType: set`)."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def judge(values: Any) -> Any:
            if len(values) > 1:
                _refuse_twins(values, what="value")
            return values

        return core_schema.no_info_after_validator_function(judge, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {LIST_TYPE: "set"}


@dataclass(frozen=True, slots=True)
class NotEmpty:
    """A list of at least one entry. Pydantic's own bound counts valid entries only: it complains twice."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def judge(values: Any) -> Any:
            if not values:
                raise PydanticCustomError("empty", "has no entry")
            return values

        return core_schema.no_info_after_validator_function(judge, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {"minItems": 1}


def _refuse_twins(values: Iterable[Hashable], *, what: str) -> None:
    seen: set[Hashable] = set()
    for number, value in enumerate(values):
        if value in seen:
            shown = "/".join(map(str, value)) if isinstance(value, tuple) else str(value)
            raise PydanticCustomError(
                "twin",
                'two entries have the {what} "{shown}"',
                {"what": what, "shown": shown, "number": number},
            )
        seen.add(value)


def keyed(*keys: str) -> Keyed:
    """Short for `Keyed`."""
    return Keyed(keys)


def whole(low: int, high: int) -> FieldInfo:
    """A whole number within bounds: neither "5" nor 5.0 nor true, as the API server has it."""
    info: FieldInfo = Field(strict=True, ge=low, le=high)
    return info


def text(most: int, *, pattern: str | None = None, least: int = 1, says: str | None = None) -> FieldInfo:
    """A string of `least` to `most` characters; `says` tells a person what `pattern` wants."""
    extra: dict[str, Any] | None = {SAYS: says} if says else None
    info: FieldInfo = Field(min_length=least, max_length=most, pattern=pattern, json_schema_extra=extra)
    return info


def items(most: int) -> FieldInfo:
    """A list of at most so many entries."""
    info: FieldInfo = Field(max_length=most)
    return info


Flag = Annotated[bool, Strict()]
Count = Annotated[int, whole(0, MAX_INT)]
Seconds = Annotated[int, whole(1, 31_536_000)]
"""A duration of one second to one year."""


class ApiModel(BaseModel):
    """A value of an object: immutable, camelCase outside, unknown fields ignored.

    Objects of an API server may have fields of a newer version, so an unknown field is no error
    here; `load_manifests` refuses it, because there it is a typing mistake.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        serialize_by_alias=True,
        defer_build=True,  # at import each nested model is built again for each parent: 270 ms instead of 150
    )


class Ruled(ApiModel):
    """A value with rules about how its fields go together."""

    RULES: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _obeys_its_rules(self) -> Self:
        for rule in self.RULES:
            if "oldSelf" not in rule.cel and not rule.check(self):
                raise broken(
                    [(r.field, r.message) for r in self.RULES if not r.is_about_change and not r.check(self)]
                )
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        described = handler.resolve_ref_schema(handler(schema))
        if cls.RULES:
            described[VALIDATIONS] = [rule.validation() for rule in cls.RULES]
        return described
