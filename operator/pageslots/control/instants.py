"""Between the API's times (RFC 3339 text, UTC) and the planner's instants (whole milliseconds)."""

from typing import overload

from pageslots.api import times
from pageslots.core.model import Instant


@overload
def instant(text: str) -> Instant: ...
@overload
def instant(text: None) -> None: ...
def instant(text: str | None) -> Instant | None:
    """The instant of a time in an object; ValueError when it has no offset."""
    return None if text is None else Instant(times.to_micros(text) // 1_000)


def time_text(at: int) -> str:
    """The text of an instant."""
    return times.from_micros(at * 1_000)
