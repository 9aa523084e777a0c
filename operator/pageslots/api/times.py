"""Points in time: the only module of the kinds that touches a clock's formats.

In objects a time is an RFC 3339 text in UTC (`2026-05-01T12:00:00.250Z`); inside the programs it is
seconds or microseconds since 1970-01-01 UTC. A date and time without an offset is refused: it means
another instant on every machine.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, NewType

from pydantic import Field

RFC3339_UTC = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$"

Time = Annotated[str, Field(max_length=30, pattern=RFC3339_UTC, json_schema_extra={"format": "date-time"})]
"""A field that holds a time."""

Micros = NewType("Micros", int)
"""Microseconds since 1970-01-01 UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_datetime(text: str) -> datetime:
    """The instant that `text` names, in UTC. ValueError when it names none, or has no offset."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a time; write it like 2026-05-01T12:00:00Z') from None
    if when.tzinfo is None:
        raise ValueError(
            f'"{text}" has no offset; write it like 2026-05-01T12:00:00Z or 2026-05-01T12:00:00+08:00'
        )
    return when.astimezone(UTC)


def from_datetime(when: datetime) -> str:
    """The text of an instant, in UTC, with as many digits as it needs. ValueError without an offset."""
    if when.tzinfo is None:
        raise ValueError(f"{when.isoformat()} has no offset: a naive time is no instant")
    text = when.astimezone(UTC).isoformat().removesuffix("+00:00")
    return (text.rstrip("0") if "." in text else text) + "Z"


def to_micros(text: str) -> Micros:
    """Microseconds since 1970-01-01 UTC; exact. ValueError as in `to_datetime`."""
    return Micros((to_datetime(text) - _EPOCH) // _MICROSECOND)


def from_micros(micros: int) -> str:
    """The text of that many microseconds since 1970-01-01 UTC; `to_micros` gives them back."""
    return from_datetime(_EPOCH + timedelta(microseconds=micros))


def to_seconds(text: str) -> float:
    """Seconds since 1970-01-01 UTC, as `time.time()` counts them. ValueError as in `to_datetime`."""
    return to_micros(text) / 1_000_000


def from_seconds(seconds: float) -> str:
    """The text of that many seconds since 1970-01-01 UTC, to the microsecond."""
    return from_micros(round(seconds * 1_000_000))
