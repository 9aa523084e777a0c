"""Countries: the codes that exist, and the locale and time zone that a browser there would have.

A country of a pool is an ISO 3166-1 code or a variant of one (`SG`, `SG-mobile`). Locales and the
time zones of one-zone countries come from babel's copy of CLDR, imported at first use (30 ms). CLDR
doesn't rank the zones of a country with several, so those are chosen here: the capital's zone, or
the one in which most people live where that is another.
"""

from functools import cache
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pageslots.api.fields import Rule, text

ISO_3166 = (
    "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT "
    "BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH "
    "ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT "
    "HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS "
    "LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI "
    "NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG "
    "SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG "
    "UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"
)
COUNTRIES = frozenset(ISO_3166.split())

_MAIN_ZONES = {
    "AQ": "Antarctica/McMurdo", "AR": "America/Argentina/Buenos_Aires", "AU": "Australia/Sydney",
    "BR": "America/Sao_Paulo", "CA": "America/Toronto", "CD": "Africa/Kinshasa", "CL": "America/Santiago",
    "CN": "Asia/Shanghai", "CY": "Asia/Nicosia", "DE": "Europe/Berlin", "EC": "America/Guayaquil",
    "ES": "Europe/Madrid", "FM": "Pacific/Pohnpei", "GL": "America/Nuuk", "ID": "Asia/Jakarta",
    "KI": "Pacific/Tarawa", "KZ": "Asia/Almaty", "MH": "Pacific/Majuro", "MN": "Asia/Ulaanbaatar",
    "MX": "America/Mexico_City", "MY": "Asia/Kuala_Lumpur", "NZ": "Pacific/Auckland", "PF": "Pacific/Tahiti",
    "PG": "Pacific/Port_Moresby", "PS": "Asia/Hebron", "PT": "Europe/Lisbon", "RU": "Europe/Moscow",
    "UA": "Europe/Kyiv", "UM": "Pacific/Midway", "US": "America/New_York", "UZ": "Asia/Tashkent",
}  # fmt: skip
_LOCALES = {"NO": "nb-NO", "SJ": "nb-SJ", "BV": "nb-BV"}
"""Browsers know Norwegian by its written form; CLDR's first answer is the umbrella code `no`."""


def is_country(code: str) -> bool:
    """Whether its first two letters are an ISO 3166-1 code."""
    return code[:2] in COUNTRIES


def is_time_zone(name: str) -> bool:
    """Whether it is an IANA time zone that this installation has."""
    return name in _zones()


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def default_locale(code: str) -> str:
    """The first official language of the country, as a browser writes it: `de-CH` for CH; else English."""
    from babel.languages import get_official_languages  # noqa: PLC0415 - 30 ms, only when a default is needed

    country = code[:2]
    if country in _LOCALES:
        return _LOCALES[country]
    languages = get_official_languages(country, regional=False, de_facto=True)
    return f"{languages[0].partition('_')[0]}-{country}" if languages else "en-US"


def default_time_zone(code: str) -> str:
    """The country's time zone, or that of most of its people when it has several; else UTC."""
    from babel.core import get_global  # noqa: PLC0415 - as above

    country = code[:2]
    if country in _MAIN_ZONES:
        return _MAIN_ZONES[country]
    zones = get_global("territory_zones").get(country, ())
    return next((zone for zone in zones if is_time_zone(zone)), "UTC")


def zone_info(name: str) -> ZoneInfo:
    """The time zone of that name. ZoneInfoNotFoundError when there is none."""
    return ZoneInfo(name)


CountryCode = Annotated[
    str,
    text(15, least=2, pattern=r"^[A-Z]{2}(-[a-z0-9]{1,12})?$", says='a two-letter country code such as "SG"'),
    Rule(
        cel=f"' {ISO_3166} '.contains(' ' + self.substring(0, 2) + ' ')",
        message="not an ISO 3166-1 country code",
        check=is_country,
    ),
]
"""`SG`, or a variant of it: `SG-mobile`."""

PlainCountryCode = Annotated[
    str,
    text(2, least=2, pattern=r"^[A-Z]{2}$", says='a two-letter country code such as "SG"'),
    Rule(
        cel=f"' {ISO_3166} '.contains(' ' + self + ' ')",
        message="not an ISO 3166-1 country code",
        check=is_country,
    ),
]
"""`SG`, without a variant."""

TimeZone = Annotated[
    str,
    text(64, pattern=r"^[A-Za-z][A-Za-z0-9_+/-]*$", says='an IANA time zone such as "Asia/Singapore"'),
    Rule(
        # An unknown name ends the evaluation with an error, which refuses the object as well.
        cel="self != 'Local' && timestamp('2000-01-01T00:00:00Z').getFullYear(self) >= 1999",
        message="not an IANA time zone",
        check=is_time_zone,
    ),
]

Locale = Annotated[
    str,
    text(
        20, pattern=r"^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$", says='a locale such as "en-SG"'
    ),
]
