"""Codes, locales and time zones."""

from pathlib import Path

import pytest
import tzdata

from pageslots.api.countries import COUNTRIES, default_locale, default_time_zone, is_time_zone
from pageslots.api.pool import Country
from pageslots.api.suggestions import country, for_value


def test_the_codes_are_those_of_iso_3166():
    table = Path(tzdata.__file__).parent / "zoneinfo" / "iso3166.tab"
    rows = [line.split("\t")[0] for line in table.read_text().splitlines() if not line.startswith("#")]

    assert set(rows) == COUNTRIES
    assert len(rows) == 249


@pytest.mark.parametrize("code", sorted(COUNTRIES))
def test_every_country_has_a_locale_and_a_time_zone(code):
    made = Country.model_validate(
        {"code": code, "direct": True, "locale": default_locale(code), "timeZone": default_time_zone(code)}
    )

    assert is_time_zone(made.time_zone)


def test_only_uninhabited_islands_have_no_time_zone_of_their_own():
    assert {code for code in COUNTRIES if default_time_zone(code) == "UTC"} <= {"BV", "HM"}


@pytest.mark.parametrize(
    ("code", "locale", "zone"),
    [
        ("SG", "en-SG", "Asia/Singapore"),
        ("SG-mobile", "en-SG", "Asia/Singapore"),
        ("US", "en-US", "America/New_York"),
        ("DE", "de-DE", "Europe/Berlin"),
        ("NO", "nb-NO", "Europe/Oslo"),
        ("TW", "zh-TW", "Asia/Taipei"),
        ("RS", "sr-RS", "Europe/Belgrade"),
        ("IN", "hi-IN", "Asia/Kolkata"),
        ("BR", "pt-BR", "America/Sao_Paulo"),
    ],
)
def test_what_a_browser_of_a_country_says(code, locale, zone):
    assert (default_locale(code), default_time_zone(code)) == (locale, zone)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("sg", "SG"),
        ("SGP", "SG"),
        ("sgp", "SG"),
        ("Singapore", "SG"),
        ("Singapur", "SG"),
        ("UK", "GB"),
        ("germany", "DE"),
        ("sg-Mobile", "SG-mobile"),
        ("sg-mo_bile", "SG-mobile"),
        ("qqqqqqqq", None),
        ("-", None),
    ],
)
def test_a_country_is_recognised(written, meant):
    assert country(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Asia/Singapur", "Asia/Singapore"),
        ("asia/singapore", "Asia/Singapore"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
    ],
)
def test_a_time_zone_is_recognised(written, meant):
    assert for_value(written, {"x-pageslots-says": "an IANA time zone"}) == meant
