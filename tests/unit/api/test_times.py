"""Times: aware, in UTC, exact."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageslots.api import times

YEAR_9999 = 253_402_300_799_999_999


@given(st.integers(0, YEAR_9999))
def test_microseconds_survive_a_round_trip(micros):
    assert times.to_micros(times.from_micros(micros)) == micros


@given(st.datetimes(timezones=st.timezones()))
def test_every_aware_instant_is_written_in_utc_and_read_back(when):
    try:
        text = times.from_datetime(when)
    except OverflowError:  # an offset that leads beyond the years 1 to 9999
        return
    assert text.endswith("Z")
    assert times.to_datetime(text) == when.astimezone(UTC)


def test_an_offset_is_turned_into_utc():
    eastern = datetime(2026, 5, 1, 20, 0, tzinfo=timezone(timedelta(hours=8)))

    assert times.from_datetime(eastern) == "2026-05-01T12:00:00Z"


@pytest.mark.parametrize("text", ["2026-05-01T12:00:00", "2026-05-01", "2026-05-01 12:00:00"])
def test_a_time_without_an_offset_is_refused(text):
    """case T2"""
    with pytest.raises(ValueError, match="has no offset; write it like"):
        times.to_datetime(text)


def test_a_naive_datetime_is_refused():
    with pytest.raises(ValueError, match="has no offset"):
        times.from_datetime(datetime(2026, 5, 1, 12))  # noqa: DTZ001 - what is refused


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="is not a time"):
        times.to_datetime(text)


def test_seconds_are_those_of_the_clock():
    assert times.to_seconds("1970-01-01T00:01:00.5Z") == 60.5
    assert times.from_seconds(60.5) == "1970-01-01T00:01:00.5Z"
