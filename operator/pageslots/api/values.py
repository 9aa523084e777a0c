"""Values that several kinds use: names, URLs, sites, ranges of addresses, exact fractions."""

import ipaddress
import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pageslots.api.fields import Rule, text

Name = Annotated[
    str,
    text(
        63,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        says="a name of lower-case letters, digits and hyphens",
    ),
]
"""A name inside an object (a proxy, an output), or of an object that it points to."""

HttpUrl = Annotated[
    str,
    text(2048, pattern=r"^https?://[^\s/?#]+[^\s]*$", says="an absolute URL such as https://shop.example/"),
]

Site = Annotated[
    str,
    text(
        259,
        pattern=r"^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$",
        says="a lower-case domain such as shop.example, or host:port",
    ),
]
"""A politeness key: a registrable domain, or host:port."""


class _IntOrFraction:
    """`3`, `"3"` or `"1/3"`: an exact number. 0.33 is refused, because 3 times 0.33 is not 1."""

    PATTERN = r"^[1-9][0-9]{0,3}(/[1-9][0-9]{0,3})?$"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._read, serialization=core_schema.plain_serializer_function_ser_schema(_write_fraction)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"x-kubernetes-int-or-string": True, "pattern": self.PATTERN, "minimum": 1, "maximum": 9999}

    @classmethod
    def _read(cls, value: Any) -> Fraction:
        if isinstance(value, Fraction) and value > 0:
            return value
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 9999:
            return Fraction(value)
        if isinstance(value, str) and re.fullmatch(cls.PATTERN[1:-1], value):
            return Fraction(value)
        advice = f'; write "{_nearest_fraction(value)}"' if isinstance(value, float) and value > 0 else ""
        raise PydanticCustomError(
            "fraction",
            'not a whole number or a fraction such as "1/3"{advice}',
            {"advice": advice},
        )


def _nearest_fraction(value: float) -> str:
    """The simplest fraction near `value`: 0.33 was meant as 1/3."""
    near = Fraction(value).limit_denominator(10)
    return _write_fraction(near or Fraction(value).limit_denominator(9999) or Fraction(1, 9999))


def _write_fraction(value: Fraction) -> str:
    return str(value)


PositiveFraction = Annotated[Fraction, _IntOrFraction()]


def _is_cidr(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return "/" in value


Cidr = Annotated[
    str,
    text(49, pattern=r"^[0-9a-fA-F:.]+/[0-9]{1,3}$", says="a range of addresses such as 10.20.0.0/16"),
    Rule(cel="isCIDR(self)", message="not a range of addresses such as 10.20.0.0/16", check=_is_cidr),
]
